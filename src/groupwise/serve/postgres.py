"""A store in PostgreSQL: a lease for every model, with a number that a stale writer fails on.

A writer renews its lease with every commit, and now and then between them. Another process may take
the model when the lease is over, or when the session that holds it is gone; a session that idles
amid a transaction for as long as a lease is ended by the server. Whoever takes the model gets
the next fencing number; every commit is a change of the model's row under the number that the
writer has, so one that was replaced changes nothing.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import psycopg

from groupwise.serve.errors import (
    ConflictError,
    FullError,
    ServiceError,
    StaleError,
    StoreError,
    UnavailableError,
)
from groupwise.serve.sql import SqlStore, stale
from groupwise.serve.store import Batch, ModelRecord, packed

NOW = "EXTRACT(EPOCH FROM clock_timestamp())::float8"
ME = "SELECT pid || ' since ' || backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
APPEND = (
    f"WITH held AS (UPDATE models SET expires = {NOW} + %s WHERE model = %s AND fence = %s "
    "RETURNING model) INSERT INTO log (model, first, last, content) "
    "SELECT model, %s, %s, %s FROM held"
)
MIGRATING = 7_402_883_315
"""The advisory lock under which tables are changed."""
OVER = ("53100", "53200", "53300")
"""SQLSTATE of a full disk, of no memory, of too many connections."""


class PostgresStore(SqlStore):
    """A database, in which several processes may each write their models."""

    types: ClassVar = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}

    def __init__(
        self, address: str, writer: bool = True, lease: float = 10.0, makes: bool = True
    ) -> None:
        del writer  # leases are of models, and nobody else takes any
        self._address = address
        self._lease = lease
        self._taken: dict[int, int] = {}
        self._renewed = 0.0
        self._reading = threading.Lock()
        self._connection = self._connect()
        self.place = f"the database {self._connection.info.dbname}"
        self._reader = self._connect()
        try:
            self._prepare(makes)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> "psycopg.Connection[Any]":
        try:
            settings: dict[str, Any] = {"autocommit": True, "connect_timeout": 5}
            # In a database without an encoding texts would come as bytes.
            connection = psycopg.connect(self._address, client_encoding="utf8", **settings)
            connection.execute("SET synchronous_commit = on")
            # A process that is stopped amid a transaction would keep the model's row locked, and
            # whoever takes the model after its lease would wait for as long as it is stopped.
            patience = f"SET idle_in_transaction_session_timeout = {int(1000 * self._lease) + 1}"
            connection.execute(patience)
            connection.execute("SET search_path = groupwise")
            if connection.execute("SHOW fsync").fetchall() != [("on",)]:
                raise StoreError("The database has fsync = off, and may lose what it was given.")
            return connection
        except psycopg.Error as error:
            raise UnavailableError(f"The database cannot be reached: {_text(error)}.") from error

    def _prepare(self, makes: bool) -> None:
        with self._writing() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
            cursor.execute("CREATE SCHEMA IF NOT EXISTS groupwise")
            cursor.execute("CREATE TABLE IF NOT EXISTS version (tables BIGINT NOT NULL)")
            found = cursor.execute("SELECT tables FROM version").fetchone()
            version = found[0] if found else 0
            newest = self._migrate(version, cursor, makes)
            if found is None:
                cursor.execute("INSERT INTO version (tables) VALUES (%s)", (newest,))
            elif newest != version:
                cursor.execute("UPDATE version SET tables = %s", (newest,))

    def close(self) -> None:
        """Give up the leases, and end the sessions."""
        with suppress(psycopg.Error, ServiceError):
            for model, fence in self._taken.items():
                self._connection.execute(
                    "UPDATE models SET expires = 0, holder = '' WHERE model = %s AND fence = %s",
                    (model, fence),
                )
        self._taken = {}
        for connection in (self._connection, self._reader):
            with suppress(psycopg.Error):
                connection.close()

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make events durable; those of one model in one round trip."""
        if len(batches) != 1:
            super().commit(batches)
            return
        (batch,) = batches
        content = packed(batch.events)
        values = self._lease, batch.model, batch.fence, batch.first, batch.last, content
        with self._errors():
            found = self._connection.execute(APPEND, values).rowcount
        if found != 1:
            self._taken.pop(batch.model, None)
            raise stale(batch.model)

    def create(self, *about: Any, **options: Any) -> tuple[ModelRecord, int]:
        """A new model, and the lease of it."""
        record, fence = super().create(*about, **options)
        self._taken[record.model] = fence
        return record, fence

    @contextmanager
    def _writing(self) -> Iterator["psycopg.Cursor[Any]"]:
        with self._errors(), self._connection.transaction(), self._connection.cursor() as cursor:
            yield cursor

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """A connection; what goes wrong with it as what a request is answered with."""
        try:
            if self._connection.closed:
                self._connection = self._connect()
            yield
        except ServiceError:
            raise
        except psycopg.errors.UniqueViolation as error:
            raise ConflictError(f"Another process was quicker: {_text(error)}.") from error
        except psycopg.Error as error:
            with suppress(psycopg.Error):
                if error.sqlstate is None or not error.sqlstate.startswith("53"):
                    self._connection.close()  # whatever it is in, the next one begins anew
            kind = FullError if error.sqlstate in OVER else UnavailableError
            raise kind(
                f"{self.place} cannot be written ({_text(error)}). Try again later: what was asked "
                "for has not happened, or will be found to have."
            ) from error

    def _execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        return cursor.execute(statement.replace("?", "%s"), values)

    def _many(self, cursor: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        cursor.executemany(statement.replace("?", "%s"), rows)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading:
            for attempt in range(2):
                try:
                    if self._reader.closed:
                        self._reader = self._connect()
                    return self._reader.execute(statement.replace("?", "%s"), values).fetchall()
                except psycopg.Error as error:
                    with suppress(psycopg.Error):
                        self._reader.close()
                    if attempt:
                        raise UnavailableError(
                            f"{self.place} cannot be read: {_text(error)}."
                        ) from error
        raise AssertionError

    # Leases.

    def _holder(self) -> str:
        return str(self._connection.execute(ME).fetchall()[0][0])

    def _hold(self, cursor: Any, model: int, fence: int) -> None:
        found = cursor.execute(
            f"UPDATE models SET expires = {NOW} + %s WHERE model = %s AND fence = %s",
            (self._lease, model, fence),
        )
        if found.rowcount != 1:
            self._taken.pop(model, None)
            raise stale(model)

    def take(self, model: int, numerics: str | None = None) -> int:
        """Become the writer of a model, unless there is one whose lease lasts."""
        with self._writing() as cursor:
            me = cursor.execute(ME).fetchall()[0][0]
            # The row is locked first: what is read with the lock may be of before a wait for it.
            cursor.execute("SELECT 1 FROM models WHERE model = %s FOR UPDATE", (model,))
            found = cursor.execute(
                f"SELECT name, fence, holder, expires > {NOW}, EXISTS (SELECT 1 "
                "FROM pg_stat_activity WHERE pid || ' since ' || backend_start = holder) "
                "FROM models WHERE model = %s",
                (model,),
            ).fetchone()
            if found is None:
                raise stale(model)
            name, fence, holder, lasts, lives = found
            if lasts and lives and holder != me:
                error = StaleError(
                    f"Another process writes model {name} (session {holder}). A model has one "
                    "writer: stop the other, or serve other models here, with --model."
                )
                error.model = model
                raise error
            cursor.execute(
                f"UPDATE models SET fence = %s, holder = %s, expires = {NOW} + %s, "
                "numerics = COALESCE(%s, numerics) WHERE model = %s",
                (fence + 1, me, self._lease, numerics, model),
            )
        self._taken[model] = fence + 1
        return int(fence) + 1

    def keep(self) -> None:
        """Renew the leases, a third of their time after the last renewal."""
        now = time.monotonic()
        if not self._taken or now - self._renewed < self._lease / 3:
            return
        with self._writing() as cursor:
            me = cursor.execute(ME).fetchall()[0][0]
            for model, fence in self._taken.items():
                cursor.execute(
                    f"UPDATE models SET holder = %s, expires = {NOW} + %s "
                    "WHERE model = %s AND fence = %s",
                    (me, self._lease, model, fence),
                )
        self._renewed = now


def _text(error: psycopg.Error) -> str:
    return " ".join(str(error).split()).rstrip(".")
