"""The whole way: data, runs, tables, figures, page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from groupwise.datasets import PAPER_SEEDS
from groupwise.datasets._files import ENVIRONMENT, cache
from groupwise.errors import ConfigurationError, DatasetError
from groupwise.progress import progress_bar
from groupwise.report.page import html
from groupwise.report.tables import csv_text, json_text, latex
from groupwise.reproduce.engine import LOCAL, Task, checked_engine, run_tasks
from groupwise.reproduce.experiments import (
    ORDERS,
    Experiment,
    Source,
    chosen,
    find_file,
    source_of,
)
from groupwise.reproduce.figures import figures_of
from groupwise.reproduce.illustrations import illustrate
from groupwise.reproduce.pages import page_of
from groupwise.reproduce.results import Result
from groupwise.reproduce.settings import Settings
from groupwise.reproduce.store import Store, key_of
from groupwise.reproduce.summary import summarise
from groupwise.reproduce.tables import EXACT, table_of
from groupwise.writing import folder, write

OPTIONAL = "adult"
"""The experiment whose file may not be passed on, so that "all" must do without it."""


@dataclass(frozen=True)
class Plan:
    """What is to be reproduced, where, and with what."""

    experiments: Sequence[str] = ()
    orders: Sequence[str] = ORDERS
    seeds: int = len(PAPER_SEEDS)
    data: str | os.PathLike[str] | None = None
    out: Path = field(default_factory=lambda: Path("reproduction"))
    jobs: int | None = None
    engine: str = LOCAL
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        checked_engine(self.engine)
        if not 1 <= self.seeds <= len(PAPER_SEEDS):
            raise ConfigurationError(
                f"The paper has {len(PAPER_SEEDS)} seeds: give a number from 1 to that many."
            )


@dataclass(frozen=True)
class Reproduction:
    """What came out. ``notes`` say what was left out, and why."""

    results: Sequence[Result]
    notes: Sequence[str]
    page: Path


def reproduce(
    plan: Plan,
    say: Callable[[str], None] = lambda note: None,
    show: Callable[[Result], None] = lambda result: None,
    progress: bool = False,
) -> Reproduction:
    """Do it. ``say`` is called with every note, ``show`` with every table, as they are known."""
    experiments = chosen(plan.experiments)
    notes = []
    sources: dict[str, Source] = {}
    for experiment in experiments:
        note = _cannot_be_had(experiment, plan)
        if note:
            notes.append(note)
            say(note)
        else:
            sources[experiment.name] = source_of(experiment, plan.data)
    out = folder(Path(plan.out))
    results = _run(plan, [e for e in experiments if e.name in sources], sources, out, progress)
    for result in results:
        write(out / f"{result.name}.json", json_text(result.to_dict()))
        write(out / f"{result.name}.csv", csv_text(result.to_dict()["rows"]))
        write(out / f"{result.name}.tex", latex(table_of(result).without(EXACT)))
        show(result)
    count = sum(1 for result in results for _ in figures_of(result))
    with progress_bar(count, "figures", progress, "figures") as advance:
        illustrations = illustrate(results, out, plan.jobs, advance)
    page = write(out / "index.html", html(page_of(results, illustrations, notes)))
    return Reproduction(results, notes, page)


def _cannot_be_had(experiment: Experiment, plan: Plan) -> str:
    """Why an experiment is left out of "all"; empty where it is not."""
    if experiment.name != OPTIONAL or OPTIONAL in plan.experiments or experiment.file is None:
        return ""
    try:
        find_file(experiment, plan.data)
    except DatasetError:
        return (
            f"{experiment.name} is left out: there is no {experiment.file.name}. Fetch it from "
            f"{experiment.file.address} and put it into the folder that --data or "
            f"{ENVIRONMENT} names, or into {cache()}."
        )
    return ""


def _run(
    plan: Plan,
    experiments: Sequence[Experiment],
    sources: dict[str, Source],
    out: Path,
    progress: bool,
) -> list[Result]:
    """Every table's runs: those that are stored already, and the others computed and stored."""
    store = Store(out)
    seeds = PAPER_SEEDS[: plan.seeds]
    keys = {name: key_of(plan.settings, source) for name, source in sources.items()}
    wanted = {
        (experiment.name, order, seed): store.path(
            experiment.name, order, seed, keys[experiment.name]
        )
        for experiment in experiments
        for order in plan.orders
        for seed in seeds
    }
    runs = {what: found for what, path in wanted.items() if (found := store.load(path)) is not None}
    missing = [what for what in wanted if what not in runs]
    tasks = [Task(sources[name], order, seed, plan.settings) for name, order, seed in missing]
    with progress_bar(len(wanted), "runs", progress, "seeds") as advance:
        advance(len(runs))
        for number, run in run_tasks(tasks, plan.engine, plan.jobs):
            store.save(wanted[missing[number]], run)
            runs[missing[number]] = run
            advance(1)
    results = []
    for experiment in experiments:
        for order in plan.orders:
            of_seeds = [runs[experiment.name, order, seed] for seed in seeds]
            rows = summarise(experiment.name, order, of_seeds)
            results.append(Result(experiment, order, plan.settings, seeds, of_seeds, rows))
    return results
