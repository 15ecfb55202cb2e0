"""How sentences about the experiments are judged: what is asked of groups, and what of tables."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from groupwise import bounds
from groupwise.arrays import Vector
from groupwise.datasets import published
from groupwise.paper.evidence import (
    ADULT,
    EVERYBODY,
    MEDICAL,
    SHUFFLED,
    SYNTHETIC,
    Evidence,
    printed,
)
from groupwise.paper.published import ORDERS
from groupwise.paper.run import Run
from groupwise.paper.statements import (
    LINEAR,
    SUBSTANTIAL,
    Judgement,
    Seen,
    among,
    least,
    most,
    percent,
)
from groupwise.paper.tables import Result
from groupwise.report.tables import number

Judge = Callable[[Evidence], Judgement]


# What is asked of groups.


def lower(groups: Sequence[Seen], by: float = 0.0) -> Judgement:
    """At the end our loss is below the baseline's, by so large a part of it at least."""
    value, place = least(groups, lambda one: one.decrease)
    so = among(groups, lambda one: one.decrease > by)
    found = f"at the end in {so}; least {percent(value)} of the baseline’s loss, {place}"
    return Judgement(found, value > by, {"least": value})


def always_lower(groups: Sequence[Seen]) -> Judgement:
    """At each of 60 moments of every group."""
    value, place = most(groups, lambda one: one.lower_from)
    so = among(groups, lambda one: one.lower_from == 0.0)
    if value == 0.0:
        return Judgement(f"at all 60 moments in {so}", True, {"from": 0.0})
    found = f"throughout in {so}; everywhere after the first {percent(value)} ({place})"
    return Judgement(found, False, {"from": value})


def slower(groups: Sequence[Seen]) -> Judgement:
    """Over the last half our regret grows less than the baseline's."""

    def gap(one: Seen) -> float:
        return one.over_last_half(one.baseline) - one.over_last_half(one.ours)

    value, place = least(groups, gap)
    found = f"over the last half in {among(groups, lambda one: gap(one) > 0.0)}"
    return Judgement(f"{found}; least {number(value, 3)}, {place}", value > 0.0, {"least": value})


def negative(groups: Sequence[Seen]) -> Judgement:
    """Our regret ends below zero, and falls over the last half."""

    def falls(one: Seen) -> bool:
        return bool(one.ours[-1] < 0.0) and one.over_last_half(one.ours) < 0.0

    value, place = most(groups, lambda one: float(one.ours[-1]))
    found = f"in {among(groups, falls)}; highest {number(value)}, {place}"
    return Judgement(found, all(map(falls, groups)), {"highest": value})


def linear(groups: Sequence[Seen]) -> Judgement:
    """The baseline's regret grows linearly over the last three quarters."""
    grown = [one.exponent(one.baseline) for one in groups]
    so = among(groups, lambda one: one.exponent(one.baseline) >= LINEAR)
    value, place = least(groups, lambda one: one.exponent(one.baseline))
    shown = number(value) if math.isfinite(value) else "none, it falls"
    found = f"in {so}; least exponent {shown}, {place}"
    return Judgement(
        found, min(grown) >= LINEAR, {"linear": float(np.mean(np.array(grown) >= LINEAR))}
    )


def sublinear(groups: Sequence[Seen]) -> Judgement:
    """The baseline's regret grows less than linearly."""
    value, place = most(groups, lambda one: one.exponent(one.baseline))
    found = f"largest exponent {number(value)}, {place}"
    return Judgement(found, value < LINEAR, {"exponent": value})


# Numbers of the prose.


def rough(experiment: str, best: float, gap: float) -> Judge:
    """The means over a table's groups of the best loss, and of what we lose less."""

    def judge(evidence: Evidence) -> Judgement:
        rows = [row.found for row in evidence.results[experiment, SHUFFLED].rows]
        losses = [row.best_in_hindsight_loss for row in rows]
        return _rough(
            float(np.mean(losses)),
            float(np.mean([row.baseline_regret[0] - row.algorithm_regret[0] for row in rows])),
            best,
            gap,
        )

    return judge


def _rough(found: float, less: float, best: float, gap: float) -> Judgement:
    unit = 0.1 if best < 10.0 else 1.0
    text = f"means over the table’s groups: {number(found)} and {number(less)}"
    holds = abs(found - best) < unit and abs(less - gap) < unit
    return Judgement(text, holds, {"best": found, "less": less})


def income(best: float, gap: float) -> str:
    """The same of the adult data, from the paper's own table."""
    rows = printed().values()
    losses, less = np.mean([row[2] for row in rows]), np.mean([row[0] - row[1] for row in rows])
    agrees = "agrees" if _rough(float(losses), float(less), best, gap).holds else "does not"
    return f"; its own table {agrees}: {number(float(losses))} and {number(float(less))}"


def of_table(named: Sequence[str] | None = None, orders: Sequence[str] = (SHUFFLED,)) -> str:
    """How many groups of the paper's own adult tables end with the lower regret."""
    rows = [
        row
        for order in orders
        for group, row in printed(order).items()
        if named is None or group in named
    ]
    count = sum(ours < baseline for baseline, ours, _ in rows)
    return f"; lower at the end in {count} of {len(rows)} lines of its own tables"


def less_than_others() -> Judgement:
    """What is lost less than by the baseline, as a part of what that loses, in printed tables."""
    parts = {}
    for name in (*SYNTHETIC, MEDICAL, ADULT):
        rows = np.array(list(printed(SHUFFLED, name).values())).mean(axis=0)
        parts[name] = float((rows[0] - rows[1]) / (rows[0] + rows[2]))
    adult = parts.pop(ADULT)
    found = f"{percent(adult)} of the baseline’s loss; elsewhere at least "
    holds = 0.0 < adult < min(parts.values())
    return Judgement(f"{found}{percent(min(parts.values()))}", holds, {"part": adult})


def uniformly(evidence: Evidence) -> Judgement:
    """All groups of all tables; of adult income, those that the paper prints."""
    groups = evidence.of([name for name in (*SYNTHETIC, MEDICAL) if name in evidence.data])
    ours = lower(groups, SUBSTANTIAL)
    tables = [row for order in ORDERS for row in printed(order).values()]
    parts = [(baseline - our) / (baseline + best) for baseline, our, best in tables]
    some = sum(part > SUBSTANTIAL for part in parts)
    found = f"{ours.found}; adult income as printed: more than {percent(SUBSTANTIAL)} in {some} "
    found += f"of {len(parts)} lines, least {percent(min(parts))}"
    return Judgement(found, bool(ours.holds) and some == len(parts), ours.numbers)


def often_negative(evidence: Evidence) -> Judgement:
    """How many groups of the synthetic tables."""
    groups = evidence.of(SYNTHETIC)
    count = sum(one.ours[-1] < 0.0 for one in groups)
    share = count / len(groups)
    return Judgement(f"in {count} of {len(groups)}", share > 0.5, {"share": share})


def in_range(evidence: Evidence) -> Judgement:
    """Whether a loss has left [0, 1], though advice is not clipped."""
    runs = [run for result in evidence.results.values() for run in result.runs]
    outside = sum(bool(run.void.any()) for run in runs)
    found = f"in {len(runs) - outside} of {len(runs)} runs, though no advice is clipped"
    return Judgement(found, not outside, {"outside": float(outside)})


def azoury_warmuth(evidence: Evidence) -> Judgement:
    """The baseline's regret to everybody's best model, beside the bound of ridge regression."""
    parts = []
    for (name, _), groups in evidence.groups.items():
        data = evidence.data[name]
        theta = np.linalg.lstsq(data.features, data.label, rcond=None)[0]
        limit = bounds.ridge(data.rows, data.features.shape[1], float(np.linalg.norm(theta)))
        (everybody,) = (one for one in groups if one.group == EVERYBODY)
        parts.append((float(everybody.baseline[-1]) / limit, everybody.table))
    value, place = max(parts)
    found = f"everybody’s regret is at most {percent(value)} of the bound ({place})"
    return Judgement(found, value <= 1.0, {"part": value})


def theorem(evidence: Evidence) -> Judgement:
    """Certificates on the clipped medical data, at 60 moments of every group in every run."""
    runs = [run for result in evidence.clipped.values() for run in result.runs]
    part = max(float(((run.loss - run.best_loss) / run.certificate).max()) for run in runs)
    above = sum(int((run.loss - run.best_loss > run.certificate).sum()) for run in runs)
    found = f"{above} of {sum(run.loss.size for run in runs):,} certificates exceeded; regret is "
    return Judgement(f"{found}at most {percent(part)}", not above, {"part": part})


def clipping_helps(evidence: Evidence) -> Judgement:
    """Final losses of every medical group, with and without."""
    changes = []
    for order, clipped in evidence.clipped.items():
        plain = evidence.results[MEDICAL, order]
        for g, group in enumerate(plain.groups):
            with_, without = (
                float(np.mean([run.loss[g, -1] for run in one.runs])) for one in (clipped, plain)
            )
            changes.append((with_ - without, f"{group} (medical, {order})"))
    worse = sum(change > 0.0 for change, _ in changes)
    value, place = max(changes)
    found = "no expert’s loss rises, but weights change: the loss is no higher in "
    found += f"{len(changes) - worse} of {len(changes)} groups; "
    found += f"largest change {number(value, 3, signed=True)}, {place}"
    return Judgement(found, not worse, {"change": value})


def tables_clipped(evidence: Evidence) -> Judgement:
    """Which of both comes closer to the printed tables."""

    def off(results: Sequence[Result]) -> float:
        rows = [row.deviations() for one in results for row in one.rows]
        return max(abs(value) for row in rows if row is not None for value in row.flat())

    plain = off([evidence.results[MEDICAL, order] for order in ORDERS])
    clipped = off(list(evidence.clipped.values()))
    found = f"clipped, figures are up to {number(clipped)} from the printed ones; as they are, "
    found += number(plain)
    return Judgement(found, clipped <= plain, {"clipped": clipped, "plain": plain})


def tables_agree(evidence: Evidence) -> Judgement:
    """Every figure of every table that can be made here."""
    judged = [
        one
        for one in evidence.results.values()
        if not one.why_not_judged
        and [row.size for row in one.rows]
        == [row.size for row in published()[one.experiment.name, one.order]]
    ]
    missed = [one.name for one in judged if one.misses]
    found = f"{len(judged) - len(missed)} of {len(judged)} tables to their tolerance"
    return Judgement(
        found if judged else "not all seeds and rounds", not missed if judged else None
    )


def same_best(evidence: Evidence) -> Judgement:
    """How the best loss differs between shuffles: as tables have it, and exactly."""

    def spread(one: str) -> float:
        return max(
            float(np.ptp([last(run, one)[g] for run in result.runs]))
            for result in evidence.results.values()
            for g in range(len(result.groups))
        )

    def last(run: Run, one: str) -> Vector:
        values: Vector = getattr(run, one)
        return values[:, -1] if values.ndim == 2 else values

    printed_, exact = spread("published_best"), spread("best_loss")
    found = f"on all rows they differ by {exact:.0e}; but the tables leave out each group’s last "
    found += f"row, and theirs by up to {number(printed_, 3)}"
    return Judgement(found, printed_ < 1e-6, {"spread": printed_})


def comparable(evidence: Evidence) -> Judgement:
    """What we lose less, over what the baseline loses: means over the groups."""
    groups = evidence.of(["synthetic-mean"], (SHUFFLED,))
    gap = float(np.mean([one.baseline[-1] - one.ours[-1] for one in groups]))
    loss = float(np.mean([one.baseline[-1] + one.best[-1] for one in groups]))
    found = f"{number(gap)} of {number(loss)}"
    return Judgement(found, gap >= 0.1 * loss, {"part": gap / loss})
