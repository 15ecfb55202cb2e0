"""Calls and arrays by address, for kernels that get what they work on as one message.

Each of these is an intrinsic, and beside it stands what it does where kernels run as plain Python
(``NUMBA_DISABLE_JIT=1``): there an "address" is the thing itself.
"""

from operator import methodcaller
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

INTERPRETED = bool(config.DISABLE_JIT)
"""Do the kernels run as plain Python?"""
WORD = ir.IntType(64)
_value_of = methodcaller("_getvalue")  # numba has no other name for it


def array_at(context: Any, builder: Any, kind: Any, pointer: Any, shape: list[Any]) -> Any:
    """Code for an array at an address, which nobody counts references to."""
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [ir.Constant(WORD, item)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    view = context.make_array(kind)(context, builder)
    populate_array(
        view,
        data=builder.bitcast(pointer, context.get_data_type(kind.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=ir.Constant(WORD, item),
        meminfo=None,
    )
    return _value_of(view)


@intrinsic
def _call(typing_context, kernel, state, stretch):
    def generate(context, builder, signature, arguments):
        function = builder.inttoptr(arguments[0], ir.FunctionType(WORD, [WORD, WORD]).as_pointer())
        return builder.call(function, arguments[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _call_back(typing_context, function, group):
    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [WORD])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def _address_of(typing_context, array):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, WORD)

    return types.int64(array), generate


@intrinsic
def _next_of(typing_context, queue, count):
    def generate(context, builder, signature, arguments):
        place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", place, arguments[1], "monotonic")

    return types.int64(queue, types.int64), generate


@intrinsic
def _stay_apart(typing_context):
    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _plain_call(kernel: Any, state: Any, stretch: Any) -> Any:
    return kernel(state, stretch)


def _plain_call_back(function: Any, group: Any) -> None:
    function(int(group))


def _plain_address_of(array: Any) -> Any:
    # What is at an address has no shape: its numbers are counted in row-major order.
    return array if isinstance(array, list) else array.reshape(-1)


def _plain_next_of(queue: Any, count: Any) -> Any:
    first = queue[0]
    queue[0] += count
    return first


def _plain_stay_apart() -> None:
    pass


call = _plain_call if INTERPRETED else _call
"""call(kernel, state, stretch): call a kernel at its address."""
call_back = _plain_call_back if INTERPRETED else _call_back
"""call_back(function, group): call a function of Python's at its address."""
address_of = _plain_address_of if INTERPRETED else _address_of
"""address_of(array): where an array's numbers are."""
next_of = _plain_next_of if INTERPRETED else _next_of
"""next_of(queue, count): the first of the next ``count`` numbers from a queue that other threads
take from too."""
stay_apart = _plain_stay_apart if INTERPRETED else _stay_apart
"""stay_apart(): keep the function that calls this out of those that call it. What is rarely needed
would take registers from what is needed every round."""
