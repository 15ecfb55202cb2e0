"""What requests hold, and how it is read: with limits, and errors that say what to do."""

from typing import Annotated, Any, TypeVar

import msgspec
from starlette.requests import Request

from groupwise.serve.errors import MalformedError, MediaError, TooLongError
from groupwise.serve.state import UNNAMED

BODY = 1 << 20
"""Bytes of a request."""
MANY = 1_000
"""Items of a batch."""
WHOLE = 1 << 63
"""Whole numbers beyond it are no values of a field."""
JSON, TOML = "application/json", "application/toml"

Whole = Annotated[int, msgspec.Meta(ge=-WHOLE, le=WHOLE - 1)]
Value = bool | Whole | float | str | None
Id = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        pattern=rf"^[^\x00-\x1f\x7f{UNNAMED}][^\x00-\x1f\x7f]*$(?!\n)",
        description="The caller's own name for a prediction; with it, everything may be repeated.",
        examples=["order-17"],
    ),
]
Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)",
        description="The id of a prediction, as its answer has it.",
    ),
]
Number = Annotated[int, msgspec.Meta(ge=0, le=WHOLE - 1, description="The number of a ticket.")]


class Prediction(msgspec.Struct, forbid_unknown_fields=True):
    """A row to predict."""

    row: dict[str, Value]
    id: Id | None = None


class Predictions(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[Prediction]


class Label(msgspec.Struct, forbid_unknown_fields=True):
    """The label of a ticket, which its id or its number names."""

    label: bool | Whole | float | str
    id: Name | None = None
    ticket: Number | None = None


class Dropped(msgspec.Struct, forbid_unknown_fields=True):
    """A ticket whose label will never come."""

    id: Name | None = None
    ticket: Number | None = None


Labels = Label | list[Label]
Droppeds = Dropped | list[Dropped]
Found = TypeVar("Found")

PREDICTION = msgspec.json.Decoder(Prediction)
PREDICTIONS = msgspec.json.Decoder(Predictions)
LABELS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Labels)
DROPPEDS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Droppeds)


async def body(request: Request, kind: str | None = JSON, most: int = BODY) -> bytes:
    """The content of a request, of a kind, and not too long."""
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    given = headers.get(b"content-type", b"").decode("latin-1")
    given = given.partition(";")[0].strip().lower()
    if kind is not None and given != kind:
        raise MediaError(f"Send Content-Type: {kind}" + (f", not {given}." if given else "."))
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise MediaError("Send the body as it is, without Content-Encoding.")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > most:
        raise _too_long(most)
    content, more = b"", True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise MalformedError("The request ended before its body did.")
        content += message.get("body", b"")
        more = message.get("more_body", False)
        if len(content) > most:
            raise _too_long(most)
    return content


def _too_long(most: int) -> TooLongError:
    advice = " Send it in parts." if most == BODY else ""
    return TooLongError(f"A request has at most {most:,} bytes.{advice}")


def read(decoder: "msgspec.json.Decoder[Found]", content: bytes) -> Found:
    """What a body says."""
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise MalformedError(f"The body cannot be read: {error}.") from None


def checked(name: str) -> str:
    """The id of a prediction, where it can be one."""
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError as error:
        raise MalformedError(f"No prediction has this id: {error}.") from None


def few(items: list[Any]) -> list[Any]:
    """The items of a batch, if they are not too many."""
    if len(items) > MANY:
        raise TooLongError(f"A batch has at most {MANY:,} items, and this has {len(items):,}.")
    return items


def named(item: "Label | Dropped") -> tuple[str | None, int | None]:
    """Which ticket is meant."""
    if (item.id is None) == (item.ticket is None):
        raise MalformedError("Name the ticket by its id or by its number: one of id and ticket.")
    return item.id, item.ticket
