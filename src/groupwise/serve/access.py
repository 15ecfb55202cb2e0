"""Tokens: who may do what, with which models. A token is shown once, and kept as a digest."""

import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache

from groupwise.errors import ConfigurationError
from groupwise.serve.errors import ForbiddenError, UnauthorisedError
from groupwise.serve.store import Token

PREDICT, LEARN, READ, ADMIN = SCOPES = ("predict", "learn", "read", "admin")
"""Issue tickets; settle them; look; everything, with models made and deleted too."""
ANY = ""
"""For whoever has a token of the model, whatever its scopes."""
EVERYBODY = Token("", "anybody on this machine", b"", (ADMIN,), (), 0.0)
"""Whoever asks a service that has no tokens, and so answers this machine only."""
PREFIX = "gw_"
_FORM = re.compile(rf"{PREFIX}([0-9a-f]{{12}})_[\w-]{{43}}")
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def new_token(name: str, scopes: Sequence[str], models: Sequence[str] = ()) -> tuple[str, Token]:
    """A token to hand out, and what is kept of it."""
    unknown = [one for one in scopes if one not in SCOPES]
    if unknown or not scopes:
        raise ConfigurationError(f"Scopes are some of {', '.join(SCOPES)}.")
    number = secrets.token_hex(6)
    text = f"{PREFIX}{number}_{secrets.token_urlsafe(32)}"
    about = tuple(dict.fromkeys(scopes)), tuple(dict.fromkeys(models))
    return text, Token(number, name, _digest(text), *about, time.time())


def _digest(text: str) -> bytes:
    """A token has 256 random bits: no slow hash is needed."""
    return hashlib.sha256(text.encode()).digest()


def found(tokens: Sequence[Token], text: str | None) -> Token:
    """The token that was sent."""
    if text is None:
        raise UnauthorisedError("Send a token: Authorization: Bearer gw_…")
    form = _FORM.fullmatch(text)
    for token in tokens:
        if form is not None and token.token == form[1]:
            if hmac.compare_digest(token.digest, _digest(text)):
                return token
            break
    raise UnauthorisedError("The token is not known here. It may have been revoked.")


def bearer(header: str | None) -> str | None:
    """The token in an Authorization header."""
    form = _BEARER.fullmatch(header.strip()) if header else None
    return form[1] if form else None


def has(token: Token, scope: str) -> bool:
    """Has a token this scope? Any will do for ``ANY``."""
    return scope == ANY or scope in token.scopes or ADMIN in token.scopes


def allow(token: Token, scope: str, model: str | None = None) -> None:
    """ForbiddenError unless a token is for this."""
    if not has(token, scope):
        raise ForbiddenError(f"The token {token.name!r} lacks the scope {scope}.")
    if token.models and model not in token.models:
        what = "this" if model is None else f"model {model}"
        raise ForbiddenError(f"The token {token.name!r} is not for {what}.")


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Does a host's name mean this machine, whoever asks?"""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    name, _, port = header.rpartition(":")
    return name if name and port.isdigit() else header
