"""The reports: one page for a run, one for an audit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from groupwise.files import chances
from groupwise.files.cards import anchors, cards
from groupwise.files.certificates import explained
from groupwise.files.chances import Nats
from groupwise.files.quality import quality_table
from groupwise.files.recent import recent_section
from groupwise.files.settings import CLASSES
from groupwise.files.tables import AGAINST, Row, group_table, regret_scale
from groupwise.files.task import Task
from groupwise.files.text import quoted, rows_in, shown
from groupwise.groups import ALWAYS_ON
from groupwise.regret.certificate import LOOSE, UNCERTAIN, VACUOUS, VOID
from groupwise.report.page import Block, Page, Section, Terms, html
from groupwise.report.provenance import versions

if TYPE_CHECKING:
    from groupwise.files.plan import Plan
    from groupwise.files.run import Finished

SHORT = 16
"""So many groups are drawn, and shown first where there are many."""
FEW = 40
"""Up to so many, all of them are shown at once."""


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
    rows, measure = done.rows, done.measure
    first, *more = done.verdicts
    sections = [
        Section("Groups", "groups", _groups(done)),
        Section("Regret and certificate", "certificates", explained(done, most=FEW)),
        Section("Group by group", "curves", [cards(done, SHORT)]),
    ]
    if done.covered is not None:
        sections.insert(2, done.covered.section())
    if done.recent is not None:
        sections.insert(2, recent_section(done.recent, measure.error_unit))
    if isinstance(measure, Nats):
        sections.insert(2, chances.calibration(done.calibration))
        told = chances.notes(rows, measure)
        sections += [Section("Notes", "notes", told)] if told else []
    sections.append(Section("Data quality", "data", _data(done)))
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


def _groups(done: "Finished") -> list[Block]:
    """The table of all groups, and what its columns mean."""
    rows, measure, players = done.rows, done.measure, done.players
    table = group_table(
        rows,
        measure,
        "Groups",
        {shown(name, 30): key for name, key in players.items()},
        experts=done.plan.experts,
        regret=regret_scale(rows, players),
        errors=done.errors,
        targets=anchors(rows, SHORT),
    )
    first = SHORT if len(rows) > FEW else None
    order = "Everybody, then the others by regret per round, the largest first."
    against = {
        f"Against {shown(name, 30)}": AGAINST.format(name=shown(name, 30))
        for name in done.plan.experts
    }
    told = Terms({**measure.terms, **against})
    return [order, replace(table, sortable=True, first=first), told]


def _data(done: "Finished") -> list[Block]:
    """What the columns hold, and what to know about them."""
    scan, plan = done.scan, done.plan
    many = len(scan.columns) + len(scan.source.unread)
    return [
        f"{rows_in(scan.rows)} of {many:,} columns. Types, missing cells and ranges are "
        "those of the whole file, before the first row was predicted.",
        quality_table(scan, plan),
        *([Terms({"Warnings": "", **_numbered(done.warnings)})] if done.warnings else []),
    ]


def _numbered(sentences: Sequence[str]) -> dict[str, str]:
    return {f"{place}.": sentence for place, sentence in enumerate(sentences, 1)}


def _certified(rows: Sequence[Row]) -> str:
    """Whether regret stayed below the certificates."""
    if any(row["status"] == VOID for row in rows):
        return "Certificates are void: some predictions left the range of the label."
    found = Counter(row["status"] for row in rows)
    told = [row for row in rows if row["status"] != UNCERTAIN]
    over = sum(row["regret"] - row["certificate"] > _rounding(row) for row in told)
    if over:
        many = "1 group" if over == 1 else f"{over:,} groups"
        return f"On {many} the regret is above the certificate, which must not be."
    holds = "On every group the regret of groupwise is below its certificate, as it must be"
    if found[UNCERTAIN]:
        holds = "Where doubles can tell, the regret of groupwise is below its certificate"
    little = [
        f"{found[one]:,} {'is' if found[one] == 1 else 'are'} {one}"
        for one in (UNCERTAIN, LOOSE, VACUOUS)
        if found[one]
    ]
    said = " and ".join([", ".join(little[:-1]), little[-1]] if little[1:] else little)
    return f"{holds}; of {len(rows):,} certificates {said}." if said else f"{holds}."


def _rounding(row: Row) -> float:
    """By how much regret may seem to exceed a certificate, either of which may be below 0."""
    return 1e-9 * (1.0 + abs(float(row["certificate"]))) + 1e-12 * abs(float(row["loss"]))


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
            "Order of the rows": f"by {', then by '.join(map(shown, plan.order))}"
            if plan.order
            else "as in the file",
            "Learner": ", ".join([plan.learner, *(f"{k} {x:g}" for k, x in parameters.items())]),
            "Aggregator": plan.aggregator,
            **({} if plan.interval is None else {"Intervals": f"to cover {plan.interval:g}"}),
        },
        "Data": {
            "File": shown(source.name),
            "Format": source.format + (", gzip" if source.compressed else ""),
            "Rows": f"{done.scan.rows:,}",
            "Columns": _listed([shown(name, 60) for name in done.scan.columns]),
            "Bytes": f"{source.size:,}",
            "SHA-256": source.sha256,
        },
        "Provenance": {
            **({"Command": done.command} if done.command else {}),
            "Made": done.made,
            **versions(),
        },
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
