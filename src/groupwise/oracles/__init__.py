"""Offline optimisers that learners call.

An oracle has one method: ``minimise(costs) -> action`` for linear optimisation over a decision set,
``minimise(contexts, costs) -> policy`` with ``policy(x) -> action`` for classes of policies. Any
object with that method can be one; ``groupwise.protocols`` says what else it may tell.
"""

from collections.abc import Mapping
from typing import Any

from groupwise.errors import ConfigurationError
from groupwise.oracles.finite import Finite
from groupwise.oracles.finite_class import FiniteClass
from groupwise.oracles.shortest_path import ShortestPath
from groupwise.oracles.sklearn import Sklearn
from groupwise.oracles.stumps import Stumps

__all__ = ["Finite", "FiniteClass", "ShortestPath", "Sklearn", "Stumps", "oracle_from_dict"]


def oracle_from_dict(fields: Mapping[str, Any]) -> Any:
    """The oracle that its ``to_dict`` wrote."""
    parameters = dict(fields)
    name = parameters.pop("type", None)
    if name == "ShortestPath":
        return ShortestPath.from_dict(parameters)
    kinds: dict[str, Any] = {"Finite": Finite, "FiniteClass": FiniteClass, "Stumps": Stumps}
    if name not in kinds:
        raise ConfigurationError(f"There is no oracle called {name!r}.")
    return kinds[name](**parameters)
