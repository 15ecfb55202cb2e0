"""Errors as problem documents (RFC 9457)."""

from typing import Any

import msgspec
from starlette.responses import Response

from groupwise.serve.errors import ServiceError

PREFIX = "urn:groupwise:problem:"
PROBLEM = "application/problem+json"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


LONGEST = 2_000
"""Characters of a detail: what it quotes may be all that was sent."""


def problem_of(error: ServiceError) -> dict[str, Any]:
    """What an error is answered with."""
    return {
        "type": PREFIX + error.kind,
        "title": error.title,
        "status": error.status,
        "detail": shortened(str(error)),
    }


def shortened(text: str) -> str:
    """A text that may be told."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 4 :]}"


def answered(error: ServiceError) -> Response:
    """The response to an error."""
    headers = dict(HEADERS)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="groupwise"'
    body = msgspec.json.encode(problem_of(error)) + b"\n"
    return Response(body, error.status, headers, PROBLEM)
