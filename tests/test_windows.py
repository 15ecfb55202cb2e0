"""Windows: against all of them as declared groups, brute force, and every way through a stream."""

import itertools
import math
from typing import Any

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise.dyadic import share
from groupwise.regret.certificate import aggregator_bounds, certify, totals

KINDS: list[dict[str, Any]] = [
    {},
    {"learner": gw.learners.Ridge(0.1), "aggregator": gw.aggregators.AdaNormalHedge()},
    {"learner": gw.learners.Ridge(), "aggregator": gw.aggregators.Specialists()},
]


PER_GROUP: dict[str, Any] = {
    "learner": {
        gw.by("g"): [gw.learners.Ridge(0.1), gw.learners.Ridge(9)],
        ...: gw.learners.Ridge(),
    }
}


def slow(case):
    """A case for the long run."""
    return pytest.param(case, marks=pytest.mark.slow)


class Mean:
    """A learner in Python."""

    def __init__(self):
        self.weight, self.total = 1.0, 0.5

    def advise(self, row, weight):
        return self.total / self.weight

    def update(self, row, label, weight):
        self.weight += weight
        self.total += weight * label


PYTHON: dict[str, Any] = {"learner": [gw.learners.Ridge(forgetting=0.99), Mean()]}


def stream(rows, groups=3, width=3, seed=0):
    """Features, labels whose model changes twice, and who is in which group."""
    draw = np.random.default_rng(seed)
    features = np.column_stack([np.ones(rows), draw.random((rows, width - 1))])
    group = draw.integers(0, groups, rows)
    models = draw.uniform(-1, 1, (3, groups, width))
    now = models[np.minimum(3 * np.arange(rows) // rows, 2), group]
    labels = 0.5 + (features * now).sum(axis=1) / 4 + 0.05 * draw.standard_normal(rows)
    return features, np.clip(labels, 0, 1), group


def frame_of(features, labels, group):
    columns = {f"x{i}": features[:, i] for i in range(1, features.shape[1])}
    return pandas.DataFrame({**columns, "g": [f"v{k}" for k in group], "y": labels})


def windows_by_clock(clock, shortest):
    """Every dyadic interval of so many rounds that has begun, by definition: (start, length)."""
    lengths = itertools.takewhile(lambda one: one <= clock, (shortest << j for j in range(40)))
    return [(k * one, one) for one in lengths for k in range(1, clock // one + 1)]


def as_columns(member, shortest):
    """All windows of all groups as columns of a membership, with the masses of all columns."""
    found, masses, about = [], [], []
    for g in range(member.shape[1]):
        rows = np.flatnonzero(member[:, g])
        for start, length in windows_by_clock(rows.size - 1, shortest):
            column = np.zeros(len(member))
            inside = rows[start : start + length]
            column[inside] = member[inside, g]
            found.append(column)
            masses.append(share(start // shortest))
            about.append((g, start, length))
    return np.column_stack([*found, member]), [*masses, *[1.0] * member.shape[1]], about


@pytest.mark.parametrize("kind", [*KINDS[1:], {"learner": gw.learners.Ridge()}])
def test_windows_are_groups_like_any_other(kind):
    features, labels, group = stream(150, 2)
    member = np.column_stack([group == 0, 0.5 * (group == 1), np.ones(150)]).astype(float)
    names = ["a", "b", "always_on"]
    ours = gw.replay(features, labels, member, names=names, windows=gw.windows(4), **kind)
    columns, masses, about = as_columns(member, 4)
    every = [f"w{i}" for i in range(len(about))] + names
    plain = gw.replay(features, labels, columns, names=every, prior=masses, **kind)
    np.testing.assert_allclose(ours.prediction, plain.prediction, rtol=0, atol=1e-12)
    own = np.cumsum(columns != 0, axis=1)[:, -1].cumsum()
    assert ours.advice is not None
    assert plain.advice is not None
    last_entry = plain.advice[own - 1]  # of the always-on group in every row
    mine = ours.advice[(member != 0).sum(axis=1).cumsum() - 1]
    np.testing.assert_allclose(mine, last_entry, rtol=0, atol=1e-12)
    one, other = ours.regret(), plain.regret()
    for name in names:
        for key in ("rounds", "loss", "best_loss", "certificate", "aggregator", "a_priori"):
            assert one[name][key] == pytest.approx(other[name][key], rel=1e-9, abs=1e-10), key
    for last in (1, 5, 17, 40, 60):
        for g, line in enumerate(ours.regret(last=last).rows):
            clock = int((member[:, g] != 0).sum())
            length, pieces = shortest_stretch(clock, last, 4)
            assert line["length"] == length
            parts = [
                other[names[g]] if piece is None else other[f"w{about.index((g, *piece))}"]
                for piece in pieces
            ]
            for key in ("rounds", "loss", "best_loss", "regret", "certificate"):
                whole = sum(part[key] for part in parts)
                assert line[key] == pytest.approx(whole, rel=1e-9, abs=1e-10), (key, last, g)


def test_windows_have_the_learners_of_their_group():
    """Against all of them as declared groups, of which everyone has what its group has."""
    features, labels, group = stream(150, 2)
    member = np.column_stack([group == 0, 0.5 * (group == 1), np.ones(150)]).astype(float)
    names = ["a", "b", "always_on"]
    every = [gw.learners.Ridge(9), gw.learners.Ridge(0.1), gw.learners.Ridge(forgetting=0.9)]
    roster: dict[Any, Any] = {"a": every[:2], "always_on": every[2], "b": every[1]}
    ours = gw.replay(features, labels, member, names=names, windows=gw.Windows(4), learner=roster)
    columns, masses, about = as_columns(member, 4)
    named = {f"w{i}": roster[names[g]] for i, (g, _, _) in enumerate(about)}
    plain = gw.replay(
        *(features, labels, columns), names=[*named, *names], prior=masses, learner=named | roster
    )
    np.testing.assert_allclose(ours.prediction, plain.prediction, rtol=0, atol=1e-12)
    one, other = ours.regret(), plain.regret()
    for name in names:
        for key in ("rounds", "loss", "best_loss", "certificate", "learner", "aggregator"):
            assert one[name][key] == pytest.approx(other[name][key], rel=1e-9, abs=1e-10), key
    asked = gw.Groupwise(
        [gw.by("g")], learner=lambda one: every[: 1 + len(one.values)], windows=gw.Windows(2)
    )
    for t in range(40):  # a group of more learners than any had comes after windows have begun
        asked.learn_one({"g": None if t < 9 else "ab"[t % 2], "x": t / 40}, t % 3 / 2)
    assert len(asked.predict({"g": "a", "x": 0.5}).play.advice) == 3 + 1 + 5 + 1
    assert all(line["length"] >= 3 for line in asked.regret(last=3))


def shortest_stretch(clock, last, shortest):
    """By definition: its length, and its windows; None stands for all rounds."""
    found: list[tuple[int, list[Any]]] = [(clock, [None])]
    for j in range(40):
        length = shortest << j
        start = clock // length * length
        if start >= length and clock > start:
            found.append((clock - start, [(start, length)]))
        if start >= 2 * length:
            pieces = [(start - length, length)]
            pieces += [(start, length)] if clock > start else []
            found.append((clock - start + length, pieces))
    fit = [one for one in found if one[0] >= last]
    return min(fit, key=lambda one: (one[0], len(one[1]))) if fit else found[0]


def same(one, other):
    """The same file but for the key."""
    (_, mine), (_, theirs) = one.contents(), other.contents()
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    for last in (None, 1, 30, 100):
        assert one.regret(last=last).rows == other.regret(last=last).rows


@pytest.mark.parametrize("kind", [KINDS[0], *map(slow, KINDS[1:]), PER_GROUP, PYTHON])
def test_loop_replay_pieces_and_files_agree(kind, tmp_path, monkeypatch):
    saved = not isinstance(kind.get("learner"), list)
    features, labels, group = stream(180, 11)
    frame = frame_of(features, labels, group)
    rows = [{name: row[name] for name in row if name != "y"} for row in frame.to_dict("records")]

    def fresh():
        return gw.Groupwise([gw.by("g")], windows=gw.Windows(2), intervals=0.9, **kind)

    loop = fresh()
    played = []
    for row, label in zip(rows, labels.tolist(), strict=True):
        ticket = loop.predict(row)
        played.append(ticket.prediction)
        loop.learn(ticket, label)
    whole = fresh()
    np.testing.assert_array_equal(whole.replay(frame, "y", jobs=2).prediction, played)
    monkeypatch.setattr("groupwise.stream.FEWEST", 7)
    monkeypatch.setattr("groupwise.stream.BEGUN", 7)
    pieces = fresh()
    found = [pieces.replay(frame[:100], "y", jobs=1), pieces.replay(frame[100:101], "y")]
    if saved:
        pieces.save(tmp_path / "model.gw")
        pieces = gw.load(tmp_path / "model.gw")
    for row, label in zip(rows[101:140], labels[101:140].tolist(), strict=True):
        pieces.predict({**row, "g": "never learned"})
        pieces.regret(last=5)
        pieces.learn_one(row, label)
    found.append(pieces.replay(frame[140:], "y", jobs=2))
    predictions = np.concatenate([one.prediction for one in found])
    np.testing.assert_array_equal(predictions, np.delete(played, slice(101, 140)))
    if saved:
        same(loop, whole)
        same(loop, pieces)
    else:
        assert loop.regret(last=20).rows == whole.regret(last=20).rows
        assert loop.regret(last=20).rows == pieces.regret(last=20).rows


def every_window(model, rounds):
    """Regret and certificate of every group and window: our own sums beside the model's books."""
    reduction, names = model._reduction, model.group_names
    bounds, clocks = aggregator_bounds(reduction, len(names)), reduction.windows
    for g, name in enumerate(names):
        own = rounds[name]
        clock = len(own)
        assert clocks.clock[g] == clock
        places = [(g, 0, clock)]
        for level in range(clocks.live.shape[1]):
            length = clocks.kind.shortest << level
            start = clock // length * length
            places.append((int(clocks.live[g, level]), start, clock))
            places.append((int(clocks.before[g, level]), start - length, start))
        for number, start, stop in places:
            if number < 0:
                continue
            part = own[start:stop]
            books = totals(reduction.books.of(number))
            known = reduction.hindsight(number, len(model.feature_names))
            found = certify(reduction, books, number, known, bounds[number])
            rows = np.array([[w**0.5 * x for x in row] for w, row, _, _ in part]).reshape(-1, 3)
            wanted = np.array([w**0.5 * label for w, _, label, _ in part])
            model_ = np.linalg.lstsq(rows, wanted, rcond=None)[0] if part else np.zeros(3)
            best = float(((rows @ model_ - wanted) ** 2).sum()) if part else 0.0
            lost = math.fsum(w * loss for w, _, _, loss in part)
            assert float(books.loss[0]) == pytest.approx(lost, abs=1e-9)
            assert known.best == pytest.approx(best, abs=1e-8)
            yield lost - best, found.total, found.status


@pytest.mark.parametrize("late", [slow(False), True])
@pytest.mark.parametrize("kind", [KINDS[0], PER_GROUP, *map(slow, KINDS[1:])])
@pytest.mark.parametrize("adversary", ["farthest", "switching", slow("leader")])
def test_certificates_hold_for_every_window(kind, adversary, late):
    """After every label."""
    draw = np.random.default_rng(len(adversary) + 2 * late)
    model = gw.Groupwise(
        [gw.by("g"), gw.weight("w")],
        windows=gw.Windows(2),
        indicators=False,
        features=["x", "z"],
        **kind,
    )
    rounds: dict[str, list[Any]] = {}
    waiting: list[Any] = []
    ratio, checked = 0.0, 0
    for t in range(90):
        row = {
            "g": "ab"[int(draw.integers(2))],
            "w": float(draw.random()),
            "x": float(draw.random()),
            "z": float(draw.random()),
        }
        ticket = model.predict(row)
        p = ticket.prediction
        heaviest = ticket.advice.ravel()[np.argmax(ticket.weights)]
        label = {
            "farthest": float(p < 0.5),
            "switching": float(t // 13 % 2),
            "leader": float(heaviest < 0.5),
        }[adversary]
        waiting.append((ticket, label))
        while waiting and (not late or draw.random() < 0.5):
            one, label = waiting.pop(int(draw.integers(len(waiting))))
            if draw.random() < 0.3:
                one = gw.Ticket.from_json(one.to_json())
            model.learn(one, label)
            lost = (one.prediction - label) ** 2
            features = [1.0, one.row["x"], one.row["z"]]
            for name, weight in one.groups.items():
                rounds.setdefault(name, []).append((weight, features, label, lost))
            for regret, bound, status in every_window(model, rounds):
                assert status in ("proved", "loose", "vacuous")
                assert regret <= bound + 1e-9
                ratio, checked = max(ratio, regret / bound if bound > 0 else 0.0), checked + 1
    assert checked > 2_000
    assert ratio > 0.1


def test_rows_that_nobody_is_awake_for():
    rows: Any = gw.replay(np.ones((40, 1)), np.linspace(0, 1, 40), np.zeros((40, 0)), windows=True)
    assert np.isfinite(rows.prediction).all()
    assert len(rows.regret()) == 0


def test_a_window_that_just_begins_is_no_part_of_a_stretch():
    features, labels, _ = stream(128, 1)
    options: dict[str, Any] = {"names": ["always_on"], "learner": gw.learners.Ridge()}
    options["aggregator"] = gw.aggregators.Specialists()
    ours = gw.replay(features, labels, np.ones((128, 1)), windows=gw.windows(32), **options)
    every = 1.0 + math.fsum(share(start // 32) for start, _ in windows_by_clock(128, 32))
    for last, length in ((10, 32), (33, 64)):
        row = ours.regret(last=last)["always_on"]
        assert row["length"] == length
        assert row["aggregator"] == pytest.approx(
            0.5 * math.log(every / share((128 - length) // 32)), rel=1e-9
        )


@pytest.mark.parametrize(
    "array", [{"windows.clock": -1}, {"windows.freed": math.nan}, {"windows.freed": -1.0}]
)
def test_files_with_wrong_clocks_are_damaged(array):
    model = gw.Groupwise([gw.by("g")], windows=gw.Windows(2))
    for t in range(9):
        model.learn_one({"g": "ab"[t % 2], "x": 0.5}, 0.5)
    header, arrays = model.contents()
    for name, value in array.items():
        arrays[name][0] = value
    with pytest.raises(ValueError, match=r"windows\."):
        gw.Groupwise.restored(header, arrays)


@pytest.mark.parametrize("always_on", [True, False])
def test_groups_that_come_late_take_numbers_from_windows_of_other_learners(always_on, tmp_path):
    """The same as where all numbers are known beforehand; a function's answers are in the file."""
    rosters = [[gw.learners.Ridge(3.0)], [gw.learners.Ridge(), gw.learners.Ridge(50.0)]]
    draw = np.random.default_rng(3)
    rows = [{"g": f"v{int(draw.integers(1 + t // 12))}", "x": draw.random()} for t in range(240)]
    labels = draw.random(240)

    def learner(group):
        return rosters[sum(map(ord, group.name)) % 2]

    def fresh():
        return gw.Groupwise(
            [gw.by("g")], learner=learner, windows=gw.Windows(2), always_on=always_on
        )

    loop, whole = fresh(), fresh()
    for row, label in zip(rows, labels.tolist(), strict=True):
        loop.learn_one(row, label)
    whole.replay(pandas.DataFrame(rows).assign(y=labels), "y")
    loop.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw", learner=learner)
    for last in (None, 1, 9):
        assert loop.regret(last=last).rows == whole.regret(last=last).rows
        assert loop.regret(last=last).rows == again.regret(last=last).rows
    again.replay(pandas.DataFrame(rows).assign(y=labels), "y")
    loop.replay(pandas.DataFrame(rows).assign(y=labels), "y", jobs=2)
    assert loop.regret().rows == again.regret().rows
    for row in rows:
        assert loop.predict(row).prediction == again.predict(row).prediction


def test_files_whose_windows_have_the_learners_of_others_are_damaged():
    own = {gw.by("g"): gw.learners.Ridge(3.0), ...: gw.learners.Ridge()}
    model = gw.Groupwise([gw.by("g")], learner=own, windows=gw.Windows(2))
    for t in range(9):
        model.learn_one({"g": "ab"[t % 2], "x": 0.5}, 0.5)
    header, arrays = model.contents()
    numbers = arrays["rosters.number"]
    swapped = [3 + int(np.flatnonzero(numbers[3:] == number)[0]) for number in (0, 1)]
    numbers[swapped] = numbers[swapped[::-1]]
    with pytest.raises(ValueError, match="other learners"):
        gw.Groupwise.restored(header, arrays)


def test_experts_that_are_gone_are_not_forgotten():
    features, labels, _group = stream(64, 1)
    ours = gw.replay(
        features,
        labels,
        np.ones((64, 1)),
        names=["always_on"],
        windows=gw.Windows(1),
        learner=gw.learners.Ridge(),
        aggregator=gw.aggregators.Specialists(),
    )
    # A window has begun at every multiple, also those that begin after the last round.
    every = 1.0 + math.fsum(share(start) for start, _ in windows_by_clock(64, 1))
    bound = ours.regret()["always_on"]["aggregator"]
    assert bound == pytest.approx(0.5 * math.log(every), rel=1e-9)
    assert bound >= 0.5 * math.log(every)


def test_memory_grows_like_the_logarithm_of_the_rounds():
    features, labels, group = stream(3_000, 2)
    model = gw.Groupwise([gw.by("g")], learner=gw.learners.Ridge(), windows=gw.Windows(4))
    frame, reduction = frame_of(features, labels, group), model._reduction
    sizes, clocks = [], reduction.windows
    crew: Any = reduction.banks[0]
    assert clocks is not None
    for start in range(0, 3_000, 300):
        model.replay(frame[start : start + 300], "y")
        numbers = clocks.tidy(reduction, 3)
        levels = [int(clock // 4).bit_length() for clock in clocks.clock[:3]]
        assert numbers <= 3 + 2 * sum(levels)
        sizes.append(crew.banks[0].store.pool.nbytes)
    assert sizes[-1] <= 4 * sizes[2]
    ticket = model.predict({"x1": 0.5, "x2": 0.5, "g": "v0"})
    own = [int(clocks.clock[model.group_names.index(name)]) for name in ticket.groups]
    assert len(ticket.play.advice) == sum((clock // 4).bit_length() + 1 for clock in own)
    assert ticket.advice.shape == (2,)


def test_windows_that_begin_again_do_so_from_nothing():
    features, labels, group = stream(100, 2)
    model = gw.Groupwise([gw.by("g")], windows=gw.Windows(4))
    model.replay(frame_of(features, labels, group), "y")
    model.restart()
    row = {"x1": 0.5, "x2": 0.5, "g": "v0"}
    assert len(model.predict(row).play.advice) == 2
    for _ in range(20):
        model.learn_one(row, 0.5)
    assert len(model.predict(row).play.advice) == 8
    assert {line["status"] for line in model.regret(last=4)} == {"estimated"}


def test_the_table_of_a_stretch_says_how_long_it_is():
    features, labels, group = stream(100, 2)
    model = gw.Groupwise([gw.by("g")], windows=gw.windows(32))
    model.replay(frame_of(features, labels, group), "y")
    table = model.regret(last=30)
    assert table["always_on"]["length"] == 36
    assert "length" in str(table)
    assert "36" in str(table)
    assert "length" not in model.regret()["always_on"]
    assert model.regret(last=1_000)["always_on"]["length"] == 100


def test_what_has_no_windows_says_so():
    makes: list[tuple[dict[str, Any], str]] = [
        ({"windows": 3}, "give True"),
        ({"windows": True, "loss": gw.losses.Log()}, "numbers"),
        ({"windows": True, "aggregator": Python()}, "own aggregators"),
    ]
    for options, said in makes:
        with pytest.raises(gw.errors.ConfigurationError, match=said):
            gw.Groupwise([gw.by("g")], **options)
    for shortest in (0, 3, 2.0, True, -4, 1 << 50):
        with pytest.raises(gw.errors.ConfigurationError, match="power of two"):
            gw.windows(shortest)  # type: ignore[arg-type]
    with pytest.raises(gw.errors.ConfigurationError, match="FTPL has no windows"):
        gw.Groupwise(
            [gw.by("g")],
            learner=gw.learners.FTPL(oracle(), 4.0),
            windows=True,
            loss=gw.losses.Linear(0, 4),
        )
    plain = gw.Groupwise([gw.by("g")])
    with pytest.raises(gw.errors.ConfigurationError, match="windows=True"):
        plain.regret(last=10)
    model = gw.Groupwise([gw.by("g")], windows=True)
    for last in (0, -1, 1.5, True):
        with pytest.raises(gw.errors.ConfigurationError, match="positive whole number"):
            model.regret(last=last)  # type: ignore[arg-type]
    with pytest.raises(gw.errors.ConfigurationError, match="leave windows out"):
        gw.PayForFeedback(model)


class Python(gw.aggregators.AdaNormalHedge):
    """An aggregator of one's own."""


def oracle():
    """One that picks the cheapest of four."""

    class Cheapest:
        dimension = 4

        def minimise(self, costs):
            return np.eye(4)[np.argmin(costs)]

    return Cheapest()


def changing(kind, seed, rows=24_000, width=6, count=4, noise=0.05):
    """Groups whose linear models change at times nobody knows; "none": they stay."""
    draw = np.random.default_rng(seed)
    features = np.column_stack([np.ones(rows), draw.random((rows, width - 1))])
    group = draw.integers(0, count, rows)
    labels = np.empty(rows)
    for g in range(count):
        own = np.flatnonzero(group == g)
        model = np.repeat(draw.uniform(-1, 1, (1, width)), own.size, axis=0)
        if kind == "jumps":
            for at in np.sort(draw.integers(200, own.size - 1_000, 3)):
                model[at:] = draw.uniform(-1, 1, width)
        elif kind == "to and fro":
            period = int(draw.integers(1_100, 1_900))
            model[np.arange(own.size) // period % 2 == 1] = draw.uniform(-1, 1, width)
        elif kind == "drift":
            model += np.cumsum(0.02 * draw.standard_normal(model.shape), axis=0)
            model = np.abs((model + 1) % 4 - 2) - 1
        labels[own] = (features[own] * model).sum(axis=1)
    labels = 0.5 + labels / (2 * (2 * width) ** 0.5) + noise * draw.standard_normal(rows)
    member = np.column_stack([*(group == g for g in range(count)), np.ones(rows)]).astype(float)
    return features, np.clip(labels, 0, 1), member


def excess(loss, features, labels, member, last=1_000):
    """What was lost more than the best model of the last rounds of every group."""
    found = []
    for column in member.T:
        rows = np.flatnonzero(column)[-last:]
        best = np.linalg.lstsq(features[rows], labels[rows], rcond=None)[1][0]
        found.append(float(loss[rows].sum() - best))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jumps", "to and fro", "drift"])
def test_recently_half_of_the_excess_is_saved(kind):
    """On every group, also on the streams where that is hardest (2, 18 and 20)."""
    for seed in (0, 1, 2, 18, 20):
        rows = changing(kind, seed)
        ridge: dict[str, Any] = {"learner": gw.learners.Ridge(), "keep": ()}
        plain = excess(gw.replay(*rows, **ridge).loss, *rows)
        ours = excess(gw.replay(*rows, **ridge, windows=True).loss, *rows)
        default = excess(gw.replay(*rows, keep=(), windows=True).loss, *rows)
        for found in (ours, default):
            assert (found <= np.where(plain > 0, 0.5 * plain, plain) + 1e-9).all(), (plain, found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jumps", "to and fro", "drift"])
def test_on_fresh_streams_all_groups_save_half(kind):
    """What docs/windows.md says of twenty streams of each kind, on others than those above."""
    every = []
    for seed in range(10, 20):
        rows = changing(kind, seed)
        ridge: dict[str, Any] = {"learner": gw.learners.Ridge(), "keep": ()}
        plain = excess(gw.replay(*rows, **ridge).loss, *rows)
        every.append((plain, excess(gw.replay(*rows, **ridge, windows=True).loss, *rows)))
    plain, ours = (np.concatenate(one) for one in zip(*every, strict=True))
    assert (ours <= np.where(plain > 0, 0.5 * plain, plain) + 1e-9).all()
    groups = np.arange(plain.size) % 5 < 4  # without everybody, who is helped by their groups
    assert ours[groups].sum() <= 0.1 * plain[groups].sum()


@pytest.mark.parametrize("noise", [0.005, slow(0.02), slow(0.1)])
@pytest.mark.parametrize("options", [{"learner": gw.learners.Ridge()}, slow({})])
def test_where_nothing_changes_little_is_lost(options, noise):
    """Also where there is little to lose, and right from the start."""
    for seed, rows, width, count in ((0, 1_500, 3, 1), (1, 4_000, 6, 4)):
        stream = changing("none", seed, rows, width, count, noise)
        plain = gw.replay(*stream, **options, keep=()).loss.cumsum()
        ours = gw.replay(*stream, **options, keep=(), windows=True).loss.cumsum()
        assert (ours[100:] <= 1.02 * plain[100:]).all()


def test_all_windows_of_a_group_weigh_less_than_the_group():
    count = 1 << 16  # of those that begin at s there is one more than s has factors of 2
    beginning = (share(s) * (s & -s).bit_length() for s in range(1, count))
    beyond = 2.1 / math.log(count)  # at most Σ 2/(s ln² s), and a little for the last power of 2
    assert math.fsum(beginning) + beyond < 1.0
