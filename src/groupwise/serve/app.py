"""The service over HTTP: requests in, answers and problem documents out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from groupwise.errors import GroupwiseError
from groupwise.serve import access, bodies
from groupwise.serve.access import ADMIN, ANY, LEARN, PREDICT, READ
from groupwise.serve.bodies import body, few, named
from groupwise.serve.declared import target_of
from groupwise.serve.engine import CONFLICT, INVALID, UNKNOWN, Engine, Outcome
from groupwise.serve.errors import (
    BusyError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    MalformedError,
    MethodError,
    ServiceError,
    UnknownError,
)
from groupwise.serve.looks import Looks
from groupwise.serve.metrics import Metrics
from groupwise.serve.openapi import document
from groupwise.serve.page import COOKIE, Pages
from groupwise.serve.problems import HEADERS, answered, problem_of, shortened
from groupwise.serve.service import Service
from groupwise.serve.store import Token

LOG = logging.getLogger("groupwise.serve")
LISTS = ("/", "/v1/models")
"""Who may see some models sees these there."""
AT_ONCE = 1_000
"""Requests under way; further ones are refused with 503."""
FIXED = [
    (name.lower().encode(), value.encode())
    for name, value in {**HEADERS, "Content-Type": "application/json"}.items()
]

_encode = msgspec.json.Encoder().encode
Endpoint = Callable[[Request], Awaitable[Response]]


class Json(Response):
    """A response that holds JSON, and ends its line."""

    def __init__(self, content: bytes, status: int = 200) -> None:
        self.status_code, self.body, self.background = status, content + b"\n", None
        self.raw_headers = [*FIXED, (b"content-length", b"%d" % len(self.body))]


class App:
    """The endpoints, over one service."""

    def __init__(self, service: Service, looks: Looks, failed: Callable[[Exception], None]) -> None:
        self.service = service
        self.looks = looks
        self.metrics = Metrics(service, looks)
        self._failed = failed
        self._under_way = 0
        self._openapi = _encode(document())
        self.starlette = Starlette(
            routes=[*self._routes(), *Pages(service, looks, self._token).routes()],
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _refused, Exception: _broken},
        )

        self.starlette.router.redirect_slashes = False  # no page has two addresses
        self._quick = {
            ("predict",): self._guarded(self._predict, PREDICT),
            ("predict", "batch"): self._guarded(self._predict_batch, PREDICT),
            ("labels",): self._guarded(self._labels, LEARN),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: what is asked most goes straight to its endpoint."""
        parts: list[str] = scope["path"].split("/") if scope["type"] == "http" else []
        quick = self._quick.get(tuple(parts[4:]))
        if quick is not None and parts[:3] == ["", "v1", "models"] and scope["method"] == "POST":
            scope["path_params"] = {"model": parts[3]}
            request = Request(scope, receive)
            try:
                response = await quick(request)
            except Exception as error:
                response = await _broken(request, error)
            await response(scope, receive, send)
            return
        await self.starlette(scope, receive, send)

    def _routes(self) -> list[Route]:
        of = "/v1/models/{model}"
        post, get = ["POST"], ["GET"]
        return [
            self._route(f"{of}/predict", self._predict, post, PREDICT),
            self._route(f"{of}/predict/batch", self._predict_batch, post, PREDICT),
            self._route(f"{of}/labels", self._labels, post, LEARN),
            self._route(f"{of}/forget", self._forget, post, LEARN),
            self._route(f"{of}/tickets/{{id:path}}", self._ticket, get, READ),
            self._route(f"{of}/regret", self._regret, get, READ),
            self._route(f"{of}/calibration", self._calibration, get, READ),
            self._route(f"{of}/coverage", self._coverage, get, READ),
            self._route(f"{of}/history", self._history, get, READ),
            self._route(f"{of}/stream", self._stream, get, READ),
            self._route(f"{of}/snapshot", self._snapshot, get, ADMIN),
            self._route(of, self._about, get, ANY),
            self._route(of, self._put, ["PUT"], ADMIN),
            self._route(of, self._delete, ["DELETE"], ADMIN),
            self._route("/v1/models", self._models, get, READ),
            self._route("/metrics", self._metrics, get, READ),
            self._route("/openapi.json", self._document, get, None),
            self._route("/live", self._live, get, None),
            self._route("/ready", self._ready, get, None),
        ]

    def _route(
        self,
        path: str,
        endpoint: Callable[[Request, Token], Awaitable[Response]],
        methods: list[str],
        scope: str | None,
    ) -> Route:
        return Route(path, self._guarded(endpoint, scope), methods=methods)

    def _guarded(
        self, endpoint: Callable[[Request, Token], Awaitable[Response]], scope: str | None
    ) -> Endpoint:
        """An endpoint for those who may ask; its errors as problem documents."""

        async def guarded(request: Request) -> Response:
            self._under_way += 1
            try:
                token = self._token(request, scope)
                if self._under_way > AT_ONCE and scope is not None:
                    raise BusyError(f"{AT_ONCE:,} requests are under way. Try again in a second.")
                return await endpoint(request, token)
            except ServiceError as error:
                return answered(error)
            finally:
                self._under_way -= 1

        return guarded

    def _token(self, request: Request, scope: str | None) -> Token:
        """Whose request it is; an error unless they may ask for this."""
        if scope is None:
            return access.EVERYBODY
        if not self.service.guarded:
            host = access.host_of(
                dict(request.scope["headers"]).get(b"host", b"").decode("latin-1")
            )
            if not access.is_loopback(host):  # a page elsewhere that a browser was sent to
                raise ForbiddenError(
                    f"This service answers as localhost, not as {host!r}. To be asked from "
                    "elsewhere it needs tokens: groupwise token create."
                )
            return access.EVERYBODY
        sent = access.bearer(request.headers.get("authorization"))
        if sent is None and request.method == "GET":  # a cookie is for looking only
            sent = request.cookies.get(COOKIE)
        token = access.found(self.service.tokens, sent)
        if request.scope["path"] not in LISTS:  # what a Host header says has no part in it
            access.allow(token, scope, request.path_params.get("model"))
        else:
            access.allow(token, scope, *token.models[:1])
        return token

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app

        async def start() -> None:
            try:
                await self.service.start()
            except Exception as error:
                self._failed(error)

        starting = asyncio.create_task(start())
        sampling = asyncio.create_task(self.looks.sampling(self.service))
        yield
        await starting
        sampling.cancel()
        await self.looks.close()
        await self.service.stop()

    def _engine(self, request: Request) -> Engine:
        return self.service.engine(request.path_params["model"])

    # Rounds.

    async def _predict(self, request: Request, token: Token) -> Response:
        asked = bodies.read(bodies.PREDICTION, await body(request))
        return Json(await self._engine(request).predict(asked.id, asked.row))

    async def _predict_batch(self, request: Request, token: Token) -> Response:
        asked = bodies.read(bodies.PREDICTIONS, await body(request))
        items = [(one.id, one.row) for one in few(asked.rows)]
        found = await self._engine(request).predict_many(items)
        answers = [
            one
            if isinstance(one, bytes)
            else _encode({"id": key, "problem": problem_of(_service_error(one))})
            for one, (key, _) in zip(found, items, strict=True)
        ]
        return Json(b'{"predictions":[%s]}' % b",".join(answers))

    async def _labels(self, request: Request, token: Token) -> Response:
        asked = bodies.read(bodies.LABELS, await body(request))
        engine = self._engine(request)
        if isinstance(asked, list):
            items = [(*named(one), _encode(one.label)) for one in few(asked)]
            found = await engine.label_many(items)
            return Json(_encode({"labels": [_shown(one) for one in found]}))
        return _outcome(await engine.label(*named(asked), _encode(asked.label)))

    async def _forget(self, request: Request, token: Token) -> Response:
        asked = bodies.read(bodies.DROPPEDS, await body(request))
        engine = self._engine(request)
        if isinstance(asked, list):
            found = await engine.forget([named(one) for one in few(asked)])
            return Json(_encode({"forgotten": [_shown(one) for one in found]}))
        (outcome,) = await engine.forget([named(asked)])
        return _outcome(outcome)

    async def _ticket(self, request: Request, token: Token) -> Response:
        name = request.path_params["id"]
        if not name.isprintable():
            name = bodies.checked(name)
        issued, answer = await self._engine(request).ticket(name)
        label = None if not issued.label else msgspec.Raw(issued.label)
        known = {
            "outcome": issued.outcome or "open",
            "label": label,
            "issued_at": issued.at,
            "settled_at": issued.settled or None,
            "answer": msgspec.Raw(answer),
        }
        return Json(_encode(known))

    # Looking.

    async def _regret(self, request: Request, token: Token) -> Response:
        found = await self.looks.regret(self._engine(request), _count(request, "largest"))
        return Json(found.text)

    async def _coverage(self, request: Request, token: Token) -> Response:
        found = await self.looks.coverage(self._engine(request), _count(request, "largest"))
        return Json(found.text)

    async def _calibration(self, request: Request, token: Token) -> Response:
        found = await self.looks.calibration(self._engine(request), _count(request, "largest"))
        return Json(found.text)

    async def _history(self, request: Request, token: Token) -> Response:
        group = request.query_params.get("group")
        return Json(await self.looks.history_text(self._engine(request), group))

    async def _stream(self, request: Request, token: Token) -> Response:
        def allowed() -> bool:  # tokens may be revoked, or there may be some now
            known = self.service.tokens if self.service.guarded else [access.EVERYBODY]
            return token in known

        response = await self.looks.stream(self._engine(request), request, allowed)
        if request.method == "HEAD":  # the stream itself would never end
            return Response(None, 200, dict(response.headers))
        return response

    async def _snapshot(self, request: Request, token: Token) -> Response:
        engine = self._engine(request)
        frozen = await engine.frozen()
        content, digest = await asyncio.to_thread(frozen.to_bytes)
        name = f"{engine.record.name}-{frozen.seq}.gw"
        headers = {
            **HEADERS,
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Groupwise-Digest": digest,
        }
        return Response(content, 200, headers, "application/octet-stream")

    # Models.

    async def _models(self, request: Request, token: Token) -> Response:
        self.service.check_ready()
        known = [one for one in self.service.engines.values() if _sees(token, one)]
        return Json(_encode({"models": [self.looks.about(one) for one in known]}))

    async def _about(self, request: Request, token: Token) -> Response:
        """Settings, which say what rows are, and figures for those who may look."""
        engine = self._engine(request)
        name, settings = engine.record.name, engine.record.settings
        figures = self.looks.about(engine) if access.has(token, READ) else {"name": name}
        target = await asyncio.to_thread(target_of, settings)
        return Json(_encode({**figures, "target": target, "settings": settings}))

    async def _put(self, request: Request, token: Token) -> Response:
        content = await body(request, None)
        try:
            settings = content.decode()
        except UnicodeDecodeError:
            raise MalformedError("The settings are no text in UTF-8.") from None
        name = request.path_params["model"]
        is_new = await self.service.create(name, settings)
        engine = self.service.engine(name)
        return Json(_encode(self.looks.about(engine)), 201 if is_new else 200)

    async def _delete(self, request: Request, token: Token) -> Response:
        await self.service.delete(request.path_params["model"])
        return Response(None, 204, HEADERS)

    # The service itself.

    async def _metrics(self, request: Request, token: Token) -> Response:
        return Response(self.metrics.text(), 200, HEADERS, self.metrics.kind)

    async def _document(self, request: Request, token: Token) -> Response:
        return Json(self._openapi)

    async def _live(self, request: Request, token: Token) -> Response:
        return Json(b'{"live":true}')

    async def _ready(self, request: Request, token: Token) -> Response:
        broken = self.service.committer.broken if self.service.ready else None
        ready = self.service.ready and broken is None
        said = {"ready": ready, **({} if broken is None else {"because": str(broken)})}
        return Json(_encode(said), 200 if ready else 503)


def _sees(token: Token, engine: Engine) -> bool:
    return not token.models or engine.record.name in token.models


def _count(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise MalformedError(f"{name} is a whole number from 0 on.")
    return int(given)


def _service_error(error: GroupwiseError) -> ServiceError:
    return error if isinstance(error, ServiceError) else InvalidError(str(error))


def _shown(outcome: Outcome) -> dict[str, Any]:
    detail = {} if outcome.detail is None else {"detail": shortened(outcome.detail)}
    return {"id": outcome.id, "outcome": outcome.outcome, **detail}


def _outcome(outcome: Outcome) -> Response:
    """One label, one status."""
    kinds: dict[str, type[ServiceError]] = {
        CONFLICT: ConflictError,
        UNKNOWN: UnknownError,
        INVALID: InvalidError,
    }
    if outcome.outcome in kinds:
        raise kinds[outcome.outcome](outcome.detail or "There is no such ticket.")
    return Json(_encode(_shown(outcome)))


async def _refused(request: Request, error: Exception) -> Response:
    """What starlette itself refuses."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]  # its address may be none: with it comes what the Host header says
    if error.status_code == 405:
        found: ServiceError = MethodError(f"{request.method} is not for {path}.")
    elif error.status_code == 404:
        found = UnknownError(f"There is no page {path}.")
    else:
        found = MalformedError(error.detail)
    response = answered(found)
    if error.headers:
        response.headers.update(error.headers)
    return response


async def _broken(request: Request, error: Exception) -> Response:
    LOG.error("%s %r failed", request.method, request.scope["path"], exc_info=error)
    return answered(ServiceError("The service failed, and has noted why."))
