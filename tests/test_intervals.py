"""Intervals: what was issued is what is counted, on every group, however late labels come."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.errors import ConfigurationError, GroupwiseError, SnapshotError
from groupwise.intervals import Around, ends_of
from groupwise.kernels import intervals as kernels
from groupwise.snapshot import widened
from groupwise.ticket import Ticket
from tests.few import few

GROUPS = [gw.by("a"), gw.by("b"), gw.weight("share")]
LOW, HIGH = -20.0, 30.0


def model(coverage=0.9, rate=0.05, **settings):
    kept: dict[str, Any] = {
        "loss": gw.losses.Square(LOW, HIGH),
        "learner": gw.learners.Ridge(),
    } | settings
    return gw.Groupwise(GROUPS, intervals=gw.Intervals(coverage, rate), **kept)


def rows(count, seed=0, fractional=True):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], count, p=[0.5, 0.3, 0.2]),
            "b": rng.choice([0, 1], count),
            "share": rng.random(count).round(2) if fractional else rng.integers(0, 2, count) * 1.0,
            "t": rng.random(count),
        }
    )
    return frame


def labels_of(kind, frame, seed=0):
    """Labels that come from nature, and may change their ways."""
    rng = np.random.default_rng(seed)
    t, n = frame["t"].to_numpy(), len(frame)
    spread = np.where(frame["a"] == "x", 1.0, 4.0)
    if kind == "drifting":
        spread = spread * np.exp(2.0 * np.sin(np.arange(n) / 60.0))
    noise = rng.standard_cauchy(n) if kind == "heavy" else rng.normal(size=n)
    return np.clip(5.0 * t + spread * noise, LOW, HIGH).round(3)


class Plain:
    """The same from its definition: dictionaries, and no kernel."""

    def __init__(self, coverage, rate):
        self.alpha, self.rate, self.groups = 1.0 - coverage, rate, {}

    def base(self, awake):
        known = [(self.groups[g], w) for g, w in awake.items() if g in self.groups]
        if not known:
            return 1.0, 0.25, 1.0

        def potential(regret, absolute):
            return math.exp(max(regret, 0.0) ** 2 / (3.0 * absolute))

        weights = [
            w
            * 0.5
            * (potential(own["R"] + 1, own["C"] + 1) - potential(own["R"] - 1, own["C"] + 1))
            for own, w in known
        ]
        if sum(weights) == 0.0:
            weights = [w for _, w in known]
        total = sum(weights)
        base = sum(p * own["k"] * own["s"] for p, (own, _) in zip(weights, known, strict=True))
        scale = sum(p * own["s"] for p, (own, _) in zip(weights, known, strict=True))
        largest = max(own["k"] * own["s"] for own, _ in known)
        return max(base / total, 2**-40), max(scale / total, 2**-40), max(largest, 2**-40)

    def ends(self, awake, p):
        known = [(self.groups[g], w) for g, w in awake.items() if g in self.groups]
        u = self.rate * sum(w * (own["M"] - self.alpha * own["T"]) for own, w in known)
        if u < -1.0:
            return 1.0, 0.0
        half = self.base(awake)[0] * (math.exp(u) if u > 0.0 else 1.0 + u)
        return max(p - half, 0.0), min(p + half, 1.0)

    def learn(self, awake, p, low, high, y):
        base, scale, largest = self.base(awake)
        missed, error = not low <= y <= high, abs(y - p)

        def pinball(b):
            return max((1.0 - self.alpha) * (error - b), self.alpha * (b - error))

        for g, w in awake.items():
            zero = dict.fromkeys("TMWnRC", 0.0)
            start = {"s": scale, "k": min(max(base / scale, 0.1), 1.0 / self.alpha)}
            own = self.groups.setdefault(g, zero | start)
            own["T"] += w
            own["M"] += w * missed
            own["W"] += w * max(high - low, 0.0)
            b = own["k"] * own["s"]
            gained = w * (pinball(base) - pinball(b)) / largest
            own["R"] += gained
            own["C"] += abs(gained)
            own["n"] += w
            n = max(own["n"], 1.0)
            step = max(0.05, 1.0 / math.sqrt(n)) * w * ((error > b) - self.alpha)
            own["k"] = min(max(own["k"] * (1.0 + step), 0.1), 1.0 / self.alpha)
            own["s"] += w * max(1.0 / (n + 1.0), 1.0 / 200.0) * (error - own["s"])


@pytest.mark.parametrize("kind", ["random", "drifting", "heavy"])
@pytest.mark.parametrize("late", [0, 17])
def test_the_numbers_are_those_of_the_definition(kind, late):
    frame, plain, ours = rows(400), Plain(0.8, 0.1), model(0.8, 0.1)
    labels = labels_of(kind, frame)
    waiting: list[Any] = []
    rng = np.random.default_rng(1)

    def settle(one):
        ticket, (low, high), y = waiting.pop(one)
        ours.learn(ticket, y)
        plain.learn(ticket.groups, ticket.play.prediction, low, high, (y - LOW) / (HIGH - LOW))

    for row, y in zip(frame.to_dict("records"), labels.tolist(), strict=True):
        ticket = ours.predict(row)
        ends = plain.ends(ticket.groups, ticket.play.prediction)
        assert tuple(ticket.play.after) == pytest.approx(ends, rel=1e-9, abs=1e-12)
        waiting.append((ticket, ends, y))
        while len(waiting) > late:
            settle(int(rng.integers(len(waiting))))
    while waiting:
        settle(0)
    for row in ours.coverage():
        own = plain.groups[row["group"]]
        found = row["rounds"], row["missed"], row["mean_width"]
        wanted = own["T"], own["M"], (HIGH - LOW) * own["W"] / own["T"]
        assert found == pytest.approx(wanted, rel=1e-9)


def counted(tickets, coverage):
    """Rounds and misses of every group, counted from what the tickets show."""
    found: dict[str, list[float]] = {}
    for ticket, y in tickets:
        inside = ticket.interval is not None and ticket.interval[0] <= y <= ticket.interval[1]
        for group, weight in ticket.groups.items():
            own = found.setdefault(group, [0.0, 0.0])
            own[0] += weight
            own[1] += weight * (not inside)
    return {g: (t, m, m - (1.0 - coverage) * t) for g, (t, m) in found.items()}


def far(ticket, y):
    """As far away as can be: always outside, if anything is."""
    low, high = ticket.interval or (LOW, LOW)
    return LOW if low - LOW > HIGH - high else HIGH


def near(ticket, y):
    """Just outside by the least there is, or on the end."""
    if ticket.interval is None:
        return ticket.prediction
    beyond = float(np.nextafter(ticket.interval[1], math.inf))
    return beyond if beyond <= HIGH and y > 0.0 else ticket.interval[0]


def hit(ticket, y):
    """What was predicted: no error at all."""
    return ticket.prediction


def turning(ticket, y):
    """Exact for a long time, and then as far as can be."""
    return ticket.prediction if ticket.number % 400 < 300 else far(ticket, y)


ADVERSARIES = {"far": far, "near": near, "hit": hit, "turning": turning, "nature": lambda t, y: y}


@pytest.mark.parametrize("late", [0, 1, 40])
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("coverage", few([0.9, 0.5, 0.99], 1))
def test_what_is_counted_is_what_was_issued(adversary, coverage, late):
    """The identity: rounds, misses and their excess, from the tickets alone, after every label."""
    ours, frame = model(coverage), rows(900, 3)
    labels, rng = labels_of("drifting", frame), np.random.default_rng(2)
    settled, waiting = [], []
    for row, y in zip(frame.to_dict("records"), labels.tolist(), strict=True):
        waiting.append((ours.predict(row), y))
        while len(waiting) > late:
            ticket, y = waiting.pop(int(rng.integers(len(waiting))))
            label = min(max(ADVERSARIES[adversary](ticket, y), LOW), HIGH)
            ours.learn(ticket, label)
            settled.append((ticket, label))
        if len(settled) % 100 == 99:
            found = ours.coverage()
            for group, (rounds, missed, excess) in counted(settled, coverage).items():
                own = found[group]
                assert own["rounds"] == pytest.approx(rounds, abs=1e-9)
                assert own["missed"] == pytest.approx(missed, abs=1e-9)
                assert own["excess"] == pytest.approx(excess, abs=1e-9)
                assert own["error"] == pytest.approx(-excess / rounds, abs=1e-9)
                assert own["coverage"] == pytest.approx(1.0 - missed / rounds, abs=1e-9)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("asked", few([(0.9, 0.05), (0.5, 1.0), (0.1, 0.2)], 1))
def test_the_excess_cannot_run_away(adversary, asked):
    """Σ θ² ≤ T (n + 2 max(28 (1 − α), α) / η) after every label that comes at once."""
    coverage, rate = asked
    ours, frame = model(coverage, rate), rows(1_500, 4)
    labels, alpha = labels_of("random", frame), 1.0 - coverage
    awake = 0
    for t, (row, y) in enumerate(zip(frame.to_dict("records"), labels.tolist(), strict=True)):
        ticket = ours.predict(row)
        ours.learn(ticket, min(max(ADVERSARIES[adversary](ticket, y), LOW), HIGH))
        awake = max(awake, len(ticket.groups))
        if t % 50 == 49:
            squares = sum(one["excess"] ** 2 for one in ours.coverage())
            assert squares <= (t + 1) * (awake + 2.0 * max(28.0 * (1.0 - alpha), alpha) / rate)


def test_coverage_comes_near_what_is_asked_for_on_every_group():
    frame = rows(6_000, 5, fractional=False)
    for kind in ("random", "drifting"):
        ours = model(0.9, learner=None)
        ours.replay(frame.assign(y=labels_of(kind, frame)), "y")
        assert all(abs(row["error"]) < 0.015 for row in ours.coverage() if row["rounds"] >= 500)


def test_intervals_change_no_prediction():
    frame = rows(500).assign(y=labels_of("random", rows(500)))
    ours, theirs = model(), gw.Groupwise(GROUPS, gw.learners.Ridge(), loss=model().loss)
    with_them, without = ours.replay(frame, "y"), theirs.replay(frame, "y")
    assert with_them.prediction.tobytes() == without.prediction.tobytes()
    assert without.interval is None
    assert [dict(row) for row in ours.regret()] == [dict(row) for row in theirs.regret()]


def ends_in(result):
    """The ends of a replay's intervals."""
    assert result.interval is not None
    return result.interval


def issued(ticket):
    return ticket.interval or (math.nan, math.nan)


@pytest.mark.parametrize("learner", [gw.learners.Ridge(), None], ids=["ridge", "default"])
def test_loop_replay_chunks_files_and_threads_agree_to_the_bit(learner, tmp_path):
    frame = rows(700).assign(y=labels_of("drifting", rows(700)))
    loop, ends = model(learner=learner), []
    for row in frame.to_dict("records"):
        y = row.pop("y")
        ticket = loop.predict(row)
        ends.append(issued(ticket))
        loop.learn(ticket, y)
    whole, parts, threads = (model(learner=learner) for _ in range(3))
    found = [ends_in(whole.replay(frame, "y"))]
    found.append(ends_in(threads.replay(frame, "y", jobs=3)))
    first = ends_in(parts.replay([frame[:100], frame[100:301]], "y"))
    parts.save(tmp_path / "model.gw")
    parts = gw.load(tmp_path / "model.gw")
    assert parts.intervals == gw.Intervals(0.9, 0.05)
    found.append(np.concatenate([first, ends_in(parts.replay(frame[301:], "y"))]))
    for one in found:
        assert one.tobytes() == np.array(ends).tobytes()
    tables = [list(map(dict, one.coverage())) for one in (loop, whole, parts, threads)]
    assert all(table == tables[0] for table in tables)


def test_tickets_keep_their_interval_in_a_file(tmp_path):
    ours, frame = model(), rows(60)
    labels = labels_of("random", frame).tolist()
    tickets = [ours.predict(row) for row in frame.to_dict("records")]
    for ticket, y in zip(tickets[:30], labels[:30], strict=True):
        ours.learn(ticket, y)
    ours.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    for ticket, y in zip(tickets[30:], labels[30:], strict=True):
        read = Ticket.from_json(ticket.to_json())
        assert read.interval == ticket.interval
        ours.learn(ticket, y)
        again.learn(read, y)
    assert list(map(dict, again.coverage())) == list(map(dict, ours.coverage()))


def test_a_ticket_whose_interval_was_changed_is_not_ours():
    ours = model()
    fields = json.loads(ours.predict(rows(1).to_dict("records")[0]).to_json())
    fields["play"]["after"][1] /= 2.0
    with pytest.raises(GroupwiseError, match="was not issued"):
        ours.learn(Ticket.from_json(json.dumps(fields)), 1.0)
    for wrong in ("wide", 0.5, [0.5], [0.1, 0.2, 0.3], [0.1, "wide"], [[0.1], [0.2]]):
        fields["play"]["after"] = wrong
        with pytest.raises(GroupwiseError, match="not a ticket"):
            Ticket.from_json(json.dumps(fields))


@st.composite
def ranges(draw):
    number = st.floats(-1e12, 1e12, allow_subnormal=False)
    unit = 10.0 ** draw(st.integers(-120, 120))
    low, width = unit * draw(number), unit * draw(st.floats(1e-9, 1e12))
    return (low, low + width) if low < low + width else (0.0, width)


@settings(max_examples=400, deadline=None)
@given(ranges(), st.floats(0.0, 1.0), st.floats(0.0, 0.6))
def test_a_label_is_inside_where_its_scaled_self_is(span, p, half):
    """y is from low to high as shown ⟺ scaled it is from first to last: for the doubles next to."""
    loss = gw.losses.Square(*span)
    first, last = max(p - half, 0.0), min(p + half, 1.0)
    low, high = ends_of(loss, np.array([[first, last]]))[0].tolist()
    near = loss.decode(first), loss.decode(last)
    for end in near if math.isnan(low) else (low, high):
        beside = [end]
        for to in (-math.inf, math.inf):
            beside.append(float(np.nextafter(end, to)))
            beside.append(float(np.nextafter(beside[-1], to)))
        for y in beside:
            if loss.low <= y <= loss.high:
                assert (first <= loss.encode(y) <= last) == (low <= y <= high)


def test_ends_of_a_range_are_its_own():
    for low, high in ((0.1, 0.3), (-1e9, 1e-3), (1e15, 1e15 + 2.0)):
        found = ends_of(gw.losses.Square(low, high), np.array([[0.0, 1.0]]))
        assert found[0].tolist() == [low, high]


def test_labels_without_error_are_inside_and_errors_are_found_back_from():
    """All errors 0, where the label is predicted as it is: then real ones, and 90 % again."""
    ours = gw.Groupwise([], loss=gw.losses.Square(0.1, 0.7), intervals=0.9)
    rng = np.random.default_rng(0)
    inside = 0
    for t in range(3_000):
        ticket = ours.predict({"x": 1.0})
        y = ticket.prediction if t < 1_000 else float(np.clip(0.4 + 0.1 * rng.normal(), 0.1, 0.7))
        ours.learn(ticket, y)
        if t >= 2_000:
            inside += ticket.interval is not None and ticket.interval[0] <= y <= ticket.interval[1]
    assert 860 <= inside <= 940


def test_where_nobody_is_awake_there_is_no_interval():
    ours = gw.Groupwise([gw.by("a")], loss=gw.losses.Square(), intervals=0.9, always_on=False)
    ticket = ours.predict({"a": None, "x": 0.3})
    assert ticket.interval is None
    ours.learn(ticket, 0.5)
    frame = pd.DataFrame({"a": ["x", None, "x"], "x": [0.1, 0.2, 0.3], "y": [0.2, 0.4, 0.1]})
    found = ends_in(ours.replay(frame, "y"))
    assert np.isnan(found).any(axis=1).tolist() == [False, True, False]
    assert ours.coverage()["a=x"]["rounds"] == 2.0


def test_widened_ranges_go_on():
    ours, frame = model(), rows(300)
    ours.replay(frame.assign(y=labels_of("random", frame)), "y")
    wider = widened(ours, -100.0, 200.0)
    before = ours.coverage()["always_on"]["rounds"]
    ticket = wider.predict(frame.to_dict("records")[0])
    wider.learn(ticket, 190.0)
    assert wider.coverage()["always_on"]["rounds"] == before + 1.0
    assert wider.coverage()["always_on"]["missed"] == ours.coverage()["always_on"]["missed"] + 1.0


@pytest.mark.parametrize(
    "loss", [gw.losses.Log(), gw.losses.Unbounded(), gw.losses.ZeroOne()], ids=str
)
def test_losses_that_have_none(loss):
    with pytest.raises(ConfigurationError, match="numbers of a known range"):
        gw.Groupwise([], loss=loss, intervals=0.9)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90, math.nan, "0.9", None])
def test_shares_that_are_none(coverage):
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        gw.Intervals(coverage)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, math.inf, "fast"])
def test_rates_that_are_none(rate):
    with pytest.raises(ConfigurationError, match="rate must be"):
        gw.Intervals(0.9, rate)


def test_models_without_say_so():
    with pytest.raises(ConfigurationError, match=r"intervals=0\.9"):
        gw.Groupwise([]).coverage()
    with pytest.raises(ConfigurationError, match="leave intervals out"):
        gw.PayForFeedback(gw.Groupwise([], intervals=0.9))


def test_bad_input_leaves_everything_as_it_was():
    ours, frame = model(), rows(50)
    ours.replay(frame.assign(y=labels_of("random", frame)), "y")
    before = list(map(dict, ours.coverage()))
    ticket = ours.predict(frame.to_dict("records")[0])
    for label in (math.nan, 1e9, "three", None):
        with pytest.raises(GroupwiseError):
            ours.learn(ticket, label)
    assert list(map(dict, ours.coverage())) == before


@pytest.mark.parametrize("name", ["rounds", "missed", "clock", "scale", "ratio", "absolute"])
def test_a_crafted_file_is_refused(name, tmp_path):
    from groupwise import archive

    ours, frame = model(), rows(50)
    ours.replay(frame.assign(y=labels_of("random", frame)), "y")
    header, arrays = ours.contents()
    for bad in (-1.0, math.nan):
        changed = {k: a.copy() for k, a in arrays.items()}
        changed[f"intervals.{name}"].flat[0] = bad
        archive.write(tmp_path / "model.gw", header, changed)
        with pytest.raises(SnapshotError):
            gw.load(tmp_path / "model.gw")


def test_the_table_reads_well():
    ours, frame = model(), rows(200)
    ours.replay(frame.assign(y=labels_of("random", frame)), "y")
    text = str(ours.coverage())
    assert "mean_width" in text
    assert "cover 0.9 of the labels of every group" in text
    assert [row["group"] for row in ours.coverage(largest=1)] == ["always_on"]


def test_arrays_have_intervals_too():
    frame = rows(400, fractional=False)
    y = labels_of("random", frame)
    members = np.column_stack([frame["a"] == "x", frame["a"] != "x", np.ones(400)]).astype(float)
    X = np.column_stack([frame["t"], np.ones(400)])
    found = gw.replay(X, y, members, loss=gw.losses.Square(LOW, HIGH), intervals=0.8)
    inside = (ends_in(found)[:, 0] <= y) & (y <= ends_in(found)[:, 1])
    for g, row in enumerate(sorted(found.coverage(), key=lambda one: int(one["group"]))):
        assert row["missed"] == (~inside[members[:, g] > 0]).sum()
        assert row["rounds"] == members[:, g].sum()


def test_an_interval_covers_the_range_before_its_excess_is_too_large():
    """What the bound on the excess stands on: a base is at least 2⁻⁴⁰, and 28 > 40 ln 2."""
    assert kernels.LEAST * math.exp(28.0) > 1.0


@pytest.mark.parametrize("label", [1e15, 1e15 + 2.0])
def test_an_interval_between_two_doubles_is_empty_everywhere(label):
    """Labels are eighths there: an interval may have none in it, which is then not shown at all."""
    loss, frame = gw.losses.Square(1e15, 1e15 + 2.0), rows(300)
    loop, whole, ends = model(loss=loss), model(loss=loss), []
    for row in frame.to_dict("records"):
        ticket = loop.predict(row)
        ends.append(issued(ticket))
        loop.learn(ticket, label)
    found = ends_in(whole.replay(frame.assign(y=label), "y"))
    assert found.tobytes() == np.array(ends).tobytes()
    one = ends_of(loss, np.array([[0.51, 0.52], [0.5, 0.52]]))
    assert np.isnan(one[0]).all()
    assert one[1].tolist() == [1e15 + 1.0, 1e15 + 1.0]


@pytest.mark.parametrize("clip", [True, False])
def test_a_ticket_from_before_its_range_was_widened_is_counted_as_it_was_issued(clip):
    ours = gw.Groupwise([], loss=gw.losses.Square(0, 10), intervals=0.9, clip=clip)
    for x in (0.4, 0.6, 0.5):
        ours.learn_one({"x": x}, 10.0 * x)
    tickets = [ours.predict({"x": x}) for x in (0.5, 30.0, -30.0)]
    for ticket, label in zip(tickets, (12.0, 12.0, -3.0), strict=True):
        assert ticket.interval is not None
        wider = widened(ours, -100.0, 200.0)
        wider.learn(ticket, label)
        found, before = wider.coverage()["always_on"], ours.coverage()["always_on"]
        assert found["missed"] == before["missed"] + 1.0
        width = found["mean_width"] * 4.0 - before["mean_width"] * 3.0
        assert width == pytest.approx(ticket.interval[1] - ticket.interval[0], abs=1e-9)


def test_in_a_widened_range_the_first_interval_is_all_and_the_excess_is_bounded():
    """A base is a share of the range at least: 28 > ln 2⁴⁰ in any, however much wider it is."""
    ours = widened(gw.Groupwise([], loss=gw.losses.Square(0, 1), intervals=0.9), 0.0, 1e30)
    assert ours.predict({"x": 1.0}).interval == (0.0, 1e30)
    for _ in range(3_000):
        ours.learn(ticket := ours.predict({"x": 1.0}), min(max(ticket.prediction, 0.0), 1e30))
    header, arrays = ours.contents()
    arrays["intervals.missed"][:] = arrays["intervals.rounds"][:] = 28.0 / 0.05 / 0.9 + 1e-6
    arrays["intervals.width"][:] = 0.0
    assert gw.Groupwise.restored(header, arrays).predict({"x": 1.0}).interval == (0.0, 1e30)


def test_below_the_least_excess_an_interval_is_empty_however_narrow_it_would_be():
    """Where all errors are 0 the base is 2⁻⁴⁰: a little of it below 0 is lost beside p."""
    ours = gw.Groupwise([], gw.learners.Ridge(), intervals=gw.Intervals(0.5, 0.5))
    for _ in range(20):
        ours.learn_one({"x": 1.0}, 0.75)
    header, arrays = ours.contents()
    arrays["intervals.scale"][:] = arrays["intervals.missed"][:] = 0.0
    arrays["intervals.width"][:] = 0.0
    for rounds, there in ((4.0, True), (4.0 + 2.0**-13, False), (5.0, False)):
        arrays["intervals.rounds"][:] = rounds
        ticket = gw.Groupwise.restored(header, arrays).predict({"x": 1.0})
        assert (ticket.interval is not None) == there


def test_widths_of_tiny_weights_in_tiny_units_are_numbers():
    ours = gw.Groupwise([gw.weight("w")], loss=gw.losses.Square(0.0, 1e-130), intervals=0.9)
    ours.learn_one({"w": 1e-300, "x": 1.0}, 5e-131)
    assert 1e130 * ours.coverage()["w"]["mean_width"] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, Fraction])
def test_shares_of_any_kind_are_saved(kind, tmp_path):
    ours = gw.Groupwise([], intervals=gw.Intervals(kind(0.75), kind(0.5)))
    ours.save(tmp_path / "model.gw")
    assert gw.load(tmp_path / "model.gw").intervals == gw.Intervals(0.75, 0.5)
    too_much: Any = np.float32("inf")
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        gw.Intervals(too_much)


def test_both_layers_at_once_are_refused():
    X, y, members = np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 0.0]), np.ones((4, 1))
    both: dict[str, Any] = {"loss": gw.losses.Log(), "recalibrate": True, "intervals": 0.9}
    with pytest.raises(ConfigurationError, match="numbers of a known range"):
        gw.replay(X, y, members, **both)
    with pytest.raises(ConfigurationError, match="numbers of a known range"):
        gw.Groupwise([], **both)


@pytest.mark.parametrize(
    ("name", "bad"),
    [("width", 1e9), ("rounds", 1e-320), ("scale", 2.0), ("ratio", 11.0), ("regret", 1e9)],
)
def test_sums_that_cannot_be_are_refused(name, bad):
    ours, frame = model(), rows(50)
    ours.replay(frame.assign(y=labels_of("random", frame)), "y")
    header, arrays = ours.contents()
    arrays[f"intervals.{name}"].flat[0] = bad
    with pytest.raises(ValueError, match="beyond"):
        gw.Groupwise.restored(header, arrays)


def test_a_text_about_other_labels_has_no_interval():
    fields = json.loads(model().predict(rows(1).to_dict("records")[0]).to_json())
    for loss in (gw.losses.Hamming(3), gw.losses.Log(), gw.losses.Unbounded()):
        read = Ticket.from_json(json.dumps(fields | {"loss": loss.to_dict()}))
        assert read.interval is None


@pytest.mark.parametrize(
    ("predictions", "match"),
    [([1.0, math.nan], "Prediction 1 is nan"), ([math.inf, 1.0], "Prediction 0"), ([1.0], "every")],
)
def test_predictions_from_elsewhere_are_numbers(predictions, match):
    around, one = Around(0.9, gw.losses.Square(0, 10)), np.zeros(2, dtype=np.int64)
    labels = np.array([1.0, 2.0])
    with pytest.raises(ConfigurationError, match=match):
        around.add(["all"], np.arange(3), one, np.ones(2), np.array(predictions), labels)
    assert not list(around.table())


@pytest.mark.parametrize(
    ("indptr", "weights", "match"),
    [
        ([0, 1, 9], [1.0, 1.0], "indptr"),
        ([0, 1, 1], [1.0, 1.0], "indptr"),
        ([1, 1, 2], [1.0, 1.0], "indptr"),
        ([0, 3, 2], [1.0, 1.0], "indptr"),
        ([0, 1, 2], [1.0], "indptr"),
        ([0, 1, 2], [1.0, math.nan], "Weights"),
        ([0, 1, 2], [1.0, 2.0], "Weights"),
    ],
)
def test_groups_from_elsewhere_are_those_of_the_rows(indptr, weights, match):
    around, one = Around(0.9, gw.losses.Square(0, 10)), np.zeros(2, dtype=np.int64)
    with pytest.raises(ConfigurationError, match=match):
        around.add(["all"], np.array(indptr), one, np.array(weights), np.ones(2), np.ones(2))
    assert not list(around.table())
