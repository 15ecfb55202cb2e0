"""All models of a store, from the start of the service to its end."""

import asyncio
import hashlib
import itertools
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from groupwise.errors import GroupwiseError
from groupwise.serve.committer import Committer
from groupwise.serve.declared import declared_model
from groupwise.serve.engine import Ageing, Engine, is_whole, load
from groupwise.serve.errors import (
    ConflictError,
    InvalidError,
    ServiceError,
    StaleError,
    StoreError,
    UnavailableError,
    UnknownError,
)
from groupwise.serve.seen import Seen
from groupwise.serve.state import State
from groupwise.serve.store import ModelRecord, SnapshotRecord, Store, Token
from groupwise.serve.warm import warm

Found = TypeVar("Found")

LOG = logging.getLogger("groupwise.serve")
ANSWERS = 10_000
"""So many ids that the store remembers are read at once."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
TICK = 0.5
"""Seconds between looks at what is due."""
AGAIN = 0.2, 2.0
"""Seconds between attempts to write after a failure, at first and at most."""


def numerics() -> str:
    """Names the arithmetic that this process computes with."""
    import scipy

    from groupwise import __version__
    from groupwise.kernels.cache import arithmetic

    return f"groupwise {__version__}, scipy {scipy.__version__}, {arithmetic()}"


class Service:
    """The models of a store; one process is the writer of each."""

    def __init__(
        self, store: Store, ageing: Ageing | None = None, only: tuple[str, ...] = ()
    ) -> None:
        self.store = store
        self.only = only
        """The models that are served here; none are all."""
        self.ageing = ageing or Ageing()
        self.engines: dict[str, Engine] = {}
        self.guarded = False
        """Were there ever tokens? When the last is revoked, nobody may ask for anything."""
        self.tokens = store.tokens()
        self.ready = False
        self.ending = False
        self.opened: Callable[[Engine], None] = lambda engine: None
        """Told of every model that is served from now on."""
        self.observe: Callable[[float, int], None] = lambda seconds, events: None
        """Told of every commit: how long it took, and how many events it had."""
        self._creating = asyncio.Lock()
        self._recovering: asyncio.Task[None] | None = None
        self._clocks: list[asyncio.Task[None]] = []

    @property
    def tokens(self) -> list[Token]:
        """Those that are known now."""
        return self._tokens

    @tokens.setter
    def tokens(self, known: list[Token]) -> None:
        self._tokens = known
        self.guarded = self.guarded or bool(known)

    # From the start to the end.

    async def start(self) -> None:
        """Take the models, and bring each to where it was."""
        self.committer = Committer(self.store, self._failed, self._lost)
        self.committer.observe = self.observe
        self._clocks = [asyncio.create_task(_now_and_then(one)) for one in (self._keep, self._snap)]
        for record in self.store.models():
            if not self.only or record.name in self.only:
                await self._open(record)
        self.ready = True

    async def _open(self, record: ModelRecord) -> None:
        """Take a model, and serve it. Those that are served already may commit meanwhile."""
        own = numerics()
        last = await asyncio.to_thread(self._check_numerics, record, own)
        fence = await self.committer.run(lambda store: store.take(record.model))
        state, seen = await asyncio.to_thread(self._load, record)
        if last is not None:
            about = record.model, fence, last, 1, self.ageing.keep_log
            await self.committer.run(lambda store: store.put_snapshot(*about))
            fence = await self.committer.run(lambda store: store.take(record.model, own))
        self._serve(record, fence, state, seen)

    def _check_numerics(self, record: ModelRecord, own: str) -> SnapshotRecord | None:
        """The snapshot to go on from with another arithmetic than before, if it is another.

        What was before it is to be dropped: nobody may go back to it, and repeat what came then.
        """
        known = self.store.snapshots(record.model)
        if record.numerics == own or not known:
            return None
        tail = self.store.log(record.model, known[0].seq)
        if next(tail, None) is not None:
            problem = "goes on after its last snapshot"
        elif not is_whole(self.store, record.model, known[0]):
            problem = "is needed, as its last snapshot is damaged"
        else:
            return known[0]
        raise StoreError(
            f"The log of {record.name} {problem}, and was written by other arithmetic "
            f"({record.numerics}; this is {own}). Start the version that wrote it, and end it with "
            "SIGTERM: it takes a snapshot, from which this one goes on."
        )

    def _load(self, record: ModelRecord) -> tuple[State, Seen]:
        state = load(self.store, record)
        warm(state.model, next((one.row for one in state.tickets.values()), None))
        seen, keys = Seen(), self.store.keys(record.model)
        while some := [*itertools.islice(keys, ANSWERS)]:
            seen.add(some)
        return state, seen

    def _serve(self, record: ModelRecord, fence: int, state: State, seen: Seen) -> Engine:
        engine = Engine(record, fence, state, self.store, self.committer, self.ageing, seen)
        engine.broken = self._failed
        self.engines[record.name] = engine
        self.opened(engine)
        return engine

    async def stop(self) -> None:
        """Refuse, finish what was begun, take snapshots, and let go of the store."""
        self.ending = True
        self.ready = False
        for task in (*self._clocks, self._recovering):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        for engine in self.engines.values():
            await engine.settled()
            await self._snapshot(engine)
        await self.committer.close()
        self.store.close()

    async def _keep(self) -> None:
        """Stay the writer, and learn of tokens that were made or revoked."""
        self.tokens = await asyncio.to_thread(self.store.tokens)
        await self.committer.run(lambda store: store.keep())

    async def _snap(self) -> None:
        """Take the snapshots that are due."""
        for engine in [*self.engines.values()]:
            if engine.is_due and self.committer.broken is None:
                await self._snapshot(engine)

    async def _snapshot(self, engine: Engine) -> None:
        """Take a snapshot, if that can be; others are not kept from theirs."""
        try:
            await engine.snapshot()
        except GroupwiseError as error:
            if not isinstance(engine.unavailable, UnknownError):  # it was deleted meanwhile
                LOG.error("%s: no snapshot: %s", engine.record.name, error)
        except Exception:  # the log holds all of it
            LOG.exception("%s: no snapshot", engine.record.name)

    # When something fails.

    def _failed(self, error: ServiceError) -> None:
        """Nothing is known but what is durable: every model goes back to that."""
        LOG.error("%s", error)
        for engine in self.engines.values():
            if not isinstance(engine.unavailable, StaleError | UnknownError):
                engine.unavailable = error
        self.committer.broken = error
        if self._recovering is None or self._recovering.done():
            self._recovering = asyncio.create_task(self._recover())

    def _lost(self, model: int, error: ServiceError) -> None:
        """Another process has taken a model: this one knows no longer what is durable."""
        LOG.error("%s", error)
        for engine in self.engines.values():
            if engine.record.model == model:
                engine.unavailable = error

    async def _recover(self) -> None:
        pause, most = AGAIN
        await self.committer.run(lambda store: None)  # what was under way is committed, or not
        while True:
            try:
                for engine in self._failing():
                    engine.adopt(await asyncio.to_thread(engine.load))
                await self.committer.run(lambda store: store.probe())
                if not self._failing():
                    break
            except GroupwiseError as error:
                LOG.error("still not: %s", error)
            except Exception:  # whatever it is, it may pass
                LOG.exception("still not")
            await asyncio.sleep(pause)
            pause = min(2 * pause, most)
        self.committer.resume()
        LOG.warning("the store can be written again")

    def _failing(self) -> list[Engine]:
        """The models that are not what is durable; which they need not be if they go."""
        gone = StaleError | UnknownError | None
        return [one for one in self.engines.values() if not isinstance(one.unavailable, gone)]

    # Models.

    def check_ready(self) -> None:
        """An error where not all models are there that will be, or were."""
        if self.ending:
            raise UnavailableError("The service ends. Ask the next one.")
        if not self.ready:
            raise UnavailableError("The service starts: it replays its log. Try again soon.")

    def engine(self, name: str) -> Engine:
        """The model of a name."""
        found = None if self.ending else self.engines.get(name)
        if found is None:
            self.check_ready()
            raise UnknownError(f"There is no model {name!r}. PUT its settings first.")
        return found

    async def create(self, name: str, settings: str) -> bool:
        """Make a model; True where there was none. One that has seen something stays as it is."""
        if not self.ready:
            raise UnavailableError("The service starts or ends.")
        if not NAME.fullmatch(name):
            raise InvalidError(
                f"A model cannot be called {name!r}: give lower-case letters, digits, - and _, at "
                "most 63."
            )
        if self.only and name not in self.only:
            raise StaleError(f"Model {name} is none of those that are served here.")
        async with self._creating:
            try:
                return await self._create(name, settings)
            except ConflictError:
                records = await asyncio.to_thread(self.store.models)
                record = next((one for one in records if one.name == name), None)
                if record is None or name in self.engines:
                    raise
                await self._open(record)  # it was made, and the answer of the store was lost
                return await self._create(name, settings)

    async def _create(self, name: str, settings: str) -> bool:
        known = self.engines.get(name)
        if known is not None:
            if known.record.settings == settings:
                return False
            _check_unseen(known)
        self.committer.check()
        state, first, content = await asyncio.to_thread(_first, settings, name)
        about = name, settings, numerics(), first, content
        if known is None:
            record, fence = await self.committer.run(lambda s: s.create(*about))
        else:
            _check_unseen(known)  # rows may have come meanwhile
            instead = known.held
            record, fence = await self._removed(known, lambda s: s.create(*about, instead))
        self._serve(record, fence, state, Seen())
        return known is None

    async def delete(self, name: str) -> None:
        """Remove a model, and all that is known of it."""
        self.engine(name)
        async with self._creating:
            engine = self.engine(name)
            await self._removed(engine, lambda store: store.delete(*engine.held))

    async def _removed(self, engine: Engine, job: Callable[[Store], Found]) -> Found:
        """Let the store remove a model, for another or for none; if that fails, it stays."""
        engine.check()
        engine.unavailable = UnknownError(f"Model {engine.record.name} is being deleted.")
        try:
            await engine.settled()
            found = await self.committer.run(job)
        except StaleError as error:
            engine.unavailable = error
            raise
        except BaseException as error:  # nobody knows what was durable before, and is now
            engine.unavailable = None
            self._failed(UnavailableError(f"{engine.record.name} was not deleted: {error}"))
            raise
        self.engines.pop(engine.record.name, None)
        return found


async def _now_and_then(what: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again, whatever comes of it."""
    while True:
        await asyncio.sleep(TICK)
        try:
            await what()
        except GroupwiseError as error:
            LOG.error("%s", error)
        except Exception:
            LOG.exception("what is due now and then failed")


def _check_unseen(engine: Engine) -> None:
    if engine.state.seq:
        raise ConflictError(
            f"Model {engine.record.name} has seen rows, and its settings are what they are. Make "
            "another one, or DELETE this one."
        )


def _first(settings: str, name: str) -> tuple[State, SnapshotRecord, bytes]:
    """A model that has seen nothing, and its snapshot."""
    try:
        state = State(declared_model(settings, name))
    except GroupwiseError as error:
        raise InvalidError(str(error)) from error
    warm(state.model)
    content, digest = state.freeze().to_bytes()
    check = hashlib.sha256(content).hexdigest()
    return state, SnapshotRecord(0, time.time(), digest, check), content
