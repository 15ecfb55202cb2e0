"""Checks for learners."""

import copy
import itertools
import math
import os
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.checks.bench import Bench, run
from groupwise.checks.failure import during, require, same, size_of
from groupwise.checks.objects import OBJECT_CHECKS
from groupwise.checks.streams import FEATURES, STREAMS, Source, declarations
from groupwise.errors import SnapshotError
from groupwise.learners.actions import ActionLearner
from groupwise.losses import Loss, Square
from groupwise.model import Groupwise, load
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction
from groupwise.replay_arrays import replay

ROUNDING = 1e-9
"""Of the sum of squared labels, which certificates may be off by."""
SLACK = 2048
"""Bytes that any component may grow by."""


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
    fractional = bool(getattr(learner, "takes_weights", True))
    with during("construction", learner):
        bench = Bench(
            learner,
            Square() if loss is None else loss,
            declarations(fractional) if groups is None else groups,
            FEATURES if streams is None else features,
            STREAMS if streams is None else streams,
            rounds,
        )
        bench.model()
    for check in LEARNER_CHECKS:
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
        model = bench.model()
        half = len(rounds) // 2
        run(bench, model, rounds[:half])
        row = rounds[0][0]
        before = model._ticket(row).advice
        run(bench, copy.deepcopy(model), rounds[half:])
        after = model._ticket(row).advice
        require(
            same(before, after),
            "what a deep copy learned changed the original: state is kept outside the object, "
            "in its class or in its module.",
        )


def _memory_is_bounded(bench: Bench) -> None:
    name, source = next(iter(bench.streams.items()))
    model, stream = bench.model(), source(3)
    run(bench, model, itertools.islice(stream, bench.rounds))
    before = size_of([bank for bank, _ in model._reduction.banks])
    run(bench, model, itertools.islice(stream, 4 * bench.rounds))
    grown = size_of([bank for bank, _ in model._reduction.banks]) - before
    require(
        grown <= SLACK + before // 8,
        f"it grew by {grown} bytes over {4 * bench.rounds} rounds of the {name} stream, from "
        f"{before}. Keep sums of the rows, not the rows.",
    )


def _split_and_resume_is_one_pass(bench: Bench) -> None:
    for source in bench.streams.values():
        rounds = list(itertools.islice(source(4), bench.rounds))
        half = len(rounds) // 2
        model = bench.model()
        run(bench, model, rounds[:half])
        resumed = {
            "a deep copy": copy.deepcopy(model),
            "a pickle": pickle.loads(pickle.dumps(model)),
        }
        snapshot = _through_a_file(model)
        if snapshot is not None:
            resumed["a snapshot"] = snapshot
        expected = run(bench, model, rounds[half:])
        for how, other in resumed.items():
            found = run(bench, other, rounds[half:])
            require(
                all(same(a, b) for a, b in zip(expected, found, strict=True)),
                f"going on from {how} made in mid-stream gives other predictions.",
            )
            require(
                str(other.regret()) == str(model.regret()),
                f"going on from {how} made in mid-stream gives another regret table.",
            )


def _through_a_file(model: Groupwise) -> Groupwise | None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gw")
        try:
            model.save(path)
        except SnapshotError:
            return None  # said by name; not every learner can be saved
        return load(path)


def _replay_is_the_loop(bench: Bench) -> None:
    if isinstance(bench.learner, ActionLearner):
        return  # these cannot enter a replay, and say so
    generator = np.random.default_rng(5)
    features = generator.normal(size=(bench.rounds, 3))
    labels = generator.random(bench.rounds).round()
    members = (generator.random((bench.rounds, 3)) < 0.5).astype(float)
    result = replay(features, labels, members, learner=bench.fresh(), loss=bench.loss)
    reduction = Reduction([bench.fresh()], result._reduction.aggregator, bench.loss, None, True, 0)
    reduction.reserve(3, 3, [1.0] * 3)
    names = ["x0", "x1", "x2"]
    for t in range(bench.rounds):
        groups = np.flatnonzero(members[t])
        if groups.size:
            row = Row(np.arange(3), features[t], names)
            play, _ = reduction.learn(t, Awake(groups, np.ones(groups.size)), row, labels[t])
            found = bench.loss.decode(play.prediction)
            require(
                same(found, float(result.prediction[t])),
                f"row {t} of a replay predicts {result.prediction[t]!r}, the loop {found!r}.",
            )


def _certificates_hold(bench: Bench) -> None:
    for name, source in bench.streams.items():
        for delayed in (False, True):
            excess = [_excess(bench, source, seed, delayed) for seed in range(_seeds(bench))]
            for group in excess[0]:
                mean = float(np.mean([one[group] for one in excess]))
                late = ", labels late" if delayed else ""
                require(
                    mean <= 0.0,
                    f"regret on {group!r} exceeds its certificate by {mean:.3g} on the {name} "
                    f"stream{late}: the learner does not do at settlement what it said it would.",
                )


def _seeds(bench: Bench) -> int:
    """What holds in expectation is looked at on the average."""
    return 20 if bench.randomised else 2


def _excess(bench: Bench, source: Source, seed: int, delayed: bool) -> dict[str, float]:
    """By how much regret exceeds the certificate in the worst moment, group by group."""
    model = bench.model(seed)
    generator = np.random.default_rng(seed)
    tickets: list[Any] = []
    played: list[Any] = []
    worst: dict[str, float] = {}
    for t, (row, answer) in enumerate(itertools.islice(source(seed), bench.rounds), 1):
        ticket = model.predict(row)
        played.append(ticket.prediction)
        tickets.append((ticket, answer(bench.shown(played))))
        while len(tickets) > (20 if delayed else 0) or (tickets and t == bench.rounds):
            model.learn(*tickets.pop(int(generator.integers(len(tickets)))))
        at_end = t == bench.rounds
        if at_end or (t % 10 == 0 and not bench.randomised):
            for line in model.regret():
                require(math.isfinite(line["regret"]), f"regret is {line['regret']}.")
                gap = line["regret"] - line["certificate"]
                gap -= ROUNDING * bench.loss.unit * (1.0 + line["rounds"])
                worst[line["group"]] = max(gap, worst.get(line["group"], -math.inf))
    return worst


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
