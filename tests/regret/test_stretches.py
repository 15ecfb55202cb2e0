"""What tables say of the last rounds of groups, against books of our own."""

import copy
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.snapshot import widened
from tests.few import few

AGGREGATORS = [
    gw.aggregators.Prod(),
    gw.aggregators.AdaNormalHedge(),
    gw.aggregators.Specialists(),
]


def true_regret(part, theirs=None):
    """Loss and regret of some rounds, from what was issued: to the best model, or to an expert."""
    weight, label, told = (np.array([one[k] for one in part]) for k in ("weight", "label", "told"))
    lost = math.fsum(weight * (told - label) ** 2)
    if theirs is not None:
        return lost, lost - math.fsum(
            w * (one["theirs"] - one["label"]) ** 2 for w, one in zip(weight, part, strict=True)
        )
    rows = np.array([one["row"] for one in part]) * weight[:, None] ** 0.5
    wanted = label * weight**0.5
    best = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return lost, lost - float(((rows @ best - wanted) ** 2).sum())


def changed(model, t, path):
    """The model by another way: copied, pickled, or from a file."""
    if t % 10 == 3:
        return copy.deepcopy(model)
    if t % 10 == 6:
        return pickle.loads(pickle.dumps(model))
    if t % 10 == 9:
        model.save(path)
        return gw.load(path)
    return model


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("seed", few(range(9), 1))
def test_what_tables_say_of_stretches_is_true_at_every_label(aggregator, seed, tmp_path):
    draw = np.random.default_rng(seed)
    low, high = -5.0, 20.0
    model = gw.Groupwise(
        [gw.by("g"), gw.weight("w")],
        loss=gw.losses.Square(low, high),
        aggregator=aggregator,
        learner=None if seed % 2 else gw.learners.Ridge(0.1),
        windows=gw.Windows(1 << seed % 3),
        indicators=False,
        features=["x", "z"],
        experts=["theirs"],
        prior={"g=a": 1e-100, "g=b": 1e100, "w": 1e-6},
        always_on=seed % 4 != 2,
    )
    rounds: dict[str, list[Any]] = {}
    waiting: list[Any] = []
    claims = 0
    for t in range(60):
        row = {
            "g": [None, "a", "b", "c", "d"][int(draw.integers(2 + t // 20))],
            "w": float(draw.choice([0.0, 1e-9, 1.0, draw.random()])),
            "x": float(draw.normal()),
            "z": float(draw.random()),
            "theirs": float(draw.uniform(low, high)),
        }
        ticket = model.predict(row)
        far = high if ticket.prediction < (low + high) / 2 else low
        waiting.append((ticket, far if t % 3 else row["theirs"]))
        if t == 30:
            model.forget(waiting.pop(0)[0])
        if t == 40:
            high = 30.0
            model = widened(model, low, high)
        model = changed(model, t, tmp_path / "model.gw")
        while waiting and draw.random() < 0.6:
            one, label = waiting.pop(int(draw.integers(len(waiting))))
            one = gw.Ticket.from_json(one.to_json()) if draw.random() < 0.3 else one
            model.learn(one, label)
            features = [1.0, one.row["x"], one.row["z"]]
            entry = {"row": features, "label": label, "told": one.prediction, **one.row}
            for name, weight in one.groups.items():
                rounds.setdefault(name, []).append({**entry, "weight": weight})
            for last, against in itertools.product((1, 4, 13, 10**18), (None, "theirs")):
                for line in model.regret(last=last, against=against):
                    own, length = rounds[line["group"]], line["length"]
                    assert min(last, len(own)) <= length <= len(own)
                    assert length == len(own) or length < 4 * max(last, model.windows.shortest)
                    lost, regret = true_regret(own[len(own) - length :], against)
                    assert line["loss"] == pytest.approx(lost, abs=1e-8)
                    assert line["regret"] >= regret - 1e-6
                    if line["status"] in ("proved", "loose", "vacuous"):
                        assert regret <= line["certificate"] + 1e-8
                        claims += 1
                    else:
                        assert line["status"] in ("void", "numerically uncertain")
    assert claims > 300


def test_few_rows_is_said_of_whole_stretches():
    model = gw.Groupwise([], windows=gw.Windows(8), learner=gw.learners.Ridge())
    for t in range(17):
        model.learn_one({"x": float(t % 5), "z": float(t % 3)}, t / 17)
    found = model.regret(last=5)["always_on"]
    assert found["length"] == 9
    assert found["rounds"] == 9.0
    assert not found["few_rows"]
