"""What a failed check raises."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from groupwise.errors import GroupwiseError


class CheckFailed(GroupwiseError, AssertionError):
    """A component does not keep its contract; the message says which part of it."""


@contextmanager
def during(check: str, component: object) -> Iterator[None]:
    """Name the check and the component in whatever goes wrong inside."""
    name = f"{getattr(component, 'name', type(component).__name__)}, {check}"
    try:
        yield
    except CheckFailed as failure:
        raise CheckFailed(f"{name}: {failure}") from None
    except Exception as error:
        raise CheckFailed(f"{name}: raised {error!r}.") from error


def require(condition: object, message: str) -> None:
    """Fail with the message unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


def same(one: Any, other: Any) -> bool:
    """Equal, bit for bit; two NaN are equal."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(np.array_equal(one, other))
