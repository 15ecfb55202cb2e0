"""How kernels are compiled: cached on disk, and without the interpreter's lock."""

from numba import njit

compiled = njit(nogil=True, cache=True, error_model="numpy", _nrt=True)
"""For functions that make arrays."""

lean = njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
"""For functions that make none: they do not count references to those they are given.

Every view of a counted array costs two calls, and threads that share the array contend for it. For
the same reason such a function must not return an array: nobody would have counted it.
"""

inlined = njit(nogil=True, cache=True, error_model="numpy", _nrt=False, forceinline=True)
"""The same, for parts of other kernels."""

entry = njit(cache=True, error_model="numpy", _nrt=False)
"""The same, for calls too short to give up the lock: they are alone while they run."""
