"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from collections.abc import Callable
from functools import cached_property
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
        self._cache = KernelCache(function)

    def add_overload(self, cres: Any) -> None:
        """Refuse what would hand out memory that is freed already."""
        returned = cres.signature.return_type
        counted = self.targetctx.data_model_manager[returned].contains_nrt_meminfo()
        if counted and not self.targetoptions["_nrt"]:
            raise NumbaTypeError(
                f"{self.py_func.__qualname__} returns {returned} but counts no references: its "
                "memory may be gone. Write to an array that is an argument, or use @compiled."
            )
        super().add_overload(cres)


class _Callback(CFunc):
    """A function of fixed types that is called by its address, and kept in the same cache."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        super().__init__(function, *arguments)
        self._cache = KernelCache(function)


def _decorator(**options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles with these options; where kernels are plain Python, none."""
    options = {"nopython": True, "boundscheck": None, "error_model": "numpy", **options}

    def decorate(function: Any) -> Any:
        return function if INTERPRETED else _Compiled(function, targetoptions=dict(options))

    return decorate


compiled = _decorator(nogil=True, _nrt=True, forceinline=False)
"""For functions that make arrays."""

lean = _decorator(nogil=True, _nrt=False, forceinline=False)
"""For functions that make none: they do not count references to those they are given.

Every view of a counted array costs two calls, and threads that share the array contend for it. For
the same reason such a function must not return an array, and is refused: nobody would have counted
it.
"""

inlined = _decorator(nogil=True, _nrt=False, forceinline=True)
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

    @cached_property
    def _compiled(self) -> Any:
        signature = types.int64(types.int64, types.int64)
        options = {"nopython": True, "error_model": "numpy", "_nrt": False}
        made = _Callback(self.function, (signature.args, signature.return_type), {}, options)
        made.compile()
        return made

    @property
    def pointer(self) -> Any:
        """What ``call`` takes."""
        return self.function if INTERPRETED else self._compiled.address
