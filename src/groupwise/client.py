"""A client of ``groupwise serve``: what fails on the way is asked again, and never counts twice.

Every prediction has an id, which the client makes up where none is given; the service knows it, so
that a request whose answer was lost may be repeated. Labels are of ids.
"""

import asyncio
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupwise.errors import GroupwiseError
from groupwise.extras import needed_by

with needed_by("The client"):
    import httpx

TRIES = 8
PAUSE, LONGEST = 0.1, 5.0
"""Seconds before the second attempt, each time twice as many, at most."""
AGAIN = (502, 503, 504, 507)
"""What may pass."""
MANY = 1_000
ROOM = 1_000_000
"""Items and bytes of a request."""


class ClientError(GroupwiseError):
    """The service refuses a request; ``status`` and ``problem`` are what it says."""

    def __init__(self, message: str, status: int = 0, problem: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})


@dataclass(frozen=True)
class Predicted:
    """The answer to a row; ``probabilities`` where the model has classes.

    ``interval`` is the one around the prediction, where the model has intervals.
    """

    id: str
    ticket: int
    prediction: Any
    groups: dict[str, float]
    version: int
    probabilities: dict[str, float] | None = None
    interval: Sequence[float] | None = None


class _Requests:
    """What both clients ask, as (method, path, body)."""

    def __init__(self, url: str, token: str | None, model: str | None, timeout: float) -> None:
        if token is not None and not re.fullmatch(r"[!-~]+", token):
            raise ClientError(
                "The token is not one: it has characters that none has. Give what groupwise token "
                "create printed, beginning with gw_."
            )
        self.model = model
        self.reached = False
        """Has it ever answered?"""
        self.settings: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": timeout,
        }

    def is_nowhere(self, error: Exception) -> bool:
        """Is the address none, or refused before it ever answered, as where it is wrong?"""
        return isinstance(error, httpx.UnsupportedProtocol) or (
            not self.reached and _is_refused(error)
        )

    def path(self, page: str) -> str:
        if self.model is None:
            raise ClientError("Which model? Give the client model=NAME.")
        return f"/v1/models/{self.model}{page}"


def _body(row: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    return {"id": uuid.uuid4().hex if id is None else id, "row": dict(row)}


def _pauses() -> Iterator[float]:
    """The time to wait after every attempt but the last."""
    pause = PAUSE
    for _ in range(TRIES - 1):
        yield pause
        pause = min(2 * pause, LONGEST)


def _pause(response: "httpx.Response | None", pause: float) -> float:
    """As long as the service asks for, if it does."""
    asked = "" if response is None else response.headers.get("retry-after", "")
    return max(pause, min(float(asked), LONGEST)) if asked.isdecimal() else pause


def _checked(response: "httpx.Response") -> Any:
    if response.is_success:
        try:
            return response.json() if response.content else None
        except ValueError:
            raise ClientError(
                f"{response.url} answers something that is no JSON. Is groupwise serve there?",
                response.status_code,
            ) from None
    try:
        problem = response.json()
        said = f"{problem['title']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        problem, said = {}, response.text[:300]
    raise ClientError(f"{said} (status {response.status_code})", response.status_code, problem)


def _bytes(response: "httpx.Response") -> bytes:
    if not response.is_success:
        _checked(response)
    return response.content


def _is_refused(error: BaseException | None) -> bool:
    """Does nobody listen there?"""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _unreachable(url: object, error: Exception) -> ClientError:
    why = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".") or type(error).__name__
    why = "the connection is refused" if _is_refused(error) else why
    return ClientError(f"{url} cannot be reached: {why}. Is groupwise serve running there?")


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    """So many items as a request may have, and no more than it has room for."""
    part: list[Any] = []
    room = ROOM
    for item in items:
        size = _size(item)
        if part and (len(part) == MANY or size > room):
            yield part
            part, room = [], ROOM
        part.append(item)
        room -= size
    if part:
        yield part


def _json(item: Any) -> bytes:
    """An item as JSON: as long as it is counted to be, whatever the version of httpx."""
    try:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise ClientError(f"This cannot be sent: {error}. Give numbers, text, or None.") from error


def _size(item: Any) -> int:
    """Bytes that an item takes in a request."""
    return len(_json(item)) + 1


def _content(asked: dict[str, Any]) -> dict[str, Any]:
    """What a request holds, with its JSON as bytes."""
    if asked.get("json") is None:
        return asked
    kind = {"Content-Type": "application/json"}
    others = {name: value for name, value in asked.items() if name != "json"}
    return {
        **others,
        "content": _json(asked["json"]),
        "headers": {**kind, **asked.get("headers", {})},
    }


def _predicted(answers: list[dict[str, Any]]) -> list[Predicted]:
    for one in answers:
        if "problem" in one:
            problem = one["problem"]
            raise ClientError(f"{one['id']}: {problem['detail']}", problem["status"], problem)
    return [Predicted(**one) for one in answers]


def _labels(labels: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"id": id, "label": label} for id, label in labels.items()]


class Client(_Requests):
    """A client that waits for its answers.

    Parameters
    ----------
    url : where the service is, such as ``http://127.0.0.1:8088``.
    token : what ``groupwise token create`` printed; None where the service has no tokens.
    model : the model that is meant by ``predict``, ``label`` and so on.

    ``predict(row)`` gives a :class:`Predicted`, ``label(id, y)`` what came of it: ``"settled"`` or
    ``"already"``. What the service refuses is a :class:`ClientError`; that it cannot be reached is
    one too: at once where nobody listens and it never answered, or else after eight attempts.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        model: str | None = None,
        timeout: float = 30.0,
        **options: Any,
    ) -> None:
        super().__init__(url, token, model, timeout)
        self.http = httpx.Client(**self.settings, **options)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """What a request is answered with."""
        return _checked(self._sent(method, path, **content))

    def _sent(self, method: str, path: str, **content: Any) -> "httpx.Response":
        """Send a request until it is answered; repeating it must do no harm."""
        content = _content(content)
        for pause in (*_pauses(), None):
            response = None
            try:
                response = self.http.request(method, path, **content)
                self.reached = True
                if response.status_code not in AGAIN or pause is None:
                    return response
            except httpx.TransportError as error:
                if pause is None or self.is_nowhere(error):
                    raise _unreachable(self.http.base_url, error) from error
            time.sleep(_pause(response, pause or 0.0))
        raise AssertionError

    def create(self, settings: str) -> dict[str, Any]:
        """Make the model, from TOML as ``groupwise init`` writes it."""
        found: dict[str, Any] = self.ask("PUT", self.path(""), content=settings.encode())
        return found

    def about(self) -> dict[str, Any]:
        """The model in a few figures, and its settings."""
        found: dict[str, Any] = self.ask("GET", self.path(""))
        return found

    def predict(self, row: Mapping[str, Any], id: str | None = None) -> Predicted:
        """The prediction for a row."""
        return Predicted(**self.ask("POST", self.path("/predict"), json=_body(row, id)))

    def predict_many(
        self, rows: Iterable[Mapping[str, Any]], ids: Iterable[str] | None = None
    ) -> list[Predicted]:
        """Predictions for many rows, a thousand in a request."""
        every = [dict(row) for row in rows]
        names = [None] * len(every) if ids is None else [*ids]
        found: list[Predicted] = []
        bodies = [_body(row, id) for row, id in zip(every, names, strict=True)]
        for part in _parts(bodies):
            body = {"rows": part}
            answer = self.ask("POST", self.path("/predict/batch"), json=body)
            found += _predicted(answer["predictions"])
        return found

    def label(self, id: str, label: Any) -> str:
        """Settle a prediction with its label."""
        body = {"id": id, "label": label}
        return str(self.ask("POST", self.path("/labels"), json=body)["outcome"])

    def label_many(self, labels: Mapping[str, Any]) -> dict[str, str]:
        """What came of the labels of many predictions, by id."""
        found: dict[str, str] = {}
        for part in _parts(_labels(labels)):
            answer = self.ask("POST", self.path("/labels"), json=part)
            found.update((one["id"], one["outcome"]) for one in answer["labels"])
        return found

    def forget(self, id: str) -> str:
        """Drop a prediction whose label will never come."""
        return str(self.ask("POST", self.path("/forget"), json={"id": id})["outcome"])

    def ticket(self, id: str) -> dict[str, Any]:
        """What is known of a prediction."""
        found: dict[str, Any] = self.ask("GET", self.path(f"/tickets/{_quoted(id)}"))
        return found

    def regret(self, largest: int | None = None) -> dict[str, Any]:
        """Regret and certificate of every group."""
        query = {} if largest is None else {"largest": largest}
        found: dict[str, Any] = self.ask("GET", self.path("/regret"), params=query)
        return found

    def snapshot(self) -> bytes:
        """The model as a file that ``groupwise.load`` opens."""
        return _bytes(self._sent("GET", self.path("/snapshot")))


class AsyncClient(_Requests):
    """The same for programs with an event loop."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        model: str | None = None,
        timeout: float = 30.0,
        **options: Any,
    ) -> None:
        super().__init__(url, token, model, timeout)
        self.http = httpx.AsyncClient(**self.settings, **options)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def ask(self, method: str, path: str, **content: Any) -> Any:
        """What a request is answered with."""
        return _checked(await self._sent(method, path, **content))

    async def _sent(self, method: str, path: str, **content: Any) -> "httpx.Response":
        """Send a request until it is answered; repeating it must do no harm."""
        content = _content(content)
        for pause in (*_pauses(), None):
            response = None
            try:
                response = await self.http.request(method, path, **content)
                self.reached = True
                if response.status_code not in AGAIN or pause is None:
                    return response
            except httpx.TransportError as error:
                if pause is None or self.is_nowhere(error):
                    raise _unreachable(self.http.base_url, error) from error
            await asyncio.sleep(_pause(response, pause or 0.0))
        raise AssertionError

    async def create(self, settings: str) -> dict[str, Any]:
        """Make the model, from TOML as ``groupwise init`` writes it."""
        found: dict[str, Any] = await self.ask("PUT", self.path(""), content=settings.encode())
        return found

    async def about(self) -> dict[str, Any]:
        """The model in a few figures, and its settings."""
        found: dict[str, Any] = await self.ask("GET", self.path(""))
        return found

    async def predict(self, row: Mapping[str, Any], id: str | None = None) -> Predicted:
        """The prediction for a row."""
        return Predicted(**await self.ask("POST", self.path("/predict"), json=_body(row, id)))

    async def predict_many(
        self, rows: Iterable[Mapping[str, Any]], ids: Iterable[str] | None = None
    ) -> list[Predicted]:
        """Predictions for many rows, a thousand in a request."""
        every = [dict(row) for row in rows]
        names = [None] * len(every) if ids is None else [*ids]
        found: list[Predicted] = []
        bodies = [_body(row, id) for row, id in zip(every, names, strict=True)]
        for part in _parts(bodies):
            body = {"rows": part}
            answer = await self.ask("POST", self.path("/predict/batch"), json=body)
            found += _predicted(answer["predictions"])
        return found

    async def label(self, id: str, label: Any) -> str:
        """Settle a prediction with its label."""
        body = {"id": id, "label": label}
        return str((await self.ask("POST", self.path("/labels"), json=body))["outcome"])

    async def label_many(self, labels: Mapping[str, Any]) -> dict[str, str]:
        """What came of the labels of many predictions, by id."""
        found: dict[str, str] = {}
        for part in _parts(_labels(labels)):
            answer = await self.ask("POST", self.path("/labels"), json=part)
            found.update((one["id"], one["outcome"]) for one in answer["labels"])
        return found

    async def forget(self, id: str) -> str:
        """Drop a prediction whose label will never come."""
        return str((await self.ask("POST", self.path("/forget"), json={"id": id}))["outcome"])

    async def ticket(self, id: str) -> dict[str, Any]:
        """What is known of a prediction."""
        found: dict[str, Any] = await self.ask("GET", self.path(f"/tickets/{_quoted(id)}"))
        return found

    async def regret(self, largest: int | None = None) -> dict[str, Any]:
        """Regret and certificate of every group."""
        query = {} if largest is None else {"largest": largest}
        found: dict[str, Any] = await self.ask("GET", self.path("/regret"), params=query)
        return found

    async def snapshot(self) -> bytes:
        """The model as a file that ``groupwise.load`` opens."""
        return _bytes(await self._sent("GET", self.path("/snapshot")))


def _quoted(id: str) -> str:
    from urllib.parse import quote

    return quote(id, safe="") if id.strip(".") else id.replace(".", "%2E")
