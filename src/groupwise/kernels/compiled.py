"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import njit, types
from numba.core.ccallback import CFunc

from groupwise.kernels.addresses import INTERPRETED

compiled = njit(nogil=True, cache=True, error_model="numpy", _nrt=True, forceinline=False)
"""For functions that make arrays."""

lean = njit(nogil=True, cache=True, error_model="numpy", _nrt=False, forceinline=False)
"""For functions that make none: they do not count references to those they are given.

Every view of a counted array costs two calls, and threads that share the array contend for it. For
the same reason such a function must not return an array: nobody would have counted it.
"""

inlined = njit(nogil=True, cache=True, error_model="numpy", _nrt=False, forceinline=True)
"""The same, for parts of other kernels."""

entry = njit(cache=True, error_model="numpy", _nrt=False)
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
        made.enable_caching()
        made.compile()
        return made

    @property
    def pointer(self) -> Any:
        """What ``call`` takes."""
        return self.function if INTERPRETED else self._compiled.address
