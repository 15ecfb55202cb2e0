"""What people look at: tables as they are now, how they came to be, and what happens at present."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse

from groupwise.errors import GroupwiseError
from groupwise.losses import Log
from groupwise.serve.engine import Engine
from groupwise.serve.errors import MalformedError, StoreError
from groupwise.serve.problems import HEADERS
from groupwise.serve.reader import Reader
from groupwise.serve.service import Service

LOG = logging.getLogger("groupwise.serve")
LINE_GROUPS = 50
"""The history knows of so many groups: the largest."""
LINES = 600
"""And of so many moments."""
TABLES = 4
"""So many tables of a model are kept besides those for its history: the last ones."""
GAP = 0.02
"""A mean gap that is worth an alert."""
EVERY = 1.0
"""Seconds between two messages of a stream."""
FIGURES = ("rounds", "regret", "certificate", "baseline_regret")

_encode = msgspec.json.Encoder().encode


class Line(msgspec.Struct, gc=False):
    """A line of history, as it is kept."""

    settled: int
    outstanding: int
    groups: dict[str, msgspec.Raw]
    """The figures of every group, which few look at."""


class Point(msgspec.Struct, gc=False):
    """The same, as it is answered."""

    event: int
    at: float
    settled: int
    outstanding: int
    groups: dict[str, msgspec.Raw]

    def figures(self, group: str) -> list[Any]:
        """Those of a group, if it is known."""
        text = self.groups.get(group)
        found: list[Any] = [] if text is None else msgspec.json.decode(text)
        return found


_line = msgspec.json.Decoder(Line).decode


@dataclass
class Table:
    """A table after an event, as it is answered."""

    seq: int
    outstanding: int
    """Tickets without a label at that event."""
    text: bytes

    @cached_property
    def values(self) -> dict[str, Any]:
        """What it says, for whoever does not pass it on."""
        found: dict[str, Any] = msgspec.json.decode(self.text)
        return found


@dataclass
class Seen:
    """What was computed of a model."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    tables: dict[tuple[str, int | None], Table] = field(default_factory=dict)
    sampled: int = -1
    """The labels when a line of history was last written."""

    def keep(self, what: str, largest: int | None, table: Table) -> None:
        """Keep a table for who asks next; few, for anybody may ask for any number of groups."""
        self.tables.pop((what, largest), None)
        self.tables[what, largest] = table
        others = [one for one in self.tables if one[1] != LINE_GROUPS]  # those of history stay
        for one in others[:-TABLES]:
            del self.tables[one]


class Looks:
    """Tables and history of the models of a service."""

    def __init__(self, reader: Reader | None = None, sample: float = 0.0) -> None:
        self._reader = reader or Reader()
        self._sample = sample
        self._seen: WeakKeyDictionary[Engine, Seen] = WeakKeyDictionary()
        self._ending = asyncio.Event()

    def _of(self, engine: Engine) -> Seen:
        return self._seen.setdefault(engine, Seen())

    def about(self, engine: Engine) -> dict[str, Any]:
        """A model in a few figures."""
        state, snapshots = engine.state, engine.snapshots
        return {
            "name": engine.record.name,
            "created": engine.record.created,
            "events": state.seq,
            "predictions": state.model.issued,
            "outstanding": len(state.open),
            "oldest": next((one.at for one in state.open.values()), None),
            "groups": len(state.model.group_names),
            "snapshot_at": snapshots[0].at if snapshots else None,
            "snapshot_event": snapshots[0].seq if snapshots else None,
        }

    async def regret(self, engine: Engine, largest: int | None = None) -> Table:
        """Regret and certificate of every group, as they are now."""
        return await self._table(engine, "regret", largest)

    async def calibration(self, engine: Engine, largest: int | None = None) -> Table:
        """Calibration of every group, as it is now."""
        return await self._table(engine, "calibration", largest)

    async def coverage(self, engine: Engine, largest: int | None = None) -> Table:
        """How often the labels of every group were in their intervals, as it is now."""
        return await self._table(engine, "coverage", largest)

    def last(self, engine: Engine) -> dict[str, Any] | None:
        """The last table of regret, however old, that has all groups or as many as history."""
        known = [
            one
            for (what, largest), one in self._of(engine).tables.items()
            if what == "regret" and (largest is None or largest >= LINE_GROUPS)
        ]
        return max(known, key=lambda one: one.seq).values if known else None

    def miscalibrated(self, engine: Engine) -> list[tuple[str | None, dict[str, Any]]]:
        """Groups whose probabilities are off by more than chance explains, by class."""
        table = self._of(engine).tables.get(("calibration", LINE_GROUPS))
        if table is None:
            return []
        known = table.values
        return [
            (of if known["classes"] and len(known["classes"]) > 2 else None, row)
            for of, rows in known["tables"].items()
            for row in rows
            if row["ece"] and row["ece"] > 2 * row["ece_95"] and abs(row["gap"]) > GAP
        ]

    async def _table(self, engine: Engine, what: str, largest: int | None) -> Table:
        seen = self._of(engine)
        async with seen.lock:
            known = seen.tables.get((what, largest))
            if known is not None and known.seq == engine.state.seq and engine.unavailable is None:
                return known
            outstanding = engine.outstanding  # at the event that the contents are taken after
            seq, contents = await engine.contents()
            question = {"what": what, "largest": largest, "event": seq}
            found = Table(seq, outstanding, await self._reader.ask(contents, question))
            seen.keep(what, largest, found)
            return found

    async def sampling(self, service: Service) -> None:
        """Write history, every so many seconds."""
        while self._sample:
            await asyncio.sleep(self._sample)
            for engine in [*service.engines.values()]:
                try:
                    await self.sample(engine)
                except GroupwiseError as error:
                    LOG.error("%s: no history: %s", engine.record.name, error)
                except Exception:  # whatever it is, it may pass
                    LOG.exception("%s: no history", engine.record.name)

    async def sample(self, engine: Engine) -> None:
        """Write a line of history, where there is something new."""
        seen = self._of(engine)
        labels = engine.counts.labels.get("settled", 0)
        if labels == seen.sampled or engine.unavailable is not None:
            return
        found = await self.regret(engine, LINE_GROUPS)
        table = found.values
        line = {
            "settled": table["settled"],
            "outstanding": found.outstanding,
            "groups": {row["group"]: [row[key] for key in FIGURES] for row in table["rows"]},
        }
        if isinstance(engine.state.model.loss, Log):
            await self.calibration(engine, LINE_GROUPS)
        await engine.put_history(table["event"], table["at"], _encode(line), LINES)
        seen.sampled = labels

    async def history(self, engine: Engine, group: str | None = None) -> list[Point]:
        """How regret and certificate came to be: of one group, or of all that are known."""
        return await asyncio.to_thread(_points, engine, group)

    async def history_text(self, engine: Engine, group: str | None = None) -> bytes:
        """The same, as it is answered."""
        return await asyncio.to_thread(_text, engine, group)

    async def stream(
        self, engine: Engine, request: Request, allowed: Callable[[], bool]
    ) -> StreamingResponse:
        """Server-sent events: what is known now, whenever it changes, at most once a second.

        The id of an event is that of the log; whoever comes back with it gets the lines of history
        that were written meanwhile. It ends when they are not ``allowed`` to look any more.
        """
        given = request.headers.get("last-event-id", "")
        if given and not (given.isascii() and given.isdigit() and len(given) < 19):
            raise MalformedError("Last-Event-ID is the id of an event of this stream.")
        after = int(given) if given else None
        missed = [] if after is None else await self.history(engine)

        async def events() -> AsyncIterator[bytes]:
            for point in missed:
                if after is not None and point.event > after:
                    yield _event("history", point.event, point)
            last = -1
            while not self._ending.is_set() and engine.unavailable is None and allowed():
                if engine.state.seq != last:
                    last = engine.state.seq
                    figures = {**self.about(engine), "labels": dict(engine.counts.labels)}
                    yield _event("figures", last, figures)
                else:
                    yield b": nothing new\n\n"
                try:
                    await asyncio.wait_for(self._ending.wait(), EVERY)
                except TimeoutError:
                    continue

        headers = {**HEADERS, "X-Accel-Buffering": "no"}
        return StreamingResponse(events(), 200, headers, "text/event-stream")

    def end(self) -> None:
        """End the streams, which would last for ever."""
        self._ending.set()

    async def close(self) -> None:
        """End the process that computes."""
        self.end()
        await self._reader.close()


def _event(kind: str, number: int, data: Any) -> bytes:
    return b"event: %s\nid: %d\ndata: %s\n\n" % (kind.encode(), number, _encode(data))


def _points(engine: Engine, group: str | None) -> list[Point]:
    """The history of a model. In a thread, line by line: others have their turn between them."""
    found = []
    for seq, at, text in engine.history():
        try:
            line = _line(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise StoreError(
                f"The store's history of {engine.record.name} is damaged. Restore the store from a "
                "copy."
            ) from None
        groups = line.groups
        if group is not None:
            groups = {group: groups[group]} if group in groups else {}
        found.append(Point(seq, at, line.settled, line.outstanding, groups))
    return found


def _text(engine: Engine, group: str | None) -> bytes:
    points = b",".join([_encode(point) for point in _points(engine, group)])
    return b'{"figures":%s,"points":[%s]}' % (_encode(FIGURES), points)
