"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import njit, types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

from groupwise.kernels.addresses import INTERPRETED
from groupwise.kernels.cache import KernelCache


def _decorator(**options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles with these options and keeps what it compiled."""

    def decorate(function: Any) -> Any:
        kernel = njit(error_model="numpy", **options)(function)
        if isinstance(kernel, Dispatcher):  # not so where kernels run as plain Python
            kernel._cache = KernelCache(function)
        return kernel

    return decorate


compiled = _decorator(nogil=True, _nrt=True, forceinline=False)
"""For functions that make arrays."""

lean = _decorator(nogil=True, _nrt=False, forceinline=False)
"""For functions that make none: they do not count references to those they are given.

Every view of a counted array costs two calls, and threads that share the array contend for it. For
the same reason such a function must not return an array: nobody would have counted it.
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
        made = CFunc(self.function, (signature.args, signature.return_type), {}, options)
        made._cache = KernelCache(self.function)
        made.compile()
        return made

    @property
    def pointer(self) -> Any:
        """What ``call`` takes."""
        return self.function if INTERPRETED else self._compiled.address
