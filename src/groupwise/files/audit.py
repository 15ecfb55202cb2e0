"""An audit by sums: what logged predictions lost beside the best of every group, on any engine.

No model learns anything: each task adds up the rows of a segment (``gw.Sums``), and the sums are
added in the order of the rows.
"""

import operator
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from groupwise.engines import opened
from groupwise.errors import ConfigurationError
from groupwise.files import segments
from groupwise.files.plan import Plan
from groupwise.files.profile import Kind
from groupwise.files.ranges import ranges, units_of
from groupwise.files.rows import in_file
from groupwise.files.scan import Scan
from groupwise.files.segments import AHEAD, Asked, Job
from groupwise.pipeline import at_row, in_turn
from groupwise.progress import progress_bar
from groupwise.report.tables import json_text
from groupwise.sums import Sums
from groupwise.writing import outputs

COMPARISON = "compare.json"


def add(sums: Sums, frame: pa.Table, first: int) -> Sums:
    """The sums of the rows of a segment that begins with this one."""
    with at_row(first):
        return sums.empty().add(frame)


def counted(sums: Sums) -> int:
    """How many rows they have."""
    return sums.rows


def audit(
    found: Scan, plan: Plan, asked: Asked, out: Path | None = None, progress: bool = True
) -> dict[str, Any]:
    """What each model's predictions lost on every group: a table for each column."""
    segments.refuse(plan)
    if plan.task.is_chance:
        raise ConfigurationError(
            "Sums are for labels that are numbers: leave out --segment to compare probabilities."
        )
    columns = [column for one in plan.logged for column in one.columns]
    kinds: dict[str, Kind] = {**plan.kinds, **dict.fromkeys(columns, "number")}
    bare = replace(plan, hinges=False, past=())  # which follow the order of rows
    sums = Sums(
        bare.groups,
        bare.declared,
        plan.task.loss,
        plan.target,
        columns,
        indicators=plan.indicators,
        intercept=plan.intercept,
        intersections=plan.intersections,
        missing=plan.model().missing,
    )
    job = Job(kinds, plan.target, plan.task, (), Path(), found.source.name)
    with opened(asked.engine, asked.jobs) as engine:
        given, total = engine.put(job), engine.put(sums)

        def submitted() -> Iterator[Any]:
            nonlocal total
            for rows in ranges(units_of(found), asked.segment):
                frame = engine.submit(segments.read, given, rows)
                one = engine.submit(add, sums, frame, rows.first)
                total = engine.submit(operator.add, total, one)
                yield engine.submit(counted, one)

        everything = range(1, found.rows + 1)  # numbers that take no room
        bar = progress_bar(found.rows, "add up", progress)
        with in_file(found.source, everything, segments.INSTEAD), bar as advance:
            for rows in in_turn(engine, submitted(), AHEAD):
                advance(rows)
        whole = engine.get(total)
    tables = {column: whole.regret(column) for column in columns}
    if out is not None:
        with outputs(out) as files:
            about = {"schema": 1, "rounds": found.rows, "target": plan.target}
            rows_of = {column: table.rows for column, table in tables.items()}
            files.path(COMPARISON).write_text(json_text({**about, "rows": rows_of}), "utf-8")
            files.publish()
    return tables
