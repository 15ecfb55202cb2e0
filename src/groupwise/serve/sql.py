"""A store in SQL, as far as all kinds of SQL agree: tables, migrations and statements."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import msgspec

from groupwise.serve.errors import ConflictError, StaleError, StoreError
from groupwise.serve.store import (
    FORGOTTEN,
    SETTLED,
    Answer,
    Batch,
    Event,
    ModelRecord,
    SnapshotRecord,
    Token,
    numbered,
    packed,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE models (model {whole} PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
        "settings TEXT NOT NULL, created {real} NOT NULL, numerics TEXT NOT NULL, "
        "fence {whole} NOT NULL, holder TEXT NOT NULL, expires {real} NOT NULL)",
        "CREATE TABLE log (model {whole} NOT NULL, first {whole} NOT NULL, "
        "last {whole} NOT NULL, content {bytes} NOT NULL, PRIMARY KEY (model, first))",
        "CREATE TABLE snapshots (model {whole} NOT NULL, seq {whole} NOT NULL, at {real} NOT NULL, "
        "digest TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (model, seq))",
        "CREATE TABLE parts (model {whole} NOT NULL, seq {whole} NOT NULL, part {whole} NOT NULL, "
        "content {bytes} NOT NULL, PRIMARY KEY (model, seq, part))",
        "CREATE TABLE answers (model {whole} NOT NULL, number {whole} NOT NULL, key TEXT, "
        "row {bytes} NOT NULL, answer {bytes} NOT NULL, outcome TEXT NOT NULL, "
        "label {bytes} NOT NULL, at {real} NOT NULL, settled {real} NOT NULL, "
        "PRIMARY KEY (model, number))",
        "CREATE UNIQUE INDEX answers_by_key ON answers (model, key)",
        "CREATE INDEX answers_by_age ON answers (model, settled)",
        "CREATE TABLE history (model {whole} NOT NULL, seq {whole} NOT NULL, at {real} NOT NULL, "
        "content {bytes} NOT NULL, PRIMARY KEY (model, seq))",
        "CREATE TABLE tokens (token TEXT PRIMARY KEY, name TEXT NOT NULL, digest {bytes} NOT NULL, "
        "scopes TEXT NOT NULL, models TEXT NOT NULL, created {real} NOT NULL)",
        "CREATE TABLE probe (number {whole} PRIMARY KEY, content {bytes} NOT NULL)",
    ),
)
"""Each brings the tables from the version before to its own, which is its place from 1."""
FENCE = 1
"""The first of a model."""
OF_A_MODEL = ("log", "snapshots", "parts", "answers", "history", "models")
COLUMNS = ", ".join(Answer._fields)
"""Of what is remembered of a ticket."""
ANSWERS_AT_ONCE = 10_000
READ_AT_ONCE = 256
"""Batches of the log."""
PROBED = 1 << 16
"""Bytes: more than a batch mostly has."""
NUMBER_BITS = 62
"""Of the number of a model."""


class SqlStore(ABC):
    """Statements that SQLite and PostgreSQL share; both know ON CONFLICT."""

    types: ClassVar[dict[str, str]]
    place: str
    is_near = False

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Any]:
        """A transaction; durable, or without any effect, afterwards."""

    @abstractmethod
    def _execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Carry a statement out; its cursor."""

    @abstractmethod
    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a question finds, outside any transaction of the writer."""

    @abstractmethod
    def _hold(self, cursor: Any, model: int, fence: int) -> None:
        """StaleError unless this is still the writer, until the transaction ends."""

    @abstractmethod
    def take(self, model: int, numerics: str | None = None) -> int:
        """Become the writer of a model."""

    def _migrate(self, version: int, cursor: Any, makes: bool) -> int:
        """Bring the tables up to date, from a version of them; 0 where they are to be made."""
        if not (version or makes):
            raise StoreError(f"There is no store in {self.place}. Name another with --store.")
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self.place} was written by a newer groupwise (tables {version}; this one knows "
                f"up to {len(MIGRATIONS)}). Upgrade groupwise."
            )
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                self._execute(cursor, statement.format(**self.types))
        return len(MIGRATIONS)

    # Models.

    def models(self) -> list[ModelRecord]:
        """The models there are."""
        found = self._rows("SELECT model, name, settings, created, numerics FROM models")
        return [ModelRecord(*row) for row in found]

    def create(
        self,
        name: str,
        settings: str,
        numerics: str,
        first: SnapshotRecord,
        content: bytes,
        instead: tuple[int, int] | None = None,
    ) -> tuple[ModelRecord, int]:
        """A new model with its first snapshot, and its fence; one (model, fence) goes for it."""
        created = time.time()
        with self._writing() as cursor:
            if instead is not None:
                self._remove(cursor, *instead)
            found = self._execute(cursor, "SELECT model, name FROM models").fetchall()
            if any(other == name for _, other in found):
                raise ConflictError(f"There is a model {name} already.")
            model = _unused({number for number, _ in found})
            record = ModelRecord(model, name, settings, created, numerics)
            self._execute(
                cursor,
                "INSERT INTO models (model, name, settings, created, numerics, fence, holder, "
                "expires) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                (*record, FENCE, self._holder()),
            )
            self._execute(
                cursor,
                "INSERT INTO snapshots (model, seq, at, digest, checksum) VALUES (?, ?, ?, ?, ?)",
                (model, *first),
            )
            self._execute(
                cursor,
                "INSERT INTO parts (model, seq, part, content) VALUES (?, ?, 0, ?)",
                (model, first.seq, content),
            )
            self._hold(cursor, model, FENCE)
        return record, FENCE

    @abstractmethod
    def _holder(self) -> str:
        """Who this is, for whoever wants to be the writer too."""

    def delete(self, model: int, fence: int) -> None:
        """Remove a model and all that belongs to it."""
        with self._writing() as cursor:
            self._remove(cursor, model, fence)

    def _remove(self, cursor: Any, model: int, fence: int) -> None:
        self._hold(cursor, model, fence)
        for table in OF_A_MODEL:
            self._execute(cursor, f"DELETE FROM {table} WHERE model = ?", (model,))

    # The log.

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make events durable, all of them or none."""
        with self._writing() as cursor:
            for batch in batches:
                self._hold(cursor, batch.model, batch.fence)
                self._execute(
                    cursor,
                    "INSERT INTO log (model, first, last, content) VALUES (?, ?, ?, ?)",
                    (batch.model, batch.first, batch.last, packed(batch.events)),
                )

    def probe(self) -> None:
        """Write something durably, and take it back: is there room?"""
        with self._writing() as cursor:
            insert = "INSERT INTO probe (number, content) VALUES (0, ?) ON CONFLICT DO NOTHING"
            self._execute(cursor, insert, (bytes(PROBED),))
        with self._writing() as cursor:
            self._execute(cursor, "DELETE FROM probe")

    def log(self, model: int, after: int) -> Iterator[tuple[int, Event]]:
        """The events after one of them, with their numbers."""
        return numbered(self._batches(model, after), after)

    def _batches(self, model: int, after: int) -> Iterator[tuple[int, int, bytes]]:
        statement = (
            "SELECT first, last, content FROM log WHERE model = ? AND last > ? AND first > ? "
            f"ORDER BY first LIMIT {READ_AT_ONCE}"
        )
        beyond = -1
        while found := self._rows(statement, (model, after, beyond)):
            yield from found
            beyond = found[-1][0]

    # Snapshots, and what is remembered of tickets.

    def snapshots(self, model: int) -> list[SnapshotRecord]:
        """The snapshots of a model, the newest first."""
        statement = (
            "SELECT seq, at, digest, checksum FROM snapshots WHERE model = ? ORDER BY seq DESC"
        )
        return [SnapshotRecord(*row) for row in self._rows(statement, (model,))]

    def content(self, model: int, seq: int) -> bytes:
        """What a snapshot holds."""
        statement = "SELECT content FROM parts WHERE model = ? AND seq = ? ORDER BY part"
        return b"".join(bytes(row[0]) for row in self._rows(statement, (model, seq)))

    def put_part(self, model: int, fence: int, seq: int, part: int, content: bytes) -> None:
        """Write a part of a snapshot."""
        with self._writing() as cursor:
            self._hold(cursor, model, fence)
            self._execute(
                cursor,
                "INSERT INTO parts (model, seq, part, content) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (model, seq, part) DO UPDATE SET content = excluded.content",
                (model, seq, part, content),
            )

    def put_answers(self, model: int, fence: int, answers: Iterable[Answer]) -> None:
        """Remember settled tickets."""
        with self._writing() as cursor:
            self._hold(cursor, model, fence)
            self._many(
                cursor,
                f"INSERT INTO answers (model, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (model, number) DO NOTHING",
                [(model, *answer) for answer in answers],
            )

    @abstractmethod
    def _many(self, cursor: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Carry a statement out for many rows."""

    def put_snapshot(
        self, model: int, fence: int, record: SnapshotRecord, keep: int, keep_log: bool
    ) -> None:
        """A snapshot is whole: drop all but the last few, and the log before them."""
        with self._writing() as cursor:
            self._hold(cursor, model, fence)
            self._execute(
                cursor,
                "INSERT INTO snapshots (model, seq, at, digest, checksum) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (model, seq) DO UPDATE SET at = excluded.at, "
                "digest = excluded.digest, checksum = excluded.checksum",
                (model, *record),
            )
            every = "SELECT seq FROM snapshots WHERE model = ? ORDER BY seq DESC"
            kept = [row[0] for row in self._execute(cursor, every, (model,)).fetchall()][:keep]
            for table in ("snapshots", "parts"):
                marks = ", ".join("?" * len(kept))
                self._execute(
                    cursor,
                    f"DELETE FROM {table} WHERE model = ? AND seq NOT IN ({marks})",
                    (model, *kept),
                )
            if not keep_log:
                old = "DELETE FROM log WHERE model = ? AND last <= ?"
                self._execute(cursor, old, (model, min(kept)))

    def forget_answers(self, model: int, fence: int, before: float) -> None:
        """Drop what is remembered of tickets that were settled before a time."""
        with self._writing() as cursor:
            self._hold(cursor, model, fence)
            old = "DELETE FROM answers WHERE model = ? AND settled < ?"
            self._execute(cursor, old, (model, before))

    def answer(self, model: int, key: str | None, number: int | None) -> Answer | None:
        """What is remembered of a ticket, by its id or its number."""
        by, value = ("key", key) if key is not None else ("number", number)
        statement = f"SELECT {COLUMNS} FROM answers WHERE model = ? AND {by} = ?"
        found = self._rows(statement, (model, value))
        return self._read(found[0]) if found else None

    def answers(self, model: int) -> Iterator[Answer]:
        """What is remembered of all tickets."""
        statement = (
            f"SELECT {COLUMNS} FROM answers WHERE model = ? AND number > ? "
            f"ORDER BY number LIMIT {ANSWERS_AT_ONCE}"
        )
        beyond = -1
        while found := self._rows(statement, (model, beyond)):
            yield from map(self._read, found)
            beyond = found[-1][0]

    def _read(self, values: Sequence[Any]) -> Answer:
        """What is remembered of a ticket; an error where a disk has changed it."""
        plain = [bytes(one) if isinstance(one, memoryview) else one for one in values]
        try:
            found = msgspec.convert(plain, Answer, builtin_types=(bytes,))
            for text in (found.answer, found.label) if found.label else (found.answer,):
                msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._damaged() from None
        if found.outcome not in (SETTLED, FORGOTTEN):
            raise self._damaged()
        return found

    def _damaged(self, what: str = "settled tickets") -> StoreError:
        return StoreError(
            f"What the store {self.place} remembers of {what} is damaged. Restore the store from "
            "a copy."
        )

    def keys(self, model: int) -> Iterator[str]:
        """The ids of all tickets that are remembered."""
        statement = (
            "SELECT number, key FROM answers WHERE model = ? AND number > ? "
            f"ORDER BY number LIMIT {ANSWERS_AT_ONCE}"
        )
        beyond = -1
        while found := self._rows(statement, (model, beyond)):
            if not all(isinstance(key, str | None) for _, key in found):
                raise self._damaged()
            yield from (key for _, key in found if key is not None)
            beyond = found[-1][0]

    # History.

    def put_history(
        self, model: int, fence: int, seq: int, at: float, content: bytes, most: int
    ) -> None:
        """Keep a line of the model's history; of more than ``most``, every other goes."""
        with self._writing() as cursor:
            self._hold(cursor, model, fence)
            self._execute(
                cursor,
                "INSERT INTO history (model, seq, at, content) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (model, seq) DO UPDATE SET at = excluded.at, "
                "content = excluded.content",
                (model, seq, at, content),
            )
            every = "SELECT seq FROM history WHERE model = ? ORDER BY seq"
            kept = [row[0] for row in self._execute(cursor, every, (model,)).fetchall()]
            if len(kept) > most:
                drop = "DELETE FROM history WHERE model = ? AND seq = ?"
                self._many(cursor, drop, [(model, one) for one in kept[1:-1:2]])

    def history(self, model: int) -> list[tuple[int, float, bytes]]:
        """The lines that were kept."""
        statement = "SELECT seq, at, content FROM history WHERE model = ? ORDER BY seq"
        found = self._rows(statement, (model,))
        if not all(isinstance(line, bytes | memoryview) for _, _, line in found):
            raise self._damaged("history")
        return [(seq, at, bytes(line)) for seq, at, line in found]

    # Tokens.

    def tokens(self) -> list[Token]:
        """All tokens."""
        found = self._rows(
            "SELECT token, name, digest, scopes, models, created FROM tokens ORDER BY created"
        )
        return [
            Token(token, name, bytes(digest), _list(scopes), _list(models), created)
            for token, name, digest, scopes, models, created in found
        ]

    def put_token(self, token: Token) -> None:
        """Add a token."""
        with self._writing() as cursor:
            self._execute(
                cursor,
                "INSERT INTO tokens (token, name, digest, scopes, models, created) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*token[:3], ",".join(token.scopes), ",".join(token.models), token.created),
            )

    def drop_token(self, token: str) -> bool:
        """Revoke a token; False where there is none."""
        with self._writing() as cursor:
            found = self._execute(cursor, "DELETE FROM tokens WHERE token = ?", (token,))
            return bool(found.rowcount)


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _unused(known: set[int]) -> int:
    """A number for a model, which none had before: whoever wrote one that is gone writes nothing.

    It is drawn, as nothing is left of models that were deleted.
    """
    while (number := secrets.randbelow(1 << NUMBER_BITS)) in known:
        pass
    return number


def stale(model: int) -> StaleError:
    """The error of a writer that is no longer the one."""
    error = StaleError(
        "Another process has become the writer of this model, or has deleted it. This one writes "
        "nothing more: ask the other, or start this one again."
    )
    error.model = model
    return error
