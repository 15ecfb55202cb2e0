"""What happens between rounds leaves no trace: questions, copies, files, undone stretches, errors.

Two models see the same rounds; one of them is disturbed in between. Rows bring new features and
groups all the time, so that groups have widths of their own.
"""

import copy
import pickle
import random
from contextlib import suppress
from typing import Any

import polars
import pytest

import groupwise as gw
from groupwise.learners import Ridge
from tests.few import few

LEARNERS: list[Any] = [
    Ridge(),
    Ridge(forward=True),
    Ridge(0.5, forgetting=0.9),
    [Ridge(), Ridge(10.0, forward=True), Ridge(forgetting=0.99)],
]


def a_row(draw: random.Random, width: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "a": draw.choice("xyz"),
        "b": draw.choice(["p", "q", None]),
        "u": draw.uniform(-1, 1),
        "v": draw.uniform(-1, 1) * 10 ** draw.choice([0, 0, 3]),
    }
    for _ in range(draw.randrange(3)):
        row[f"c{draw.randrange(width)}"] = draw.choice([1.0, 0.0, 2.5])
    return row


def disturbed(model: gw.Groupwise, draw: random.Random, width: int, path: Any) -> gw.Groupwise:
    """The same model after something that must not matter."""
    what = draw.randrange(14)
    if what in (0, 1):
        for _ in range(3):
            model.predict_one(a_row(draw, 3 * width))
    elif what == 2:
        model = copy.deepcopy(model)
    elif what == 3:
        model = pickle.loads(pickle.dumps(model))
    elif what in (4, 5):
        model.save(path)
        model = gw.load(path)
    elif what == 6:
        with suppress(KeyError), model.all_or_nothing():
            model.learn_one(a_row(draw, 3 * width), 0.3)
            raise KeyError
    elif what == 7:
        with pytest.raises(gw.errors.FeatureError):
            model.predict({**a_row(draw, width), "u": 1e200})
    return model


@pytest.mark.parametrize("seed", few(range(40), 15))
@pytest.mark.slow
def test_nothing_in_between_matters(seed, tmp_path):
    draw = random.Random(seed)
    width = draw.choice([2, 20, 120])
    declared: list[Any] = [gw.by("a"), gw.by("b")]
    options: dict[str, Any] = {
        "learner": LEARNERS[seed % len(LEARNERS)],
        "aggregator": draw.choice([gw.aggregators.AdaNormalHedge(), gw.aggregators.Specialists()]),
        "always_on": draw.random() < 0.8,
        "intersections": draw.choice([None, 2]),
        "seed": seed,
    }
    calm, other = (gw.Groupwise(declared, **options) for _ in range(2))
    for _ in range(draw.randrange(10, 120)):
        other = disturbed(other, draw, width, tmp_path / "model.gw")
        row, label = a_row(draw, width), draw.random()
        tickets = calm.predict(row), other.predict(row)
        assert tickets[0].prediction == tickets[1].prediction
        for model, ticket in zip((calm, other), tickets, strict=True):
            model.learn(ticket, label)
    assert repr(calm.regret().rows) == repr(other.regret().rows)
    rows = [a_row(draw, 5) for _ in range(60)]
    fields = sorted({field for row in rows for field in row} - {"a", "b"})
    frame = polars.DataFrame(
        [
            {"a": row["a"], "b": row["b"], **{name: row.get(name, 0.0) for name in fields}}
            for row in rows
        ],
        infer_schema_length=None,
    ).with_columns(y=polars.Series([draw.random() for _ in rows]))
    other.replay(frame, "y", jobs=draw.choice([1, 2]))
    for row in frame.to_dicts():
        label = row.pop("y")
        calm.learn_one(row, label)
    assert repr(calm.regret().rows) == repr(other.regret().rows)
