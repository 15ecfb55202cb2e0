"""From a plan to the published tables made anew: data, runs, tables, figures, page."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from groupwise.datasets import PAPER_SEEDS
from groupwise.datasets._files import ENVIRONMENT, cache, locate
from groupwise.engines import LOCAL, checked_engine
from groupwise.errors import ConfigurationError, DatasetError
from groupwise.paper.engine import Store, Task, key_of, run_tasks
from groupwise.paper.figures import figures_of, illustrate
from groupwise.paper.published import (
    ORDERS,
    Experiment,
    Settings,
    Source,
    chosen,
    source_of,
)
from groupwise.paper.tables import EXACT, NOTE, Result, summarise, summary_table, table_of
from groupwise.progress import progress_bar
from groupwise.report.page import Illustration, Page, Section, html
from groupwise.report.provenance import versions
from groupwise.report.tables import csv_text, json_text, latex
from groupwise.writing import folder, write

FIGURES = "figures"
OPTIONAL = "adult"
"""The experiment whose file may not be passed on, so that "all" must do without it."""

CITATION = (
    "The tables and figures of Acharya, Arunachaleswaran, Kannan, Roth and Ziani, “Oracle "
    "Efficient Algorithms for Groupwise Regret” (ICLR 2024), computed anew by groupwise, next to "
    "the published figures. The baseline is one online ridge regression for everybody; our "
    "algorithm has one for every group as well, and combines them."
)
CERTIFICATE = (
    "What the paper does not show: a certificate bounds the regret on each group at every moment "
    "of the run. It holds where losses stay in [0, 1]; the paper does not clip predictions, so a "
    "run may leave that range, and its certificates are then void."
)


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
    notes = []
    sources: dict[Experiment, Source] = {}
    for experiment in chosen(plan.experiments):
        note = _cannot_be_had(experiment, plan)
        if note:
            notes.append(note)
            say(note)
        else:
            sources[experiment] = source_of(experiment, plan.data)
    out = folder(Path(plan.out))
    results = results_of(plan, sources, out, progress)
    for result in results:
        write(out / f"{result.name}.json", json_text(result.to_dict()))
        write(out / f"{result.name}.csv", csv_text(result.to_dict()["rows"]))
        write(out / f"{result.name}.tex", latex(table_of(result).without(EXACT)))
        show(result)
    figures = {result.name: list(figures_of(result)) for result in results}
    every = [figure for some in figures.values() for figure in some]
    with progress_bar(len(every), "figures", progress, "figures", steady=True) as advance:
        advance(0)
        drawn = illustrate(every, out / FIGURES, f"{FIGURES}/", plan.jobs, advance)
        shown = {illustration.figure.name: illustration for illustration in drawn}
    illustrations = {name: [shown[f.name] for f in some] for name, some in figures.items()}
    page = write(out / "index.html", html(page_of(results, illustrations, notes)))
    return Reproduction(results, notes, page)


def _cannot_be_had(experiment: Experiment, plan: Plan) -> str:
    """Why an experiment is left out of "all"; empty where it is not."""
    if experiment.name != OPTIONAL or OPTIONAL in plan.experiments or experiment.file is None:
        return ""
    try:
        locate(experiment.file, data_dir=plan.data)
    except DatasetError:
        return (
            f"{experiment.name} is left out: there is no {experiment.file.name}. Fetch it from "
            f"{experiment.file.address} and put it into the folder that --data or "
            f"{ENVIRONMENT} names, or into {cache()}."
        )
    return ""


def results_of(
    plan: Plan, sources: dict[Experiment, Source], out: Path, progress: bool
) -> list[Result]:
    """Every table's runs: those that are stored already, and the others computed and stored."""
    store, seeds = Store(out), PAPER_SEEDS[: plan.seeds]
    keys = {experiment: key_of(plan.settings, source) for experiment, source in sources.items()}
    wanted = {
        (experiment, order, seed): store.path(experiment.name, order, seed, keys[experiment])
        for experiment in sources
        for order in plan.orders
        for seed in seeds
    }
    runs = {what: found for what, path in wanted.items() if (found := store.load(path)) is not None}
    missing = [what for what in wanted if what not in runs]
    tasks = [Task(sources[what[0]], *what[1:], plan.settings) for what in missing]
    with progress_bar(len(wanted), "runs", progress, "seeds", steady=True) as advance:
        if runs:
            advance(len(runs))
        for number, run in run_tasks(tasks, plan.engine, plan.jobs):
            store.save(wanted[missing[number]], run)
            runs[missing[number]] = run
            advance(1)
    tables = {
        (experiment, order): [runs[experiment, order, seed] for seed in seeds]
        for experiment in sources
        for order in plan.orders
    }
    return [
        Result(each, order, plan.settings, seeds, found, summarise(each.name, order, found))
        for (each, order), found in tables.items()
    ]


def page_of(
    results: Sequence[Result],
    illustrations: Mapping[str, Sequence[Illustration]],
    notes: Sequence[str],
) -> Page:
    """All tables and figures; ``illustrations`` by the result's name."""
    settings = results[0].settings
    changed = ", ".join(f"{name} = {_word(value)}" for name, value in settings.changes.items())
    warning = [f"Not the paper’s settings: {changed}."] if changed else []
    return Page(
        title="Oracle efficient groupwise regret, reproduced",
        lead=[CITATION, *warning, NOTE, CERTIFICATE, *notes],
        summary=summary_table(results),
        sections=[
            Section(
                title=result.title,
                anchor=result.name,
                blocks=[table_of(result), *illustrations[result.name]],
                files={kind: f"{result.name}.{kind.lower()}" for kind in ("JSON", "CSV")}
                | {"LaTeX": f"{result.name}.tex"},
            )
            for result in results
        ],
        facts={
            "Settings": {
                **{
                    name.replace("_", " ").capitalize(): _word(value)
                    for name, value in settings.to_dict().items()
                },
                "Seeds": ", ".join(map(str, results[0].seeds)),
            },
            "Made with": versions(),
        },
    )


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "the aggregator’s own" if value is None else str(value)
