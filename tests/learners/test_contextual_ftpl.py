"""Contextual follow the perturbed leader: bounds, contexts, separators, and what is refused."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import groupwise as gw
from groupwise.errors import ConfigurationError, FeatureError, LabelError
from groupwise.learners import ContextualFTPL
from groupwise.learners.contextual_ftpl import ContextualBank
from groupwise.oracles import FiniteClass, Sklearn, Stumps
from tests.few import few

BITS = 3
FIELDS = [f"bit{i}" for i in range(BITS)]
CONTEXTS = np.array(list(itertools.product([0.0, 1.0], repeat=BITS)))
SEPARATOR = Stumps().separator(BITS)


def stumps(contexts: np.ndarray) -> np.ndarray:
    columns = [np.zeros(len(contexts)), np.ones(len(contexts))]
    for column in contexts.T:
        columns += [column, 1.0 - column]
    return np.array(columns)


def model(setting: str, labels: int = 1, oracle: object = None, seed: int = 0) -> gw.Groupwise:
    learner = ContextualFTPL(
        Stumps() if oracle is None else oracle,
        CONTEXTS if setting == "transductive" else SEPARATOR,
        setting,
    )
    loss = gw.losses.ZeroOne() if labels == 1 else gw.losses.Hamming(labels)
    return gw.Groupwise([gw.by("sex")], learner, loss=loss, features=FIELDS, seed=seed)


def bank_of(labeller: gw.Groupwise) -> ContextualBank:
    """The model's one bank."""
    (bank,) = labeller._reduction.banks
    assert isinstance(bank, ContextualBank)
    return bank


def rows(count: int, seed: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    return [
        {**dict(zip(FIELDS, rng.integers(0, 2, BITS).tolist(), strict=True)), "sex": s}
        for s in rng.choice(["male", "female"], count).tolist()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["transductive", "separator"])
@pytest.mark.parametrize("labels", [1, 2])
def test_mean_regret_is_below_the_certificate_under_adaptive_labels(
    setting: str, labels: int
) -> None:
    """The label is the opposite of what was last played on the context."""
    regrets, certificates = [], []
    for seed in range(15):
        labeller = model(setting, labels, seed=seed)
        last: dict[tuple[Any, ...], Any] = {}
        for row in rows(300, seed):
            context = tuple(row[field] for field in FIELDS)
            ticket = labeller.predict(row)
            label = 1 - np.atleast_1d(last.get(context, np.zeros(labels, dtype=int)))
            last[context] = ticket.prediction
            labeller.learn(ticket, int(label[0]) if labels == 1 else label)
        table = labeller.regret()
        known = {"in expectation", "in expectation, sampled", "vacuous"}
        assert {row["status"] for row in table} <= known
        regrets.append([row["regret"] for row in table])
        certificates.append([row["certificate"] for row in table])
    assert (np.mean(regrets, axis=0) <= np.mean(certificates, axis=0)).all()


@pytest.mark.parametrize("setting", ["transductive", "separator"])
@pytest.mark.parametrize("labels", few([2, 1], 1))
def test_hindsight_is_the_best_policy(setting: str, labels: int) -> None:
    labeller = model(setting, labels)
    rng = np.random.default_rng(1)
    seen, said = [], []
    for row in rows(100, 2):
        label = rng.integers(0, 2, labels)
        labeller.learn_one(row, int(label[0]) if labels == 1 else label)
        seen.append([row[field] for field in FIELDS])
        said.append(label)
    wrong = [np.abs(stumps(np.array(seen)) - column).sum(axis=1) for column in np.array(said).T]
    best = sum(each.min() for each in wrong)
    assert labeller.regret()["always_on"]["best_loss"] == pytest.approx(best)


def test_a_table_of_stumps_plays_like_stumps() -> None:
    plays = []
    for oracle in (Stumps(), FiniteClass(stumps(CONTEXTS), CONTEXTS)):
        for setting in ("transductive", "separator"):
            labeller = model(setting, oracle=oracle, seed=3)
            bank_of(labeller).rate = 1.0
            played = []
            for t, row in enumerate(rows(80, 4)):
                ticket = labeller.predict(row)
                labeller.learn(ticket, t % 2)
                played.append(ticket.prediction)
            plays.append(played)
    assert plays[0] == plays[2]
    assert plays[1] == plays[3]


def test_contexts_met_later_join_the_history() -> None:
    labeller = model("separator")
    bank = bank_of(labeller)
    assert bank.contexts.count == len(SEPARATOR)
    for row in rows(60, 5):
        labeller.learn_one(row, 1)
    assert bank.contexts.count == len(CONTEXTS)
    everybody = labeller.group_names.index("always_on")
    assert bank.store.of(everybody).seen.sum() == -60.0


def test_a_heuristic_oracle_is_marked() -> None:
    oracle = Sklearn(DecisionTreeClassifier(max_depth=2))
    labeller = model("transductive", oracle=oracle)
    for t, row in enumerate(rows(6, 6)):
        labeller.learn_one(row, t % 2)
    statuses = {row["status"] for row in labeller.regret()}
    assert statuses <= {"estimated", "vacuous"}


def test_a_context_outside_the_transductive_set_is_named() -> None:
    learner = ContextualFTPL(Stumps(), CONTEXTS[:4])
    labeller = gw.Groupwise([gw.by("sex")], learner, loss=gw.losses.ZeroOne(), features=FIELDS)
    with pytest.raises(FeatureError, match=r"\{bit0: 1, bit1: 0, bit2: 1\} is not in the trans"):
        labeller.predict({"bit0": 1, "bit1": 0, "bit2": 1, "sex": "male"})
    table = FiniteClass(stumps(CONTEXTS[:5]), CONTEXTS[:5])
    learner = ContextualFTPL(table, table.separator(), "separator")
    labeller = gw.Groupwise([gw.by("sex")], learner, loss=gw.losses.ZeroOne(), features=FIELDS)
    with pytest.raises(FeatureError, match="any column of the table"):
        labeller.predict({"bit0": 1, "bit1": 1, "bit2": 1, "sex": "male"})


@pytest.mark.parametrize("value", [0.5, "yes", None, float("nan")])
def test_contexts_are_bits(value: object) -> None:
    labeller = model("separator")
    with pytest.raises(FeatureError):
        labeller.predict({"bit0": value, "bit1": 0, "bit2": 0, "sex": "male"})


@pytest.mark.parametrize("label", [2, 0.5, None, "1", [1], float("nan")])
def test_bad_label(label: object) -> None:
    labeller = model("transductive")
    ticket = labeller.predict(rows(1, 0)[0])
    with pytest.raises(LabelError):
        labeller.learn(ticket, label)
    clocks = bank_of(labeller).store.column("clock", 2)  # the two groups of the ticket
    assert clocks.tolist() == [[0.0], [0.0]]
    labeller.learn(ticket, True)


@pytest.mark.parametrize("label", [[1], [1, 2], [1, np.nan], 1, "ab", [1, 0, 1]])
def test_bad_labels(label: object) -> None:
    labeller = model("transductive", labels=2)
    ticket = labeller.predict(rows(1, 0)[0])
    with pytest.raises(LabelError):
        labeller.learn(ticket, label)
    labeller.learn(ticket, [True, False])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ContextualFTPL(object(), CONTEXTS),
        lambda: ContextualFTPL(Stumps(), CONTEXTS, setting="other"),
        lambda: ContextualFTPL(Stumps(), [[0.5, 1.0]]),
        lambda: ContextualFTPL(Stumps(), [[1.0, 1.0]] * 2),
        lambda: ContextualFTPL(Stumps(), [1.0, 0.0]),
        lambda: ContextualFTPL(Stumps(), CONTEXTS[:2], setting="separator"),
        lambda: gw.Groupwise(
            [gw.by("sex")], ContextualFTPL(Stumps(), CONTEXTS), loss=gw.losses.ZeroOne()
        ),
        lambda: gw.Groupwise(
            [gw.by("sex")],
            ContextualFTPL(Stumps(), CONTEXTS),
            loss=gw.losses.ZeroOne(),
            features=["bit0"],
        ),
        lambda: gw.Groupwise(
            [gw.by("sex")],
            ContextualFTPL(Stumps(), CONTEXTS),
            loss=gw.losses.Square(),
            features=FIELDS,
        ),
        lambda: model("transductive", 2, FiniteClass(stumps(CONTEXTS), CONTEXTS)),
        lambda: gw.losses.Hamming(labels=0),
    ],
)
def test_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
