"""HTTP on a connection: answers leave in one piece, and requests have to come to an end."""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from groupwise.serve.errors import (
    MalformedError,
    ServiceError,
    SlowError,
    TooLongError,
    UnavailableError,
)
from groupwise.serve.problems import answered

SLOWEST = 30.0
"""Seconds that a request may take to arrive, from the connection or its first byte to its last."""
SPARE = 1 << 16
"""Bytes of a request besides its body, after those that came with its first one."""
FRAMED = 8
"""And so many for every byte of the body: one that comes in chunks may have each in its own."""
LINGER = 1.0
"""Seconds for which what still comes of a refused request is taken, and not read: whoever closes a
connection with something unread makes the other side lose its answer."""
HEAD_ENDS = b"\r\n\r\n"


class Joined:
    """A transport that sends the head of an answer with what follows it, not alone before it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send something; a head waits for the rest of the turn."""
        if self._transport.is_closing():
            return  # nobody is there any more, which the protocol is told a moment later
        if self._head:
            data, self._head = self._head + data, b""
        elif data.endswith(HEAD_ENDS):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            if not self._transport.is_closing():
                self._transport.write(head)

    def close(self) -> None:
        """Send what waits, and end."""
        self._flush()
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """One connection, as uvicorn has it, but for the above.

    Offers to go over to another protocol are ignored, as HTTP allows: some clients make them with
    every first request. The parser takes what follows such a head for the other protocol's, so
    that the body is read by another parser, which gets a head that says how long it is.
    """

    resumed = False
    """Is the head that the parser reads one that was read before?"""
    spare = SPARE
    """Bytes that may still come which are no body."""
    refused = False
    """Has it been answered that nothing more is read?"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there, and has to ask for something."""
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        self.since: float | None = self.loop.time()
        """When the request began that is not all there; None where there is none."""

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request, or of several."""
        if self.refused:
            return
        self._unset_keepalive_if_required()
        if self.since is None and (self.cycle is None or self.cycle.response_complete):
            self.since = self.loop.time()  # also where it is line ends, and no request comes
        self.spare -= len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._resume(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")
        if self.spare < 0 and not (self.refused or self.transport.is_closing()):
            self._end(TooLongError(f"The head of a request has at most {SPARE:,} bytes."))

    def _resume(self, rest: bytes) -> None:
        """Read the body of a request that offered another protocol."""
        framing = (b"content-length", b"transfer-encoding")
        head = [b"POST / HTTP/1.1", *(b"%s: %s" % one for one in self.headers if one[0] in framing)]
        if not self.cycle.keep_alive:
            head.append(b"connection: close")
        self.parser = httptools.HttpRequestParser(self)
        self.resumed = True
        self.parser.feed_data(b"\r\n".join(head) + HEAD_ENDS)
        if rest:
            self.data_received(rest)

    def on_message_begin(self) -> None:
        """A request begins."""
        if not self.resumed:
            self.since, self.spare = self.loop.time(), SPARE
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Whom it is for."""
        if not self.resumed:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of its head."""
        if not self.resumed:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is there."""
        if not self.resumed:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body is there."""
        self.spare += (1 + FRAMED) * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is all there, unless it offered another protocol: then the body is still to come."""
        if self.parser.should_upgrade():
            return
        self.resumed = False
        self.since = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; ``msg`` says no more than that."""
        del msg
        if self._owes:
            self.transport.close()
        else:
            self._refuse(MalformedError("This is no request in HTTP/1.1."))

    def end_if_slow(self) -> None:
        """Refuse a request that does not come to its end, and close the connection."""
        if self.since is not None and self.loop.time() - self.since >= SLOWEST:
            self._end(SlowError(f"A request has to be here within {SLOWEST:.0f} seconds."))

    def shutdown(self) -> None:
        """The service ends: what is not all there is for the next one, and is not waited for."""
        if self.since is None or self._owes:
            super().shutdown()
        else:
            self._end(UnavailableError("The service ends. Ask the next one."))

    def _end(self, error: ServiceError) -> None:
        """Refuse the rest of a request, and close the connection."""
        self.since = None
        silent = self.scope is None  # they never asked for anything
        if silent or self._owes or (self.cycle is not None and self.cycle.response_started):
            self.transport.close()
        else:
            self._refuse(error)

    @property
    def _owes(self) -> bool:
        """Does a request that is all there wait for its answer? No other can be given before."""
        cycle = self.cycle
        waits = cycle is not None and not (cycle.more_body or cycle.response_complete)
        return waits or bool(self.pipeline)

    def _refuse(self, error: ServiceError) -> None:
        """Answer without anybody having been asked, and close the connection."""
        response = answered(error)
        head = [b"HTTP/1.1 %d %s" % (error.status, error.title.encode())]
        head += [b"%s: %s" % pair for pair in (*response.raw_headers, (b"connection", b"close"))]
        self.transport.write(b"\r\n".join(head) + HEAD_ENDS + bytes(response.body))
        self.refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # whoever waits for the rest of it hears that
            self.cycle.message_event.set()
        self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)
