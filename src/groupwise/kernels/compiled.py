"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from groupwise.kernels.cache import KernelCache


def _decorator(**options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles with these options and keeps what it compiled."""

    def decorate(function: Any) -> Any:
        kernel = njit(error_model="numpy", **options)(function)
        if isinstance(kernel, Dispatcher):  # not so under NUMBA_DISABLE_JIT
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


@intrinsic
def stay_apart(typing_context):
    """Keep the function that calls this out of those that call it.

    What is rarely needed would take registers from what is needed every round.
    """

    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate
