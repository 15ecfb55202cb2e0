"""The runs that the paper's sentences about its experiments are held against."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from groupwise.datasets import PAPER_SEEDS, Dataset, published
from groupwise.errors import DatasetError
from groupwise.paper.claims import Request
from groupwise.paper.published import EXPERIMENTS, ORDERS, Settings, dataset_of, source_of
from groupwise.paper.reproduction import Plan, results_of
from groupwise.paper.statements import Judgement, Seen, seen
from groupwise.paper.tables import Result
from groupwise.writing import folder

RULES = ("mean", "min", "max", "permutation")
SYNTHETIC = tuple(f"synthetic-{rule}" for rule in RULES)
MEDICAL, ADULT = "medical", "adult"
SHUFFLED, SORTED = ORDERS
EVERYBODY = "always_on"


@dataclass(frozen=True)
class Evidence:
    """Every table made anew, by experiment and order; ``absent`` says why some are not.

    ``clipped`` is the medical data again, with advice clipped as the text has it.
    """

    data: Mapping[str, Dataset]
    results: Mapping[tuple[str, str], Result]
    clipped: Mapping[str, Result]
    absent: Mapping[str, str]

    @cached_property
    def groups(self) -> dict[tuple[str, str], list[Seen]]:
        """The groups of every table."""
        return {key: seen(result) for key, result in self.results.items()}

    def of(
        self,
        experiments: Sequence[str],
        orders: Sequence[str] = ORDERS,
        named: Sequence[str] | None = None,
        everybody: bool = True,
    ) -> list[Seen]:
        """The groups of some tables: those that are named, or all."""
        return [
            one
            for experiment in experiments
            for order in orders
            for one in self.groups[experiment, order]
            if (named is None or one.group in named) and (everybody or one.group != EVERYBODY)
        ]

    def needing(
        self, experiment: str, judge: Callable[["Evidence"], Judgement], otherwise: str = ""
    ) -> Judgement:
        """What a claim is judged to be, where its data can be had."""
        if experiment in self.absent:
            return Judgement(f"{self.absent[experiment]}{otherwise}", None)
        return judge(self)


def gathered(request: Request) -> Evidence:
    """Run everything, or read it where an earlier run in the same folder has left it."""
    sources, absent = {}, {}
    for experiment in EXPERIMENTS.values():
        try:
            source = source_of(experiment, request.data)
        except DatasetError:
            if experiment.name == MEDICAL and request.data is not None:
                raise
            may = "may not be passed on" if experiment.name == ADULT else "could not be had"
            absent[experiment.name] = f"its file {may}"
            request.say(f"{experiment.name} is left out: {absent[experiment.name]}.")
            continue
        if request.rounds is not None:
            whole = dataset_of(source)
            source = whole.take(np.arange(min(request.rounds, whole.rows)))
        sources[experiment] = source
    out = folder(request.out)
    plan = Plan(
        seeds=min(request.seeds or len(PAPER_SEEDS), len(PAPER_SEEDS)),
        out=out,
        jobs=request.jobs,
    )
    progress = bool(request.what)
    results = results_of(plan, sources, out, progress)
    again = {each: source for each, source in sources.items() if each.name == MEDICAL}
    clipped = results_of(replace(plan, settings=Settings(clip=True)), again, out, progress)
    return Evidence(
        {each.name: dataset_of(source) for each, source in sources.items()},
        {(one.experiment.name, one.order): one for one in results},
        {one.order: one for one in clipped},
        absent,
    )


def printed(order: str = SHUFFLED, experiment: str = ADULT) -> dict[str, tuple[float, ...]]:
    """The paper's own table: by group the regret of the baseline, ours, and the best loss."""
    return {
        row.group: (row.baseline_regret[0], row.algorithm_regret[0], row.best_loss)
        for row in published()[experiment, order]
    }
