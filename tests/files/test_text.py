"""Text from data, for people to read."""

import math

import pytest

from groupwise.files.text import amount, listed, quoted, shown


def test_control_characters_are_visible_and_long_text_is_cut():
    assert shown("a\x1b[31m\tb\n") == r"a\x1b[31m\tb\n"
    assert shown("x" * 300) == "x" * 199 + "…"
    assert quoted("it's" + "y" * 70) == "'it's" + "y" * 55 + "…'"
    assert listed(map(str, range(25)), 3) == "'0', '1', '2' and 22 more"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-1234.6, "−1,235"), (999.96, "1000"), (1e12, "1e+12"), (math.nan, "–")],
)
def test_amounts(value, text):
    assert amount(value) == text
    assert amount(math.inf) == amount(-math.inf) == "–"
