"""A model for every value of a column: a plain map over the values, each a run of its own."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as compute

from groupwise.engines import LOCAL, each, opened
from groupwise.errors import DataError
from groupwise.files import several
from groupwise.files.plan import make_plan
from groupwise.files.remote import is_url
from groupwise.files.run import run
from groupwise.files.scan import as_kind, scan, unknown_column
from groupwise.files.settings import request_from
from groupwise.files.source import STANDARD_INPUT, Chunks, Source, is_read_once
from groupwise.files.text import quoted, rows_in, shown
from groupwise.report.tables import json_text
from groupwise.writing import outputs

VALUES = "by.json"
LONGEST = 150
"""Characters of a folder's name: file systems have at most 255, and some of them fewer."""
MOST = 10_000
"""So many values may there be: each has a folder with a report."""


@dataclass(frozen=True)
class Where(Source):
    """The rows of files in which a column has one value; the column itself is not read."""

    whole: Source | None = None
    column: str = ""
    value: str = ""

    def check(self) -> None:
        """Raise DataError unless the files are what they were when they were opened."""
        assert self.whole is not None
        self.whole.check()

    def chunks(self, columns: Sequence[str] | None = None) -> Chunks:
        """The rows, some at a time."""
        assert self.whole is not None
        wanted = None if columns is None else [*columns, self.column]
        for table, position in self.whole.chunks(wanted):
            mask = compute.equal(_levels(table, self.column), self.value)
            rows = table.filter(compute.fill_null(mask, False))
            if rows.num_rows:
                yield rows.drop_columns([self.column]), position


def _levels(table: pa.Table, column: str) -> Any:
    return as_kind(table.column(column), "levels")


class Done(NamedTuple):
    """What came of one value."""

    value: str
    folder: str
    rows: int
    loss: float
    single: float | None
    """The loss of the single model for everybody in it."""
    warnings: tuple[str, ...]


def values_of(source: Source, column: str) -> tuple[list[str], int]:
    """The values of a column in the order in which they come, and how many rows have none."""
    found: dict[str, None] = {}
    missing = 0
    for table, _ in source.chunks():
        if column not in table.column_names:
            raise unknown_column(column, table.column_names, source, "to have a model for each of")
        levels = _levels(table, column)
        missing += levels.null_count
        found |= dict.fromkeys(one for one in compute.unique(levels).to_pylist() if one is not None)
        if len(found) > MOST:
            raise DataError(
                f"Column {quoted(column)} has more than {MOST:,} values, and each would have a "
                "model of its own. Make it a group: --groups."
            )
    return list(found), missing


class Job(NamedTuple):
    """What all runs have in common."""

    data: tuple[str, ...]
    config: Path | None
    options: Mapping[str, Any]
    column: str
    out: Path
    jobs: int | None


def run_value(job: Job, value: str) -> Done:
    """A run over the rows with one value."""
    folder = folder_of(job.column, value)
    with planned(job, value) as (found, plan):
        finished = run(found, plan, job.out / folder, job.jobs, progress=False)
    row = finished.table["always_on"]
    single = row["baseline_regret"]
    return Done(
        value,
        folder,
        found.rows,
        row["loss"],
        None if single is None else single + row["best_loss"],
        finished.warnings,
    )


def folder_of(column: str, value: str) -> str:
    """The name of a folder; one that is too long ends with a digest.

    >>> folder_of("size", "1/2")
    'size=1%2F2'
    """
    name = f"{quote(column, safe=' ')}={quote(value, safe=' ')}"
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(f"{len(column)}={column}={value}".encode()).hexdigest()[:16]
    return f"{name[: LONGEST - 1 - len(digest)]}-{digest}"


@contextmanager
def planned(job: Job, value: str) -> Iterator[Any]:
    """The plan for the rows with one value."""
    table = job.options.get("table")
    request = request_from(job.config, **_without_table(job.options))
    with several.opened(job.data, table, request.skip_bad) as whole:
        parts = whole.path, whole.format, whole.compressed, whole.origin
        name = f"{shown(whole.name)} where {shown(job.column)} = {shown(value)}"
        source = Where(
            name, *parts, ragged=whole.ragged, whole=whole, column=job.column, value=value
        )
        found = scan(source, request.target, request.order)
        yield found, make_plan(found, request)


def run_by(job: Job, engine: str, warn: Any) -> list[Done]:
    """A run for every value; all of them are put in place at the end, or none."""
    if job.column == request_from(job.config, **_without_table(job.options)).target:
        raise DataError(
            f"{quoted(job.column)} is the label: it cannot be what there is a model for each of."
        )
    job = job._replace(data=tuple(map(_placed, several.named(job.data))))
    with several.opened(job.data, job.options.get("table")) as source:
        values, missing = values_of(source, job.column)
        if missing:
            warn(f"{rows_in(missing)} of no {quoted(job.column)} are left out.")
        if not values:
            raise DataError(f"Column {quoted(job.column)} is empty: there is no model to make.")
        with outputs(job.out) as files:
            inside = _inside(job, files.folder.resolve(), engine)
            if engine == LOCAL:  # each has all the threads
                done = [run_value(inside, value) for value in values]
            else:
                with opened(engine, job.jobs) as cluster:
                    done = list(each(cluster, run_value, [(inside, value) for value in values]))
            about = {
                one.value: {"folder": one.folder, "rows": one.rows, "loss": one.loss}
                for one in done
            }
            text = json_text({"schema": 1, "by": job.column, "values": about})
            files.path(VALUES).write_text(text, "utf-8")
            source.check()  # every value's run has opened it anew
            files.publish()
    return done


def _without_table(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan is made from."""
    return {name: value for name, value in options.items() if name != "table"}


def _placed(name: str) -> str:
    """A file by a name that holds everywhere, and that can be read again for every value."""
    if name == STANDARD_INPUT or is_read_once(Path(name)):
        raise DataError(
            "--by reads the rows again for every value, and a pipe gives them once. Give a file."
        )
    return name if is_url(name) else os.path.abspath(name)


def _inside(job: Job, out: Path, engine: str) -> Job:
    """The same, written elsewhere; on a cluster by one thread each."""
    return job._replace(out=out, jobs=job.jobs if engine == LOCAL else 1)
