"""The compiled vector loops against their plain-Python reference, bit for bit."""

import copy
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from groupwise.kernels import reference
from tests.kernels import loops

LARGEST = sys.float_info.max
LEAST = 5e-324


def bits(value):
    return np.float64(value).view(np.int64)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_loops_do_what_their_reference_does(seed):
    widths = 4 * np.random.default_rng(seed).permutation(np.arange(1, 26))[:6]
    for name, arguments in loops.cases(widths.tolist(), seed):
        again = copy.deepcopy(arguments)
        found = getattr(loops, name)(*arguments)
        wanted = getattr(reference, name)(*again)
        assert (found is None) == (wanted is None)
        if found is not None:
            assert bits(found) == bits(wanted)
        for one, other in zip(arguments, again, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), name


def test_a_multiply_add_is_rounded_once():
    generator = np.random.default_rng(0)
    for a, b, c in loops.numbers(generator, 2_000, 3):
        for addend in (c, -a * b, -a * b * (1.0 + 2.0**-52)):
            assert bits(reference.fma(a, b, addend)) == bits(loops.fma(a, b, addend))
    assert reference.fma(1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0) == -(2.0**-60)


@pytest.mark.parametrize(
    "numbers",
    [
        (LARGEST, 2.0, -LARGEST),
        (LARGEST, -2.0, 0.0),
        (LEAST, 0.5, 0.0),
        (-LEAST, 0.5, 0.0),
        (LEAST, 0.5, LEAST),
        (0.0, -1.0, 0.0),
        (0.0, -1.0, -0.0),
        (2.0, 3.0, -6.0),
        (math.inf, 1.0, 1.0),
        (1.0, 2.0, -math.inf),
        (LARGEST, LARGEST, -math.inf),
    ],
)
def test_multiply_adds_at_the_ends_of_the_range(numbers):
    assert bits(reference.fma(*numbers)) == bits(loops.fma(*numbers))


def test_the_reference_runs_where_kernels_are_plain_python():
    code = (
        "from groupwise.kernels import reference, vectors\n"
        "names = 'fma prefetch combine_rows combine_first dense_products add_outer dense_dot '"
        "'dense_dots add_and_scale subtract_outer'\n"
        "assert all(getattr(vectors, n) is getattr(reference, n) for n in names.split())"
    )
    path = os.pathsep.join(sys.path)
    settings = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", code], env=settings, check=True)


MODEL = """
import hashlib
import numpy as np
import groupwise as gw

generator = np.random.default_rng(0)
model = gw.Groupwise([gw.by("colour")], loss=gw.losses.Square(low=0.0, high=1.0))
found = hashlib.sha256()
for t in range(20):
    numbers = generator.random(3).tolist()
    row = {"colour": "red" if t % 3 else "blue", **dict(zip("abc", numbers))}
    ticket = model.predict(row)
    model.learn(ticket, numbers[0])
    found.update(np.float64(ticket.prediction).tobytes())
features, labels = generator.random((30, 5)), generator.random(30)
membership = np.column_stack([np.arange(30) % 2, np.ones(30)])
replayed = gw.replay(features, labels, membership)
found.update(np.asarray(replayed.prediction).tobytes())
print(found.hexdigest())
"""


@pytest.mark.slow
def test_a_model_in_plain_python_gives_the_same_bits():
    path = os.pathsep.join(sys.path)
    found = [
        subprocess.run(
            [sys.executable, "-c", MODEL],
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": plain},
            capture_output=True,
            text=True,
        )
        for plain in ("0", "1")
    ]
    assert [one.returncode for one in found] == [0, 0], found[1].stderr
    assert found[0].stdout == found[1].stdout
