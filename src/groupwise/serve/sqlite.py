"""A store in one SQLite file: write-ahead log, a sync to the disk at every commit, one process."""

import itertools
import os
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from groupwise.serve.errors import FullError, StaleError, StoreError
from groupwise.serve.sql import COLUMNS, SqlStore, stale
from groupwise.serve.store import Answer, Batch, packed

WAIT = 5.0
"""Seconds to wait for another process that writes tokens."""
LOCK = ".lock"
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What the library raises; the second where it quotes a damaged file."""
OURS = {"models", "log"}
"""Tables that every store has, whichever version made it."""
TOGETHER = 120
"""Settled tickets in one statement: some builds take no more than 999 values."""
APPEND = (
    "INSERT INTO log (model, first, last, content) SELECT ?, ?, ?, ? "
    "WHERE EXISTS (SELECT 1 FROM models WHERE model = ? AND fence = ?)"
)


class SqliteStore(SqlStore):
    """A file, which one process writes models to: it holds a lock beside it.

    ``writer=False`` is for commands that come and go beside a service: they write tokens, read, and
    take no model. ``makes=False`` is for those that only want a store that is there.
    """

    is_near = True
    types: ClassVar = {"whole": "INTEGER", "real": "REAL", "bytes": "BLOB"}

    def __init__(
        self, path: Path, writer: bool = True, durable: bool = True, makes: bool = True
    ) -> None:
        self.place = str(path)
        self._path = path
        self._durable = durable
        self._level = self._wanted = "FULL" if durable else "OFF"
        """How much of a commit is synced, as it is and as it is to be for the next."""
        self._doubtful = False
        """Has a write failed, so that some before it that were not synced may be gone?"""
        self._lock = self._locked() if writer else None
        try:
            self._connection = self._connect()
            self._reader = self._connect()
            self._reading = threading.Lock()
            self._prepare(makes)
        except ERRORS as error:
            self.close()
            raise StoreError(f"Cannot use {path} as a store: {error}.") from error
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        with suppress(OSError):  # it holds what people sent, and the keys of tickets
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        known = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {row[0] for row in connection.execute(known)}
        if tables and not tables >= OURS:  # before anything of it is changed
            connection.close()
            raise StoreError(
                f"{self._path} is a database of another program. Name another file with --store."
            )
        connection.execute("PRAGMA journal_mode = WAL")
        # Some builds write zeros over all that is deleted, which commits would have to wait for.
        connection.execute("PRAGMA secure_delete = FAST")
        connection.execute(f"PRAGMA synchronous = {self._level}")
        return connection

    def _locked(self) -> IO[bytes]:
        """The lock, which ends with the process; one file has one, whatever links lead to it."""
        place = Path(os.path.realpath(self._path) + LOCK)
        try:
            file = place.open("ab")
        except OSError as error:
            raise StoreError(
                f"Cannot write beside {self._path}: {error.strerror or error}."
            ) from None
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StaleError(
                f"Another process writes {self._path}. A store in a file has one writer: stop the "
                "other, or use a PostgreSQL store for several."
            ) from None
        return file

    def _prepare(self, makes: bool) -> None:
        with self._writing() as cursor:
            version = cursor.execute("PRAGMA user_version").fetchone()[0]
            newest = self._migrate(version, cursor, makes)
            if newest != version:
                cursor.execute(f"PRAGMA user_version = {newest}")

    def close(self) -> None:
        """Close the file, and let others write it."""
        for name in ("_connection", "_reader"):
            with suppress(AttributeError, sqlite3.Error):
                getattr(self, name).close()
        if self._lock is not None:
            self._lock.close()

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make events durable; those of one model in one step.

        Every step gives up the interpreter's lock, and whoever is busy keeps it for a while.
        """
        if len(batches) != 1:
            super().commit(batches)
            return
        (batch,) = batches
        content = packed(batch.events)
        values = batch.model, batch.first, batch.last, content, batch.model, batch.fence
        with self._errors():
            self._tune()
            found = self._connection.execute(APPEND, values).rowcount
        if found != 1:
            raise stale(batch.model)

    def put_answers(self, model: int, fence: int, answers: Iterable[Answer]) -> None:
        """Remember settled tickets; many in one step, too."""
        rows, found = [*answers], 0
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            marks = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
            statement = (
                f"INSERT INTO answers (model, {COLUMNS}) SELECT ?, * FROM (VALUES {marks}) "
                "WHERE EXISTS (SELECT 1 FROM models WHERE model = ? AND fence = ?) "
                "ON CONFLICT (model, number) DO NOTHING"
            )
            values = model, *itertools.chain.from_iterable(some), model, fence
            with self._errors(), self._unsynced():
                self._tune()
                found += self._connection.execute(statement, values).rowcount
        if rows and not found:  # known already, or not the writer any more
            with self._writing() as cursor:
                self._hold(cursor, model, fence)

    def put_part(self, model: int, fence: int, seq: int, part: int, content: bytes) -> None:
        """Write a part of a snapshot."""
        with self._unsynced():
            super().put_part(model, fence, seq, part, content)

    @contextmanager
    def _unsynced(self) -> Iterator[None]:
        """Commit without waiting for the disk: for what does not count before ``put_snapshot``.

        All are written to one log, in their order, so whatever is committed later and waits is not
        durable before these are.
        """
        self._wanted = "NORMAL" if self._durable else "OFF"
        try:
            yield
        finally:
            self._wanted = "FULL" if self._durable else "OFF"

    def _tune(self) -> None:
        """Let what is written next wait for the disk, or not; an error where that cannot be.

        After a sync that failed a system may forget what it has not written, and say so once. What
        comes next must not stand behind a hole in the log: all of it is put into the file first.
        """
        if self._doubtful:
            if self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise sqlite3.OperationalError("what came before a failed write is in doubt")
            self._doubtful = False
        if self._level != self._wanted:
            self._connection.execute(f"PRAGMA synchronous = {self._wanted}")
            self._level = self._wanted

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Cursor]:
        with self._errors(), closing(self._connection.cursor()) as cursor:
            self._tune()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        cursor.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the library raises, as what a request is answered with."""
        try:
            yield
        except ERRORS as error:
            self._doubtful = True
            raise FullError(
                f"The store {self.place} cannot be written ({error}). Nothing of this request "
                "happened; try again when there is room."
            ) from error

    def _execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        return cursor.execute(statement, values)

    def _many(self, cursor: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        cursor.executemany(statement, rows)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._reading:
                return self._reader.execute(statement, values).fetchall()
        except ERRORS as error:
            raise StoreError(f"Cannot read the store {self.place}: {error}.") from error

    def _hold(self, cursor: Any, model: int, fence: int) -> None:
        found = cursor.execute("SELECT fence FROM models WHERE model = ?", (model,)).fetchone()
        if found is None or found[0] != fence:
            raise stale(model)

    def _holder(self) -> str:
        return f"process {os.getpid()}"

    def take(self, model: int, numerics: str | None = None) -> int:
        """Become the writer of a model: whoever holds the lock may."""
        with self._writing() as cursor:
            cursor.execute(
                "UPDATE models SET fence = fence + 1, holder = ?, "
                "numerics = COALESCE(?, numerics) WHERE model = ?",
                (self._holder(), numerics, model),
            )
            found = cursor.execute("SELECT fence FROM models WHERE model = ?", (model,)).fetchone()
        if found is None:
            raise stale(model)
        return int(found[0])

    def keep(self) -> None:
        """Nothing to do: the lock lasts as long as the process."""
