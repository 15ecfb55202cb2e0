"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from collections.abc import Callable
from functools import cache, cached_property
from threading import Lock
from typing import Any

from numba import types
from numba.core.ccallback import CFunc
from numba.core.errors import NumbaTypeError
from numba.core.registry import CPUDispatcher

from groupwise.kernels.addresses import INTERPRETED
from groupwise.kernels.cache import KernelCache


class _Compiled(CPUDispatcher):
    """A function that is compiled for the types it meets, and kept in the cache of the kernels."""

    def __init__(self, function: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(function, *arguments, **options)
        self._cache = KernelCache(function, self.targetoptions)

    def add_overload(self, cres: Any) -> None:
        """Refuse what would hand out memory that is freed already."""
        returned = cres.signature.return_type
        counted = self.targetctx.data_model_manager[returned].contains_nrt_meminfo()
        if counted and not self.targetoptions["_nrt"]:
            raise NumbaTypeError(
                f"{self.py_func.__qualname__} returns {returned} but counts no references: its "
                "memory may be gone. Write to an array that is an argument, or use @compiled."
            )
        if self.targetoptions["no_cpython_wrapper"]:
            self.overloads[tuple(cres.signature.args)] = cres  # and Python does not know of it
        else:
            super().add_overload(cres)


class _Part(_Compiled):
    """A part of other kernels: a fifth of compiling them all was what lets Python call the parts.

    If Python does call one, that is compiled apart.
    """

    @cached_property
    def _whole(self) -> _Compiled:
        return _Compiled(
            self.py_func, targetoptions={**self.targetoptions, "no_cpython_wrapper": False}
        )

    def _compile_for_args(self, *arguments: Any) -> Any:
        return self._whole.compile(tuple(map(self.typeof_pyval, arguments)))


class _Callback(CFunc):
    """A function of fixed types that is called by its address, and kept in the same cache."""

    def __init__(self, function: Any, signature: Any, options: dict[str, Any]) -> None:
        super().__init__(function, (signature.args, signature.return_type), {}, options)
        self._cache = KernelCache(function, {**options, "by address": True})


def _decorator(kind: type[_Compiled] = _Compiled, **options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles with these options; where kernels are plain Python, none."""
    fixed = {"nopython": True, "boundscheck": None, "error_model": "numpy"}
    wrappers = {"no_cpython_wrapper": kind is _Part, "no_cfunc_wrapper": True}

    def decorate(function: Any) -> Any:
        return function if INTERPRETED else kind(function, targetoptions=fixed | wrappers | options)

    return decorate


compiled = _decorator(nogil=True, _nrt=True, forceinline=False)
"""For functions that make arrays."""

lean = _decorator(nogil=True, _nrt=False, forceinline=False)
"""For functions that make none: they do not count references to those they are given.

Every view of a counted array costs two calls, and threads that share the array contend for it. For
the same reason such a function must not return an array, and is refused: nobody would have counted
it.
"""

inlined = _decorator(_Part, nogil=True, _nrt=False, forceinline=True)
"""The same, for parts of other kernels."""

entry = _decorator(_nrt=False)
"""The same, for calls too short to give up the lock: they are alone while they run."""


class Kernel:
    """A function (state, stretch) → int that other kernels call by its address.

    Whoever calls it need not be compiled anew for it: the same loop over groups serves learners
    that it has never heard of. Both arguments are addresses of messages.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self._making = Lock()
        self._made: Any = None

    @property
    def pointer(self) -> Any:
        """What ``call`` takes."""
        if INTERPRETED:
            return self.function
        with self._making:  # two would not both be held on to, and one be gone when it is called
            if self._made is None:
                signature = types.int64(types.int64, types.int64)
                options = {"nopython": True, "error_model": "numpy", "_nrt": False}
                self._made = _Callback(self.function, signature, options)
                self._made.compile()
        return self._made.address


def ready(functions: dict[Any, tuple[Any, ...]]) -> list[Any]:
    """Functions for one signature each, which do not look at the types of arguments again."""
    if INTERPRETED:
        return list(functions)
    return [_ready(*one) for one in functions.items()]


@cache
def _ready(function: Any, signature: tuple[Any, ...]) -> Any:
    return function.compile(signature)
