"""Addresses as pointers, for kernels that take a state as one array of sizes and addresses."""

from numba import types
from numba.extending import intrinsic


@intrinsic
def floats(typing_context, address):
    """An address as a pointer to float64."""
    pointer = types.CPointer(types.float64)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


@intrinsic
def integers(typing_context, address):
    """An address as a pointer to int64."""
    pointer = types.CPointer(types.int64)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate
