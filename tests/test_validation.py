"""Parts by name: those of one's own are saved and read once they are registered."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise import archive, validation
from groupwise.errors import ConfigurationError, SnapshotError
from groupwise.learners import Ridge
from groupwise.validation import part_called, part_from_dict, part_to_dict, register


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(validation, "_PARTS", dict(validation._PARTS))


@dataclass(frozen=True)
class Rescaled:
    """An aggregator: AdaNormalHedge whose bound is doubled, to be told apart."""

    factor: float = 2.0

    def log_weights(self, regret, absolute, loss):
        return gw.aggregators.AdaNormalHedge().log_weights(regret, absolute, loss)

    def bound(self, regret, absolute, prior, loss):
        hedge = gw.aggregators.AdaNormalHedge()
        return self.factor * hedge.bound(regret, absolute, prior, loss)

    def plays(self, loss):
        return ("mean",)


@dataclass(frozen=True)
class Stiff(Ridge):
    """A learner: ridge regression under a name of one's own."""


class Written:
    """A learner that writes itself down."""

    def __init__(self, penalty):
        self.inner = Ridge(penalty)

    @classmethod
    def banks(cls, learners, columns, setting):
        return Ridge.banks([learner.inner for learner in learners], columns, setting)

    def to_dict(self):
        return {"type": "Written", "told": self.inner.penalty}

    @classmethod
    def from_dict(cls, fields):
        return cls(fields["told"])


def rounds(count=30):
    return [({"g": "abc"[t % 3], "u": (t * 5 % 7) / 7}, (t * 3 % 11) / 11) for t in range(count)]


@pytest.mark.parametrize(
    "parts",
    [{"learner": Stiff(0.5)}, {"learner": Written(0.5)}, {"aggregator": Rescaled(3.0)}],
    ids=["learner", "learner that writes itself", "aggregator"],
)
def test_a_part_of_one_s_own_is_saved_and_goes_on(parts, tmp_path):
    (part,) = parts.values()
    model = gw.Groupwise([gw.by("g")], **parts)
    for row, label in rounds():
        model.learn_one(row, label)
    with pytest.raises(SnapshotError, match=rf"{type(part).__name__} cannot be saved.*register"):
        model.save(tmp_path / "model.gw")
    assert list(tmp_path.iterdir()) == []
    assert register(type(part)) is type(part)
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    (loaded,) = again.learners if "learner" in parts else (again.aggregator,)
    assert type(loaded) is type(part)
    assert part_to_dict(loaded) == part_to_dict(part)
    for row, label in rounds():
        assert again.predict_one(row) == model.predict_one(row)
        again.learn_one(row, label)
        model.learn_one(row, label)
    assert again.regret().rows == model.regret().rows


def test_a_name_that_was_not_registered_is_refused(tmp_path):
    register(Stiff)
    path = tmp_path / "model.gw"
    gw.Groupwise([gw.by("g")], Stiff()).save(path)
    del validation._PARTS["Stiff"]
    with pytest.raises(SnapshotError, match=r"no part called 'Stiff'.*register"):
        gw.load(path)
    register(Stiff)
    gw.load(path)
    header, arrays = archive.read(path)
    for bad in ({"type": "os.system"}, {"type": None}, {}, {"type": "Stiff", "rate": 1.0}):
        header["model"]["learner"] = [bad]
        archive.write(path, header, arrays)
        with pytest.raises(SnapshotError, match="damaged"):
            gw.load(path)


def test_a_second_class_of_a_name_is_refused():
    register(Stiff)
    register(Stiff)  # the same once more is nothing new

    def another():
        @dataclass(frozen=True)
        class Stiff(Ridge):
            pass

        return Stiff

    with pytest.raises(ConfigurationError, match="a part called Stiff already"):
        register(another())
    assert part_from_dict({"type": "Stiff"}) == Stiff()

    class Mine:
        pass

    Mine.__name__ = "Ridge"
    with pytest.raises(ConfigurationError, match="a part called Ridge already"):
        register(Mine)
    assert part_to_dict(Mine()) is None  # it only has the name
    assert part_to_dict(another()()) is None
    assert part_from_dict({"type": "Ridge"}) == Ridge()


def test_a_class_that_is_defined_again_takes_its_name_over():
    """As in a notebook, where a cell is run twice."""

    def cell():
        @dataclass(frozen=True)
        class Cell:
            rate: float = 0.5

        return Cell

    register(cell())
    again = cell()
    register(again)
    assert type(part_from_dict({"type": "Cell", "rate": 0.25})) is again


def test_parts_have_short_names_too():
    assert part_called("learner", "ridge") == Ridge()
    assert part_called("learner", "forward", penalty=0.5) == Ridge(0.5, forward=True)
    assert part_called("aggregator", "specialists") == gw.aggregators.Specialists()
    assert part_called("aggregator", "prod") == gw.aggregators.Prod()
    with pytest.raises(ConfigurationError, match=r"no learner 'lasso'.*one of portfolio, ridge"):
        part_called("learner", "lasso")


@pytest.mark.parametrize("part", [Ridge(0.5, True, 0.9), gw.aggregators.AdaNormalHedge()], ids=repr)
def test_what_is_written_down_is_what_is_read(part):
    fields = part_to_dict(part)
    assert fields is not None
    assert part_from_dict(fields) == part


NEARLY: dict[str, tuple[dict[str, Any], str]] = {
    "a learner's class": ({"learner": Ridge}, "Ridge is a class, and not a learner: give Ridge("),
    "a learner's name": ({"learner": "ridge"}, "In Python give gw.learners.Ridge()"),
    "one with settings": ({"learner": "forward"}, "give gw.learners.Ridge(forward=True)"),
    "the name of the default": ({"learner": "portfolio"}, "it is the default: leave it out"),
    "no name of any": ({"learner": "forest"}, "'forest' is not a learner: it needs the methods"),
    "an aggregator's class": ({"aggregator": gw.aggregators.Prod}, "aggregator: give Prod(...)"),
    "an aggregator's name": ({"aggregator": "prod"}, "In Python give gw.aggregators.Prod()"),
    "a number": ({"aggregator": 7}, "7 is not an aggregator: it needs the methods"),
    "several numbers": ({"learner": [np.ones(2)]}, "is not a learner: it needs the methods"),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_a_part_is_told_what_it_lacks(name):
    parts, said = NEARLY[name]
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        gw.Groupwise([gw.by("sex")], **parts)
