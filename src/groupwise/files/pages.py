"""The reports: one page for a run, one for an audit."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from groupwise.files import chances
from groupwise.files.chances import Nats
from groupwise.files.settings import CLASSES
from groupwise.files.tables import (
    AGAINST,
    BEST,
    OURS,
    SINGLE,
    Row,
    group_table,
    title_of,
)
from groupwise.files.task import Task
from groupwise.files.text import quoted, shown
from groupwise.groups import ALWAYS_ON
from groupwise.regret.certificate import LOOSE, VACUOUS, VOID
from groupwise.report.figures import Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration, Page, Section, html, versions

if TYPE_CHECKING:
    from groupwise.files.plan import Plan
    from groupwise.files.run import Finished

SHORT = 25
"""So many groups are shown first, and drawn; all of them follow."""
FEW = 40
"""Up to so many, all of them are in the first table."""
POINTS = 3
"""Fewer make no curve."""
PANEL_NAME = 36


def run_page(finished: "Finished") -> str:
    """The report of a run as HTML."""
    rows, measure = finished.rows, finished.measure
    gained = measure.most_gained(rows)
    lead = [
        f"{_what(finished)} was predicted for {finished.scan.rows:,} rows "
        "one after another, each before its label was learned from, with a model for everybody and "
        f"one for each of {len(rows) - 1:,} groups. {_certified(rows)}"
    ]
    if gained is not None and gained is not measure.worst(rows):
        lead.insert(0, measure.gained(gained))
    return _page(finished, "regret on every group", lead)


def compare_page(compared: "Finished") -> str:
    """The report of an audit as HTML."""
    text = (
        f"The predictions of {' and '.join(shown(name, 30) for name in compared.players)} for "
        f"{shown(compared.plan.target)}, as logged in {compared.scan.rows:,} rows, beside what "
        "groupwise and a single online model would have predicted on the same rows, each before "
        f"its label was learned from. {_certified(compared.rows)}"
    )
    return _page(compared, "logged predictions on every group", [text])


def _page(done: "Finished", title: str, lead: Sequence[str]) -> str:
    """The page; ``lead`` stands after the sentences about the worst groups."""
    rows, few = done.rows, len(done.rows) <= FEW
    heading, worst_rows = ("Groups", rows) if few else ("Worst groups", rows[:SHORT])
    measure = done.measure
    first, *more = done.verdicts
    players = {shown(name, 30): key for name, key in done.players.items()}

    def section(title: str, anchor: str, chosen: Sequence[Row], note: str, *text: str) -> Section:
        experts = done.plan.experts
        table = group_table(chosen, measure, title, players, note, experts=experts)
        return Section(title, anchor, [*text, table])

    against = [AGAINST.format(name=shown(name, 30)) for name in done.plan.experts]
    sections = [
        section(heading, "groups", worst_rows, " ".join([measure.note, *against])),
        Section("Regret over time", "curves", [_curves(done)]),
    ]
    if isinstance(measure, Nats):
        sections.insert(1, chances.calibration(done.calibration))
        told = chances.notes(rows, measure)
        sections += [Section("Notes", "notes", told)] if told else []
    if done.warnings:
        sections.append(Section("Warnings", "warnings", done.warnings))
    if not few:
        text = f"All {len(rows):,} groups in the same order: everybody, then by regret per round."
        sections.append(section("All groups", "all-groups", rows, "", text))
    name = shown(done.scan.source.name.rsplit("/", 1)[-1])
    return html(
        Page(
            title=f"{name}: {title}",
            headline=first,
            lead=[*more, *lead, *_bound(rows), *_ahead(done.plan)],
            summary=None,
            sections=sections,
            facts=_facts(done),
        )
    )


def _certified(rows: Sequence[Row]) -> str:
    """Whether regret stayed below the certificates."""
    if any(row["status"] == VOID for row in rows):
        return "Certificates are void: some predictions left the range of the label."
    over = sum(row["regret"] > row["certificate"] * (1 + 1e-9) + 1e-9 for row in rows)
    if over:
        return f"On {over:,} groups the regret is above the certificate, which must not be."
    holds = "On every group the regret of groupwise is below its certificate, as it must be"
    found = Counter(row["status"] for row in rows)
    little = " and ".join(f"{found[one]:,} are {one}" for one in (LOOSE, VACUOUS) if found[one])
    return f"{holds}; of {len(rows):,} certificates {little}." if little else f"{holds}."


def _what(done: "Finished") -> str:
    """What was predicted."""
    target, task = shown(done.plan.target), done.plan.task
    if not task.is_chance:
        return f"The column {target}"
    if task.loss.classes is None and done.scan.columns[done.plan.target].distinct > len(task.names):
        return f"The column {target}, of probabilities,"
    if task.name == CLASSES:
        return f"The probability of each of {len(task.names)} classes of {target}"
    return f"The probability that {target} is {quoted(task.names[1])}, not {quoted(task.names[0])},"


def _bound(rows: Sequence[Row]) -> list[str]:
    """Whether there would have been better models beyond those that certificates are for."""
    everybody = (row for row in rows if row["group"] == ALWAYS_ON and row.get("note"))
    return [
        "Best in hindsight are models within a bound, and certificates are for these alone. On "
        f"everybody {row['note']}. A larger bound takes more models in: a line such as bound = 12, "
        "near the top of the settings."
        for row in everybody
    ]


def _ahead(plan: "Plan") -> list[str]:
    """What the run knew before its time."""
    known = plan.looked_ahead
    if not known:
        return []
    joined = " and ".join([", ".join(known[:-1]), known[-1]] if known[1:] else known)
    option = "--classes" if plan.task.is_chance else "--range"
    return [
        f"A look ahead: {joined} came from a first pass over the whole file. A live stream does "
        f"not know them; {option}, --groups and --features with ranges do without."
    ]


def _curves(done: "Finished") -> Illustration:
    """Regret against time, a small panel for each of the worst groups."""
    rows, measure, unit = done.rows, done.measure, done.measure.unit
    panels: list[Panel] = []
    style: Literal["solid", "marked"] = "marked" if measure.slow else "solid"
    drawn = {row["group"]: done.curves[row["group"]].drawn() for row in rows}
    followed = [row for row in rows if drawn[row["group"]].time.size > POINTS]
    if measure.slow:
        followed = sorted(followed, key=lambda row: -row["rounds"])
    chosen = (followed or rows)[:SHORT]
    for group in (row["group"] for row in chosen):
        curve = drawn[group]
        others = {shown(name, 30): curves[group].drawn() for name, curves in done.logged.items()}
        lines = (
            Line(SINGLE, curve.rounds, curve.baseline_regret / unit, colour=0, style=style),
            Line(OURS, curve.rounds, curve.regret / unit, colour=1, style=style),
            *(
                Line(name, other.rounds, other.regret / unit, colour=place, style=style)
                for place, (name, other) in enumerate(others.items(), 2)
            ),
        )
        panels.append(Panel(title_of(group, PANEL_NAME), lines))
    which = f"{len(chosen)} large ones" if measure.slow else f"The {len(chosen)} worst"
    some = f"{which} of {len(rows):,} groups. " if len(rows) > len(chosen) else ""
    figure = Figure(
        "regret",
        f"{some}Regret against {BEST} so far, as the group’s rounds go by. A line that flattens "
        "has learned the group; one that keeps climbing has not."
        f"{' The dots are where the best was fitted.' if measure.slow else ''}",
        "rounds of the group",
        measure.axis,
        tuple(panels),
    )
    return Illustration(figure, inline(figure, draw(figure, pdf=False)))


def _facts(done: "Finished") -> dict[str, dict[str, str]]:
    """The page's last lines: the settings, the fingerprint of the data, and the versions."""
    plan, source, parameters = done.plan, done.scan.source, done.plan.parameters
    return {
        "Settings": {
            "Label": shown(plan.target),
            **_about_label(plan.task),
            "Groups": _listed([_declaration(one.to_dict()) for one in plan.groups]),
            "Features": _listed([shown(name, 60) for name in plan.features]),
            "The label's past": _listed([shown(one, 60) for one in plan.told_past]),
            "Numbers bend": "yes" if plan.hinges else "no",
            "Groups are features too": "yes" if plan.indicators else "no",
            **({"Experts": _listed([shown(x, 60) for x in plan.experts])} if plan.experts else {}),
            "Numbers per row": f"{done.features:,}",
            "Order of the rows": "as in the file"
            if plan.order is None
            else f"by {shown(plan.order)}",
            "Learner": ", ".join([plan.learner, *(f"{k} {x:g}" for k, x in parameters.items())]),
            "Aggregator": plan.aggregator,
        },
        "Data": {
            "File": shown(source.name),
            "Format": source.format + (", gzip" if source.compressed else ""),
            "Rows": f"{done.scan.rows:,}",
            "Columns": _listed([shown(name, 60) for name in done.scan.columns]),
            "Bytes": f"{source.size:,}",
            "SHA-256": source.sha256,
        },
        "Made with": versions(),
    }


def _about_label(task: Task) -> dict[str, str]:
    """What the label may be."""
    if not task.is_chance:
        return {"Range of the label": f"{task.loss.low:g} to {task.loss.high:g}"}
    if task.name == CLASSES:
        return {"Classes": _listed([shown(name, 60) for name in task.names])}
    negative, positive = (shown(name, 60) for name in task.names)
    return {"Probability of": f"{positive} (not {negative})"}


def _listed(names: Sequence[str], most: int = 60) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"


def _declaration(table: Any) -> str:
    """A group declaration in a few words."""
    match table:
        case {"by": column}:
            return shown(column, 60)
        case {"cut": column, "edges": edges}:
            return f"{shown(column, 60)} cut at {', '.join(map(str, edges))}"
        case {"where": column, "op": sign, "value": value}:
            return shown(f"{column} {sign} {value}", 80)
        case {"weight": column}:
            return f"{shown(column, 60)} as a weight"
        case {"not": part}:
            return f"not {_declaration(part)}"
    for key, word in (("and", " & "), ("or", " | "), ("pairs", " × ")):
        if key in table:
            return word.join(_declaration(part) for part in table[key])
    return shown(str(table))
