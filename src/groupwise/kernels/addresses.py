"""Arrays at addresses, for kernels that take a state as one array of sizes and addresses.

Unlike numba's ``carray`` these need no reference counting.
"""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_SIZE = 8


def _view(dtype: Any, shape: Any) -> Any:
    """The signature and code of a function that gives an array of this type."""
    array = types.Array(dtype, len(shape), "C")

    def generate(context, builder, signature, arguments):
        kind = context.get_data_type(dtype).as_pointer()
        lengths = cgutils.unpack_tuple(builder, arguments[1])
        strides = [context.get_constant(types.intp, _SIZE)]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        view = context.make_array(array)(context, builder)
        populate_array(
            view,
            data=builder.inttoptr(arguments[0], kind),
            shape=cgutils.pack_array(builder, lengths),
            strides=cgutils.pack_array(builder, strides),
            itemsize=context.get_constant(types.intp, _SIZE),
            meminfo=None,
        )
        return view._getvalue()

    return array(types.int64, shape), generate


@intrinsic
def floats(typing_context, address, shape):
    """The float64 array of this shape at an address."""
    return _view(types.float64, shape)


@intrinsic
def integers(typing_context, address, shape):
    """The int64 array of this shape at an address."""
    return _view(types.int64, shape)
