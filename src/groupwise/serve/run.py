"""Running the service: from a store's name to a server that listens, and back to rest."""

import gc
import hashlib
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from groupwise.errors import ConfigurationError, GroupwiseError
from groupwise.serve.access import is_loopback
from groupwise.serve.app import App
from groupwise.serve.engine import Ageing
from groupwise.serve.errors import StoreError
from groupwise.serve.looks import Looks
from groupwise.serve.protocol import Protocol
from groupwise.serve.service import Service
from groupwise.serve.state import State
from groupwise.serve.store import ModelRecord, SnapshotRecord, Store
from groupwise.serve.warm import warm_usual

POSTGRES = ("postgresql://", "postgres://")
SWITCH = 0.0005
"""Seconds that a thread may keep the interpreter from others; Python allows ten times as many."""
GARBAGE = (5_000, 1_000, 1_000)
"""When Python looks for garbage: after so many new objects, and how seldom among the older ones.
Requests wait meanwhile: half a millisecond for these, and twenty for ten times as many."""
PATIENCE = 30
"""Seconds that requests under way have when the service is asked to end."""

LOOKS = 20
"""Tenths of a second between looks for requests that never end."""


@dataclass(frozen=True)
class Settings:
    """Where the service listens, and what it keeps."""

    store: str = "groupwise.db"
    host: str = "127.0.0.1"
    port: int = 8088
    ageing: Ageing = field(default_factory=Ageing)
    sample: float = 10.0
    """Seconds between lines of history; 0 for none."""
    lease: float = 10.0
    """Seconds after which a writer that says nothing is taken for gone; for PostgreSQL."""
    only: tuple[str, ...] = ()
    """The models to serve; none are all."""


def open_store(name: str, writer: bool = True, lease: float = 10.0) -> Store:
    """The store of a name: an address of PostgreSQL, or a file."""
    if name.startswith(POSTGRES):
        from groupwise.serve.postgres import PostgresStore

        return PostgresStore(name, writer, lease)
    from groupwise.serve.sqlite import SqliteStore

    return SqliteStore(Path(name), writer)


def existing_store(name: str) -> Store:
    """The store of a name, to read, if it is there."""
    if not name.startswith(POSTGRES) and not Path(name).exists():
        raise StoreError(f"There is no store {name}. Name it with --store.")
    return open_store(name, writer=False)


class Server(uvicorn.Server):
    """A server that says when it is asked to end: streams would keep it."""

    def __init__(self, app: App, host: str, port: int) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=Protocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=PATIENCE,
        )
        super().__init__(config)
        self.ending: Callable[[], None] = lambda: None

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: is it to end? Now and then those who never end are told so."""
        if counter % LOOKS == 0:
            for connection in [*self.server_state.connections]:
                if isinstance(connection, Protocol):
                    connection.end_if_slow()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Asked to end: once in good order, twice by interrupts at once."""
        self.ending()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def tune() -> None:
    """Let the thread that commits have its turn soon, and seldom look for garbage.

    What a request leaves is freed at once; tickets that wait would be looked through in vain, which
    was a third of a prediction.
    """
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(*GARBAGE)


def serve(settings: Settings, said: Callable[[str], None]) -> None:
    """Serve until asked to end. ``said`` is told what, and where."""
    tune()
    store = open_store(settings.store, lease=settings.lease)
    try:
        _check_host(settings.host, store)
        problems: list[Exception] = []

        def failed(error: Exception) -> None:
            problems.append(error)
            server.should_exit = True

        looks = Looks(sample=settings.sample)
        service = Service(store, settings.ageing, settings.only)
        service.guarded = service.guarded or not is_loopback(settings.host)
        app = App(service, looks, failed)
        server = Server(app, settings.host, settings.port)
        server.ending = looks.end
        address = f"[{settings.host}]" if ":" in settings.host else settings.host
        said(f"{store.place} is served at http://{address}:{settings.port}")
        if not store.models():  # those that are there are warmed when they are taken
            threading.Thread(target=warm_usual, args=(lambda: server.should_exit,)).start()
        server.run()
    finally:
        store.close()
    if problems:
        error = problems[0]
        raise error if isinstance(error, GroupwiseError) else StoreError(repr(error))


def _check_host(host: str, store: Store) -> None:
    if not is_loopback(host) and not store.tokens():
        raise ConfigurationError(
            f"{host} can be reached from elsewhere, and there are no tokens. Make one first: "
            "groupwise token create NAME --scope admin."
        )


def check(settings: Settings, said: Callable[[str], None]) -> bool:
    """Does every model come from its snapshots and its log as it was? Nothing is changed."""
    store = existing_store(settings.store)
    try:
        found = [_is_whole(store, record, said) for record in store.models()]
        return all(found)
    finally:
        store.close()


def _is_whole(store: Store, record: ModelRecord, said: Callable[[str], None]) -> bool:
    """From the oldest snapshot through the log, past the digests of the newer ones, to its end.

    A service beside may drop what is being read: then it is read again.
    """
    while True:
        known = store.snapshots(record.model)[::-1]
        try:
            compared, state = _replayed(store, record, known)
        except GroupwiseError as error:
            if store.snapshots(record.model)[::-1] != known:
                continue
            said(f"{record.name}: {error}")
            return False
        said(
            f"{record.name}: {compared} snapshots and the log agree; {state.seq:,} events, "
            f"{len(state.open):,} tickets open"
        )
        return True


def _replayed(store: Store, record: ModelRecord, known: list[SnapshotRecord]) -> tuple[int, State]:
    """How many snapshots, from the oldest on, the log agrees with; and the state at its end."""
    if not known:
        raise StoreError("There is no snapshot. Restore the store from a copy.")
    for one in known:
        content = store.content(record.model, one.seq)
        if hashlib.sha256(content).hexdigest() != one.check:
            raise StoreError(f"The snapshot at event {one.seq} is damaged.")
    state = State.thawed(store.content(record.model, known[0].seq), record.name)
    digests = {one.seq: one.digest for one in known}
    compared = _compared(state, digests)
    for seq, event in store.log(record.model, known[0].seq):
        state.replay([(seq, event)])
        compared += _compared(state, digests)
    if compared < len(known):
        raise StoreError("The log ends before the last snapshot.")
    return compared, state


def _compared(state: State, digests: dict[int, str]) -> int:
    """Compare the state with the snapshot that was taken of it, if there is one."""
    if state.seq not in digests:
        return 0
    if state.freeze().to_bytes()[1] != digests[state.seq]:
        raise StoreError(
            f"At event {state.seq} the log gives another state than the snapshot that was taken."
        )
    return 1
