"""Checks for learners."""

import copy
import itertools
import math
import os
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from groupwise.checks.bench import (
    FEATURES,
    STREAMS,
    Bench,
    CheckFailed,
    Source,
    copies,
    declarations,
    during,
    replay_is_the_loop,
    require,
    run,
    same,
)
from groupwise.errors import ConfigurationError, GroupwiseError, SnapshotError
from groupwise.losses import Loss, Square
from groupwise.model import Groupwise
from groupwise.protocols import Learner, Row
from groupwise.snapshot import load

ROUNDING = 1e-9
"""Of the sum of squared labels, which certificates may be off by."""
SLACK = 2048
"""Bytes that a model may grow by, with any learner."""


def check_learner(
    learner: Any,
    *,
    loss: Loss | None = None,
    groups: Sequence[Any] | None = None,
    features: Sequence[str] | None = None,
    streams: Mapping[str, Source] | None = None,
    rounds: int = 120,
) -> None:
    """Check that a learner keeps the contract of ``groupwise.protocols``.

    Parameters
    ----------
    learner : a learner of groupwise, or an object with ``advise`` and ``update``.
    loss : what it learns to keep small; square loss on [0, 1] by default.
    groups, features, streams : where the default streams, numbers with labels in [0, 1], do not
        suit: declarations, names of fields, and {name: function} where function(seed) yields
        (row, answer) without end and answer(prediction) is the label. Where the learner draws, the
        prediction that ``answer`` sees is that of the round before: no guarantee survives one who
        knows the draw.
    rounds : the length of a stream; longer finds more and takes longer.

    >>> from groupwise.learners import Ridge
    >>> check_learner(Ridge(), rounds=40)
    """
    with during("construction", learner):
        bench = Bench(
            learner,
            Square() if loss is None else loss,
            declarations(takes_weights(learner)) if groups is None else groups,
            FEATURES if streams is None else features,
            STREAMS if streams is None else streams,
            rounds,
        )
        bench.model()
    for check in LEARNER_CHECKS:
        if isinstance(learner, Learner) or check not in OBJECT_CHECKS:
            with during(check.__name__.removeprefix("_").replace("_", " "), learner):
                check(bench)


def _advice_is_finite(bench: Bench) -> None:
    model = bench.model()
    for name, source in bench.streams.items():
        for row, answer in itertools.islice(source(0), bench.rounds):
            ticket = model.predict(row)
            advice = np.asarray(ticket.advice, dtype=np.float64)
            require(np.isfinite(advice).all(), f"advice {advice} on the {name} stream.")
            model.learn(ticket, answer(bench.shown([ticket.prediction])))


def _advise_changes_nothing(bench: Bench) -> None:
    for source in bench.streams.values():
        rows = list(itertools.islice(source(1), bench.rounds))
        quiet, asked = bench.model(), bench.model()
        for t, (row, answer) in enumerate(rows):
            for other, _ in rows[t : t + 3]:
                asked.predict_one(other)
            one, two = quiet.predict(row), asked.predict(row)
            require(
                same(one.advice, two.advice),
                f"its advice in round {t} depends on how often it was asked: {one.advice} where "
                f"asked once, {two.advice} where asked again and for other rows. advise must "
                "not change the learner, nor draw randomness of its own.",
            )
            label = answer(bench.shown([one.prediction]))
            quiet.learn(one, label)
            asked.learn(two, label)


def _copies_are_independent(bench: Bench) -> None:
    for source in bench.streams.values():
        rounds = list(itertools.islice(source(2), bench.rounds))
        model, half, row = bench.model(), len(rounds) // 2, rounds[0][0]
        run(bench, model, rounds[:half])
        before = copy.deepcopy(model).predict(row).advice
        run(bench, copy.deepcopy(model), rounds[half:])
        require(
            same(before, model.predict(row).advice),
            "what a deep copy learned changed the original: state is kept outside the object, "
            "in its class or in its module.",
        )


def _memory_is_bounded(bench: Bench) -> None:
    name, source = next(iter(bench.streams.items()))
    model, stream = bench.model(), source(3)
    run(bench, model, itertools.islice(stream, 4 * bench.rounds))  # until groups have their room
    before = len(pickle.dumps(model))
    run(bench, model, itertools.islice(stream, 4 * bench.rounds))
    grown = len(pickle.dumps(model)) - before
    require(
        grown <= SLACK + before // 8,
        f"its model grew by {grown} bytes over {4 * bench.rounds} rounds of the {name} stream, "
        f"from {before}. Keep sums of the rows, not the rows.",
    )


def _split_and_resume_is_one_pass(bench: Bench) -> None:
    for source in bench.streams.values():
        rounds = list(itertools.islice(source(4), bench.rounds))
        model, half = bench.model(), len(rounds) // 2
        run(bench, model, rounds[:half])
        resumed = copies(model)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gw")
            with suppress(SnapshotError):  # said by name; not every learner can be saved
                model.save(path)
            if os.path.exists(path):
                resumed["snapshot"] = load(path)
        expected = run(bench, model, rounds[half:])
        for how, other in resumed.items():
            require(
                all(map(same, expected, run(bench, other, rounds[half:]))),
                f"going on from a {how} made in mid-stream gives other predictions.",
            )
            require(
                str(other.regret()) == str(model.regret()),
                f"going on from a {how} made in mid-stream gives another regret table.",
            )


def _replay_is_the_loop(bench: Bench) -> None:
    if hasattr(bench.learner, "context_width"):
        return  # these cannot enter a replay, and say so
    members = np.random.default_rng(5).random((bench.rounds, 3)) < 0.5
    members[0] = True  # groups are numbered as they come
    members[:, 0] |= ~members.any(axis=1)
    replay_is_the_loop(members.astype(float), bench.fresh(), loss=bench.loss)


def _certificates_hold(bench: Bench) -> None:
    for name, source in bench.streams.items():
        for delayed in (False, True):
            seeds = range(20 if bench.randomised else 2)  # expectations are seen on the average
            excess = [_excess(bench, source, seed, delayed) for seed in seeds]
            late = ", labels late" if delayed else ""
            for group in excess[0]:
                mean = float(np.mean([one[group] for one in excess]))
                require(
                    mean <= 0.0,
                    f"regret on {group!r} exceeds its certificate, or its a_priori, by {mean:.3g} "
                    f"on the {name} stream{late}: the learner does not do at settlement what it "
                    "said it would.",
                )


def _excess(bench: Bench, source: Source, seed: int, delayed: bool) -> dict[str, float]:
    """By how much regret exceeds the certificate, or what was known before the first row."""
    model = bench.model(seed)
    generator = np.random.default_rng(seed)
    tickets: list[Any] = []
    played: list[Any] = []
    worst: dict[str, float] = defaultdict(lambda: -math.inf)
    for t, (row, answer) in enumerate(itertools.islice(source(seed), bench.rounds), 1):
        ticket = model.predict(row)
        played.append(ticket.prediction)
        tickets.append((ticket, answer(bench.shown(played))))
        at_end = t == bench.rounds
        while len(tickets) > (20 if delayed and not at_end else 0):
            model.learn(*tickets.pop(int(generator.integers(len(tickets)))))
        if at_end or (t % 10 == 0 and not bench.randomised):
            for line in model.regret():
                require(math.isfinite(line["regret"]), f"regret is {line['regret']}.")
                known = (line[key] for key in ("certificate", "a_priori") if line[key] is not None)
                gap = line["regret"] - min(known)
                gap -= ROUNDING * bench.loss.unit * (1.0 + line["rounds"])
                worst[line["group"]] = max(gap, worst[line["group"]])
    return worst


def _rows_stay_as_they_are(bench: Bench) -> None:
    learner = bench.fresh()
    for t, (row, label) in enumerate(_numbers(bench.rounds)):
        given = copy.deepcopy(row)
        update = partial(learner.update, row, label, 1.0)
        for step, call in {"advise": partial(_advise, learner, row, t), "update": update}.items():
            call()
            require(all(map(same, row, given)), f"{step} changed the row that it was given.")


def _rows_are_not_held_on_to(bench: Bench) -> None:
    kept, spoiled = bench.fresh(), bench.fresh()
    for t, (row, label) in enumerate(_numbers(bench.rounds)):
        one, two = _advise(kept, row, t), _advise(spoiled, copy.deepcopy(row), t)
        require(
            same(one, two),
            "its advice changed when a row that it had learned from was overwritten. Copy what "
            "you keep: row.values.copy().",
        )
        kept.update(copy.deepcopy(row), label, 1.0)
        lent = copy.deepcopy(row)
        spoiled.update(lent, label, 1.0)
        lent.values[:], lent.indices[:] = 1e9, 0


def _draws_are_of_their_key(bench: Bench) -> None:
    learner = bench.fresh()
    for t, (row, label) in enumerate(_numbers(bench.rounds if hasattr(learner, "draw") else 0)):
        once, _, again = (_advise(learner, row, number) for number in (t, t + 1, t))
        require(
            same(once, again),
            f"drawing with the key {(0, t, 0, 0)} twice gives the advice {once} and {again}. All "
            "randomness must be a function of the key: numpy.random.default_rng(key).",
        )
        learner.update(row, label, 1.0)


def _new_features_are_met(bench: Bench) -> None:
    learner = bench.fresh()
    for t in range(8):
        row = Row(np.arange(t + 1), np.full(t + 1, 0.1), [f"feature {i}" for i in range(t + 1)])
        try:
            advice = _advise(learner, row, t)
            learner.update(row, 0.5, 1.0)
        except GroupwiseError:
            return  # refused, by name
        require(math.isfinite(advice), f"its advice on a row with a new feature is {advice}.")


def _copies_are_the_same(bench: Bench) -> None:
    learner = bench.fresh()
    rows = _numbers(bench.rounds)
    for row, label in rows:
        learner.update(row, label, 1.0)
    for how, other in copies(learner).items():
        for t, (row, _) in enumerate(rows):
            require(
                same(_advise(learner, row, t), _advise(other, row, t)),
                f"a {how} of it gives other advice. It must take along all that was learned.",
            )


def _fractional_groups_are_served_or_refused(bench: Bench) -> None:
    learner = bench.fresh()
    if not takes_weights(learner):
        model = Groupwise(declarations(True), learner=learner, features=FEATURES)
        try:
            model.predict({"kind": "plain", "u": 0.5, "v": 0.1, "one": 1.0, "share": 0.5})
        except ConfigurationError:
            return
        raise CheckFailed("it takes no weights, and a fractional group was not refused.")
    for t, (row, label) in enumerate(_numbers(20)):
        learner.update(row, label, 0.25)
        advice = _advise(learner, row, t, weight=0.25)
        require(math.isfinite(advice), f"its advice with weight 0.25 is {advice}.")


def takes_weights(learner: Any) -> bool:
    """Does it serve fractional groups?"""
    return bool(getattr(learner, "takes_weights", True))


def _numbers(rounds: int) -> list[tuple[Row, float]]:
    """Rows as a learner gets them."""
    generator = np.random.default_rng(6)
    names = ["x0", "x1", "x2"]
    return [
        (Row(np.arange(3), generator.normal(size=3), names), float(generator.random()))
        for _ in range(rounds)
    ]


def _advise(learner: Any, row: Row, number: int, weight: float = 1.0) -> float:
    if hasattr(learner, "draw"):
        learner.draw((0, number, 0, 0))
    return float(learner.advise(row, weight))


OBJECT_CHECKS: tuple[Callable[[Bench], None], ...] = (
    _rows_stay_as_they_are,
    _rows_are_not_held_on_to,
    _draws_are_of_their_key,
    _new_features_are_met,
    _copies_are_the_same,
    _fractional_groups_are_served_or_refused,
)
"""For learners that are objects with advise and update, which are called directly."""
LEARNER_CHECKS: tuple[Callable[[Bench], None], ...] = (
    _advice_is_finite,
    _advise_changes_nothing,
    *OBJECT_CHECKS,
    _copies_are_independent,
    _memory_is_bounded,
    _split_and_resume_is_one_pass,
    _replay_is_the_loop,
    _certificates_hold,
)
