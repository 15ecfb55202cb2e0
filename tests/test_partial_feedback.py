"""Pay-for-feedback and apple tasting: which labels are seen, paid for, and learned from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, LabelError, TicketError
from groupwise.partial_feedback import FIRST_HORIZON, Blocks, block_length
from tests.states import state_of

FIELDS = ["a", "b", "c"]
CONTEXTS = [[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)]


class Hidden:
    """A label that nobody may look at."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError("an unseen label was touched")

    __eq__ = __float__ = __bool__ = __array__ = __getattribute__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def labeller(seed: int = 0) -> gw.Groupwise:
    learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), CONTEXTS)
    loss = gw.losses.ZeroOne()
    return gw.Groupwise([gw.by("sex")], learner, loss=loss, features=FIELDS, seed=seed)


def stream(count: int, seed: int) -> list[tuple[dict[str, object], int]]:
    rng = np.random.default_rng(seed)
    rounds = []
    for _ in range(count):
        a, b, c, sex = rng.integers(0, 2, 4).tolist()
        rounds.append(({"a": a, "b": b, "c": c, "sex": "male" if sex else "female"}, a))
    return rounds


def test_one_round_of_every_block_is_explored_uniformly() -> None:
    places = []
    for seed in range(40):
        blocks = Blocks(1_000, seed)
        for _ in range(25):
            places.append(blocks.explored - blocks.start)
            blocks.advance()
    counts = np.bincount(places, minlength=10)
    assert counts.size == 10
    assert (abs(counts - 100) < 45).all()


def test_unknown_horizons_double_at_the_end_of_a_block() -> None:
    blocks = Blocks(None, 0)
    lengths: dict[int, int] = {}
    while blocks.start < 1_000:
        lengths.setdefault(blocks.horizon, blocks.length)
        blocks.advance()
    assert lengths == {h: block_length(h) for h in (64, 128, 256, 512, 1024)}
    assert FIRST_HORIZON in lengths


def test_apple_tasting_never_touches_an_unseen_label() -> None:
    lender = gw.AppleTasting(labeller(), horizon=1_000)
    kinds = {"explored": 0, "accepted": 0, "rejected": 0}
    for row, y in stream(600, 1):
        ticket = lender.predict(row)
        label: object = y if ticket.prediction == 1 else Hidden()
        if ticket.wants_label:
            assert ticket.prediction == 1
            kinds["explored"] += 1
            lender.learn(ticket, label)
        elif ticket.prediction == 1:
            kinds["accepted"] += 1
            lender.learn(ticket, label)
        else:
            kinds["rejected"] += 1
            with pytest.raises(LabelError, match="rejected"):
                lender.learn(ticket, label)
            lender.forget(ticket)
    assert min(kinds.values()) > 0
    assert kinds["explored"] == 600 // block_length(1_000)
    assert lender.free_labels == kinds["accepted"]
    assert lender.model._version == kinds["explored"]


def test_learn_one_looks_only_where_it_accepts() -> None:
    lender = gw.AppleTasting(labeller(), horizon=300)
    for row, y in stream(300, 2):
        accepts = lender.predict_one(row) == 1
        lender.learn_one(row, y if accepts else Hidden())


def test_the_model_is_frozen_within_a_block() -> None:
    paying = gw.PayForFeedback(labeller(), horizon=1_000)
    versions = []
    for row, y in stream(100, 3):
        ticket = paying.predict(row)
        versions.append(ticket.version)
        if ticket.wants_label:
            paying.learn(ticket, y)
    assert versions == [t // 10 for t in range(100)]


def test_a_late_label_is_learned_when_it_comes() -> None:
    paying = gw.PayForFeedback(labeller(), horizon=1_000)
    tickets = [paying.predict(row) for row, _ in stream(35, 4)]
    explored = [ticket for ticket in tickets if ticket.wants_label]
    assert paying.model._version == 0
    for ticket in reversed(explored[:3]):
        paying.learn(gw.Ticket.from_json(ticket.to_json()), 1)
    assert paying.model._version == 3
    with pytest.raises(TicketError, match="settled already"):
        paying.learn(explored[0], 1)


def test_labels_that_were_not_asked_for_are_logged_once() -> None:
    paying = gw.PayForFeedback(labeller(), horizon=1_000)
    ticket = next(t for t in (paying.predict(row) for row, _ in stream(5, 5)) if not t.wants_label)
    paying.learn(ticket, 1)
    assert (paying.free_labels, paying.model._version) == (1, 0)
    with pytest.raises(TicketError, match="settled already"):
        paying.learn(ticket, 1)
    with pytest.raises(TicketError, match="not issued"):
        gw.PayForFeedback(labeller(), horizon=10).learn(ticket, 1)


def test_a_label_settles_once_also_while_it_waits() -> None:
    paying = gw.PayForFeedback(labeller(), horizon=1_000_000)
    tickets = [paying.predict(row) for row, _ in stream(90, 6)]
    (explored,) = [ticket for ticket in tickets if ticket.wants_label]
    with pytest.raises(LabelError):
        paying.learn(explored, 3)
    paying.learn(explored, 1)
    assert paying.model._version == 0
    with pytest.raises(TicketError, match="settled already"):
        paying.learn(explored, 1)


def test_payments_and_estimates() -> None:
    paying = gw.PayForFeedback(labeller(), horizon=1_000)
    for row, y in stream(1_000, 7):
        paying.learn_one(row, y)
    table = paying.regret()
    total = table["always_on"]
    assert total["payments"] == 100.0
    assert total["rounds"] == 1_000.0
    assert total["regret"] == pytest.approx(total["loss"] - total["best_loss"] + 100.0)
    assert {row["status"] for row in table} <= {"estimated", "vacuous"}
    assert "payments" in str(table)
    assert "estimated" in table.comparator


def test_the_payment_of_apple_tasting_is_what_accepting_lost() -> None:
    lender = gw.AppleTasting(labeller(), horizon=1_000)
    owed = 0.0
    for row, y in stream(400, 8):
        ticket = lender.predict(row)
        if ticket.wants_label:
            expected = float(ticket.weights @ np.abs(ticket.advice - y))
            owed += (1 - y) - expected
            lender.learn(ticket, y)
    assert lender.regret()["always_on"]["payments"] == pytest.approx(owed)


@pytest.mark.parametrize("keep_state", [False, True])
def test_restart_at_every_doubling(keep_state: bool) -> None:
    paying = gw.PayForFeedback(labeller(), keep_state=keep_state)
    for row, y in stream(200, 9):
        paying.learn_one(row, y)
    everybody = paying.model.group_names.index("always_on")
    clock = state_of(paying.model)["learner0.clock"][everybody]
    assert bool(clock == paying.model._version) is keep_state
    assert bool(paying._earlier) is not keep_state
    assert paying.regret()["always_on"]["rounds"] == pytest.approx(200, abs=10)


def test_around_a_regression() -> None:
    model = gw.Groupwise([gw.by("sex")], loss=gw.losses.Square(0.0, 2.0), features=["a"])
    paying = gw.PayForFeedback(model)
    for row, y in stream(300, 10):
        paying.learn_one(row, 2.0 * y)
    total = paying.regret()["always_on"]
    assert total["payments"] == 4.0 * paying.model._version
    assert total["best_loss"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("kind", [gw.PayForFeedback, gw.AppleTasting])
@pytest.mark.parametrize("horizon", [2_000, None])
def test_saved_and_loaded(kind: Any, horizon: int | None, tmp_path: Path) -> None:
    one = kind(labeller(), horizon=horizon)
    rounds = stream(200, 11)
    waiting = 0
    for t, (row, y) in enumerate(rounds):
        one.learn_one(row, y)
        if t >= 100 and one._waiting:
            waiting = t + 1
            break
    one.save(tmp_path / "model")
    two = gw.load(tmp_path / "model")
    assert isinstance(two, kind)
    assert waiting
    for row, y in rounds[waiting:]:
        first, second = one.predict(row), two.predict(row)
        assert (first.prediction, first.wants_label) == (second.prediction, second.wants_label)
        if first.wants_label:
            one.learn(first, y)
            two.learn(second, y)
    assert repr(one.regret()) == repr(two.regret())


def test_a_bad_cost_vector_is_refused_when_it_comes() -> None:
    oracle = gw.oracles.Finite(np.eye(2))
    learner = gw.learners.FTPL(oracle, cost_norm=4.0)
    paying = gw.PayForFeedback(
        gw.Groupwise([gw.by("sex")], learner, loss=gw.losses.Linear(0.0, 1.0)), horizon=1_000
    )
    tickets = [paying.predict({"sex": "male"}) for _ in range(9)]
    (explored,) = [ticket for ticket in tickets if ticket.wants_label]
    for label in ([0.5], [5.0, 0.0], [1.5, 1.5]):
        with pytest.raises(LabelError):
            paying.learn(explored, label)
    paying.learn(explored, [0.5, 0.2])
    paying.predict({"sex": "male"})
    assert paying.model._version == 1


def test_refused() -> None:
    used = labeller()
    used.predict(stream(1, 0)[0][0])
    square = gw.Groupwise([gw.by("sex")])
    for make in (
        lambda: gw.PayForFeedback(used),
        lambda: gw.PayForFeedback(labeller(), horizon=0),
        lambda: gw.PayForFeedback(labeller(), horizon=1.5),  # type: ignore[arg-type]
        lambda: gw.PayForFeedback("model"),  # type: ignore[arg-type]
        lambda: gw.AppleTasting(square),
    ):
        with pytest.raises(ConfigurationError):
            make()


@pytest.mark.parametrize("kind", [gw.PayForFeedback, gw.AppleTasting])
@pytest.mark.parametrize("about", [{}, {"segment": 5, "engine": "ray"}])
def test_frames_are_refused_by_name(kind: Any, about: dict[str, Any]) -> None:
    lender = kind(labeller(), horizon=100)
    with pytest.raises(
        ConfigurationError, match=rf"{kind.__name__} decides row by row .* learn_one"
    ):
        lender.replay({"a": [1]}, "y", **about)


def test_a_bad_row_changes_nothing() -> None:
    lender = gw.AppleTasting(labeller(), horizon=100)
    lender.predict(stream(1, 0)[0][0])
    before = dict(vars(lender._blocks)), lender.model._next
    with pytest.raises(gw.GroupwiseError):
        lender.predict({"a": 2, "b": 0, "c": 0, "sex": "male"})
    assert (dict(vars(lender._blocks)), lender.model._next) == before


def test_a_table_can_be_read_right_after_a_restart() -> None:
    """Learners that have forgotten everything have no bound of their own."""
    inner = gw.Groupwise([gw.by("sex")], gw.learners.Ridge(forward=True))
    model = gw.PayForFeedback(inner)
    restarts = 0
    for row, label in stream(2 * FIRST_HORIZON, 1):
        model.learn(model.predict(row), float(label))
        table = model.regret()
        assert all(line["a_priori"] is None for line in table)
        restarts += not inner.contents()[1]["ridge.minimum"].any() and len(table) > 0
    assert restarts > 0
