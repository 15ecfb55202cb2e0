"""Units in headings: that of the label, its square, and powers of ten where figures are long."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from groupwise.files.text import shown

LABEL = "label"
"""What a label is called whose name is not known."""
LONG, TINY = 1e6, 1e-3
"""From here on, and below, a heading has a power of ten."""
DIGITS = 4
"""So many the largest figure of a column has, and all of them as many decimals."""
NAME = 16
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def label_unit(target: str | None) -> str:
    """The unit of a label, by its name.

    >>> label_unit("charges"), label_unit(None)
    ('charges', 'label')
    """
    return LABEL if target is None else shown(target, NAME)


def squared(unit: str) -> str:
    """The square of a unit.

    >>> squared("charges"), squared("total cost")
    ('charges²', '(total cost)²')
    """
    return f"{unit}²" if unit.isidentifier() else f"({unit})²"


def fixed(value: float, decimals: int) -> str:
    """A figure with so many decimals, a real minus sign and no minus zero."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e12:
        return f"{value:.3e}".replace("-", "−")
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


class Scale(NamedTuple):
    """How figures of a kind are shown: in 10^``exponent`` of their unit, with so many decimals."""

    exponent: int = 0
    decimals: int = 2

    @classmethod
    def of(cls, values: Iterable[float | None], powers: bool = True) -> "Scale":
        """For these figures; without ``powers`` of ten, decimals up to eight.

        >>> Scale.of([-6.5e9, 3.0e8]), Scale.of([12.0, None])
        (Scale(exponent=9, decimals=3), Scale(exponent=0, decimals=2))
        """
        known = (abs(value) for value in values if value is not None and math.isfinite(value))
        largest = max(known, default=0.0)
        if largest <= 0.0:
            return cls()
        size = math.floor(math.log10(largest))
        exponent = 0 if TINY <= largest < LONG or not powers else 3 * (size // 3)
        return cls(exponent, min(8, max(0, DIGITS - 1 - size + exponent)))

    def unit(self, name: str) -> str:
        """What the figures are in.

        >>> Scale(9, 3).unit("charges²"), Scale().unit("nats")
        ('10⁹ charges²', 'nats')
        """
        power = f"10{str(self.exponent).translate(SUPERSCRIPT)} " if self.exponent else ""
        return f"{power}{name}"

    def __call__(self, value: float | None) -> str:
        """A figure as text."""
        return "–" if value is None else fixed(value / 10.0**self.exponent, self.decimals)

    def signed(self, value: float) -> str:
        """A figure as text, with its sign.

        >>> Scale().signed(1.0), Scale().signed(-1.0), Scale().signed(0.001)
        ('+1.00', '−1.00', '0.00')
        """
        text = self(value)
        return f"+{text}" if value > 0.0 and any(c in "123456789" for c in text) else text
