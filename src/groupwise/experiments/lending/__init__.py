"""Lending as apple tasting: whether an applicant repays is seen only if the loan is given."""

from functools import partial
from typing import Any

import numpy as np

from groupwise.experiments import classification as generated
from groupwise.experiments.lending.applicants import FIELDS, GROUP_FIELDS, applicants
from groupwise.experiments.outcome import Check, Outcome, Plan
from groupwise.experiments.tasting import Stream, Tasted, taste
from groupwise.groups import by
from groupwise.learners import ContextualFTPL
from groupwise.losses import ZeroOne
from groupwise.model import Groupwise
from groupwise.oracles import Stumps
from groupwise.partial_feedback import AppleTasting
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, mean_and_spread, number
from groupwise.stream import job_count

TITLE = "Lending: labels only where a loan is given"
ABOUT = (
    "Apple tasting: the label is seen only where the prediction is 1. One round of every block "
    "of ⌈T^{1/3}⌉ is explored, which means accepted whatever the model says, and only explored "
    "rounds are learned from. First, a generated stream of growing length T, with stumps and "
    "four groups: the regret of the worst group, forced acceptances included, grows like "
    "T^{2/3}. Then the people of the UCI Adult data as applicants, an income above 50,000 "
    "standing for repayment, stumps on bits of their records, and groups by sex, race and age. "
    "The horizon is known, or guessed and doubled: starting afresh at each doubling is what the "
    "proof needs, keeping what was learned does better here (measured, not proved). Regret is "
    "computed from all labels, which the lender never sees; what it reports itself is an "
    "estimate from its explored rounds."
)
SEEDS = tuple(range(1_000, 1_005))
LENGTHS = (1_000, 3_162, 10_000, 31_623, 100_000)
SLOPE = 0.70
WAYS = {
    "horizon known": {"known": True, "keep_state": False},
    "unknown, restarting": {"known": False, "keep_state": False},
    "unknown, keeping state": {"known": False, "keep_state": True},
}


def run(plan: Plan) -> Outcome:
    """The slope on generated streams, then the applicants."""
    seeds = SEEDS[: plan.seeds]
    lengths = [length for length in LENGTHS if length <= (plan.rounds or LENGTHS[-1])]
    lengths = lengths or [plan.rounds or LENGTHS[0]]
    people, source = applicants(plan.data, plan.rounds)
    tasks = [partial(on_generated, length, seed) for length in lengths for seed in seeds]
    tasks += [partial(on_applicants, people, way, seed) for way in WAYS for seed in seeds]
    found = _all(tasks, plan.jobs)
    worst = np.array([tasted.regret.max() for tasted in found[: len(lengths) * len(seeds)]])
    worst = worst.reshape(len(lengths), -1).mean(axis=1)
    on_people = np.array(found[len(lengths) * len(seeds) :])
    lent = dict(zip(WAYS, np.array_split(on_people, len(WAYS)), strict=True))
    slope = float(np.polyfit(np.log(lengths), np.log(worst), 1)[0]) if len(lengths) > 1 else np.nan
    tables = [_slope_table(lengths, worst), *(_table(way, lent[way], people) for way in WAYS)]
    numbers = {"slope": slope}
    for way in WAYS:
        for g, group in enumerate(people.groups):
            numbers[f"{way}/{group}/regret"] = float(lent[way][:, 1, g].mean())
    check = Check(
        f"The worst group’s regret grows with a slope of at most {SLOPE} in log-log",
        slope <= SLOPE,
        number(slope),
    )
    x = np.log10(np.array(lengths, dtype=np.float64))
    middle = np.log10(worst).mean() - slope * x.mean()
    fit = np.asarray(middle + slope * x, dtype=np.float64)
    lines = (
        Line("worst group’s regret", x, np.log10(worst), colour=1, style="marked"),
        Line(f"slope {slope:.2f}", x, fit, colour=0, style="dashed"),
    )
    figure = Figure(
        "lending-slope",
        "The worst group’s regret, payments included, against the length of the stream, both as "
        "powers of ten.",
        "log₁₀ T",
        "log₁₀ regret",
        (Panel("known horizon", lines),),
        columns=1,
    )
    return Outcome(tables, [figure], [check], numbers, [f"The applicants: {source}."])


def _all(tasks: list[Any], jobs: int | None) -> list[Tasted]:
    count = job_count(jobs)
    if count == 1:
        return [task() for task in tasks]
    import joblib

    parallel: Any = joblib.Parallel(count, "loky")
    results: list[Tasted] = parallel(joblib.delayed(task)() for task in tasks)
    return results


def on_generated(length: int, seed: int) -> Tasted:
    """One run on a generated stream, with the horizon known."""
    lender = AppleTasting(generated.labeller("transductive", 1, seed), horizon=length)
    return taste(lender, generated_stream(length, seed))


def generated_stream(length: int, seed: int) -> Stream:
    """The stream of the classification experiment, nothing adaptive in it."""
    rng = np.random.default_rng(seed)
    stumps = generated.stump_table()
    chosen = rng.permutation(len(stumps))[: generated.GROUPS + 1]
    context = rng.integers(len(generated.CONTEXTS), size=length)
    member = rng.random((length, generated.GROUPS)) < generated.MEMBERSHIP
    active = np.where(member.any(axis=1), member.argmax(axis=1), generated.GROUPS)
    flipped = rng.random(length) < generated.NOISE
    labels = np.abs(stumps[chosen[active], context] - flipped)
    bits = generated.CONTEXTS[context]
    names = [f"group{g}" for g in range(generated.GROUPS)]
    rows = [
        dict(zip([*generated.FIELDS, *names], cells, strict=True))
        for cells in np.column_stack([bits, member]).astype(int).tolist()
    ]
    everybody = np.ones((length, 1), dtype=bool)
    groups = (*(f"{name}=1" for name in names), "always_on")
    return Stream(rows, bits, labels, np.hstack([member, everybody]), groups)


def on_applicants(people: Stream, way: str, seed: int) -> Tasted:
    """One run over all applicants in random order."""
    order = np.random.default_rng(seed).permutation(len(people.labels))
    stream = Stream(
        [people.rows[i] for i in order.tolist()],
        people.bits[order],
        people.labels[order],
        people.membership[order],
        people.groups,
    )
    learner = ContextualFTPL(Stumps(), Stumps().separator(len(FIELDS)), "separator")
    model = Groupwise(
        [by(field) for field in GROUP_FIELDS], learner, loss=ZeroOne(), features=FIELDS, seed=seed
    )
    horizon = len(order) if WAYS[way]["known"] else None
    return taste(AppleTasting(model, horizon, WAYS[way]["keep_state"]), stream)


def _slope_table(lengths: list[int], worst: Any) -> Table:
    columns = (Column("T"), Column("Worst group’s regret"), Column("per T^{2/3}"))
    rows = tuple(
        (Cell(f"{t:,}"), Cell(number(w, 1)), Cell(number(w / t ** (2 / 3), 3)))
        for t, w in zip(lengths, worst.tolist(), strict=True)
    )
    return Table("Generated streams, horizon known", columns, rows)


def _table(way: str, runs: Any, people: Stream) -> Table:
    titles = ("Rounds", "Single learner’s regret", "Our regret", "Own estimate", "Payments")
    columns = (Column("Group", numeric=False), *(Column(title) for title in titles))
    rows = []
    for g, group in enumerate(people.groups):
        rounds, regret, estimate, payments, baseline = runs[:, :, g].T
        cells = (baseline, regret, estimate, payments)
        pairs = (mean_and_spread((float(c.mean()), float(c.std())), 1) for c in cells)
        rows.append((Cell(group), Cell(f"{rounds[0]:,.0f}"), *(Cell(pair) for pair in pairs)))
    note = "Regrets with forced acceptances; means ± standard deviations over the seeds."
    return Table(f"Applicants, {way}", columns, tuple(rows), note)
