"""Running the service: from a store's name to a server that listens, and back to rest."""

import errno
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from groupwise.errors import ConfigurationError, GroupwiseError
from groupwise.serve.access import is_loopback
from groupwise.serve.app import App
from groupwise.serve.engine import Ageing, is_whole
from groupwise.serve.errors import StoreError
from groupwise.serve.looks import Looks
from groupwise.serve.protocol import Protocol
from groupwise.serve.service import Service, numerics
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

BACKLOG = 2_048
"""Connections that may wait to be accepted."""

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


def open_store(name: str, writer: bool = True, lease: float = 10.0, makes: bool = True) -> Store:
    """The store of a name: an address of PostgreSQL, or a file."""
    if name.startswith(POSTGRES):
        from groupwise.serve.postgres import PostgresStore

        return PostgresStore(name, writer, lease, makes)
    from groupwise.serve.sqlite import SqliteStore

    return SqliteStore(Path(name), writer, makes=makes)


def existing_store(name: str) -> Store:
    """The store of a name, to read, if it is there."""
    if not _is_there(name):
        raise StoreError(f"There is no store {name}. Name it with --store.")
    return open_store(name, writer=False, makes=False)


def _is_there(name: str) -> bool:
    return name.startswith(POSTGRES) or Path(name).exists()


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
    _check_host(settings)
    with ExitStack() as opened:
        sockets = listening(settings.host, settings.port)
        for one in sockets:
            opened.enter_context(one)
        store = opened.enter_context(closing(open_store(settings.store, lease=settings.lease)))
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
        server.run(sockets)
    if problems:
        error = problems[0]
        raise error if isinstance(error, GroupwiseError) else StoreError(repr(error))


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets at all addresses of a host; an error in one line where that cannot be."""
    found: list[socket.socket] = []
    try:
        kind, passive = socket.SOCK_STREAM, socket.AI_PASSIVE
        every = dict.fromkeys(socket.getaddrinfo(host, port, type=kind, flags=passive))
        for family, _, protocol, _, address in every:
            one = socket.socket(family, kind, protocol)
            found.append(one)
            if os.name == "posix":  # elsewhere it means that others may listen there too
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(BACKLOG)
    except OSError as error:
        for one in found:
            one.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"Port {port} is in use: choose another with --port."
            ) from None
        raise ConfigurationError(
            f"Cannot listen at {host}, port {port}: {error.strerror or error}. Choose others with "
            "--host and --port."
        ) from None
    return found


def _check_host(settings: Settings) -> None:
    host = settings.host
    if not is_loopback(host) and not _has_tokens(settings.store):
        raise ConfigurationError(
            f"{host} can be reached from elsewhere, and there are no tokens. Make one first: "
            "groupwise token create NAME --scope admin."
        )


def _has_tokens(name: str) -> bool:
    """Are there tokens in a store, which need not be there?"""
    if not _is_there(name):
        return False
    with closing(open_store(name, writer=False)) as store:
        return bool(store.tokens())


def check(settings: Settings, said: Callable[[str], None]) -> bool:
    """Does every model come from its snapshots and its log as it was? Nothing is changed."""
    store = existing_store(settings.store)
    try:
        known = store.models()
        if not known:
            said(f"{store.place} has no models.")
        found = [_is_whole(store, record, said) for record in known]
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
            for _ in store.answers(record.model):
                pass  # an error where one is damaged
        except GroupwiseError as error:
            if store.snapshots(record.model)[::-1] != known:
                continue
            said(f"{record.name}: {error}{_written_otherwise(record)}")
            return False
        said(
            f"{record.name}: {compared} snapshots and the log agree; {state.seq:,} events, "
            f"{len(state.open):,} tickets open"
        )
        return True


def _written_otherwise(record: ModelRecord) -> str:
    """What else may be the reason why a log gives another state."""
    if record.numerics == numerics():
        return ""
    return (
        f" The log was written by other arithmetic ({record.numerics}; this is {numerics()}): "
        "check it with the version that wrote it."
    )


def _replayed(store: Store, record: ModelRecord, known: list[SnapshotRecord]) -> tuple[int, State]:
    """How many snapshots, from the oldest on, the log agrees with; and the state at its end."""
    if not known:
        raise StoreError("There is no snapshot. Restore the store from a copy.")
    for one in known:
        if not is_whole(store, record.model, one):
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
