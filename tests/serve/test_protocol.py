"""What comes over a connection: no HTTP, half a request, nothing; and answers in one piece."""

import asyncio
import json
import time
from contextlib import suppress

import pytest

from groupwise.serve import protocol, run
from groupwise.serve.app import App, Json
from groupwise.serve.looks import Looks
from groupwise.serve.protocol import Joined
from groupwise.serve.run import Server, open_store
from groupwise.serve.service import Service
from tests.serve.running import PATH, SETTINGS, asynchronous, free_port

POST = f"POST {PATH}/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Serving:
    """A server on a port of this process."""

    def __init__(self, place: str) -> None:
        self.port = free_port()
        self.app = App(Service(open_store(place)), Looks(), lambda error: None)
        self.server = Server(self.app, "127.0.0.1", self.port)

    async def __aenter__(self) -> "Serving":
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.server.should_exit = True
        await self.task

    async def send(self, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(content)
        return reader, writer

    async def answer(self, content: bytes) -> bytes:
        """All that comes until the connection is closed."""
        reader, writer = await self.send(content)
        found = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return found


def _problem(answer: bytes, status: int, kind: str) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert first.split(" ", 2)[1] == str(status)
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"
    assert int(headers["content-length"]) == len(body)
    found = json.loads(body)
    assert (found["status"], found["type"]) == (status, f"urn:groupwise:problem:{kind}")


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "store.db")


@asynchronous
async def test_what_is_no_http_gets_a_problem_document(place):
    async with Serving(place) as serving:
        for content in (
            b"hello\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a browser that wants TLS
            b"GET / HTTP/9.9\r\n\r\n",
            POST.encode() + b"Content-Length: many\r\n\r\n{}",
            POST.encode() + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        ):
            _problem(await serving.answer(content), 400, "malformed")
        assert b" 200 " in (await serving.answer(b"GET /live HTTP/1.0\r\n\r\n"))[:20]


@asynchronous
async def test_requests_have_to_come_to_an_end(place, monkeypatch):
    monkeypatch.setattr(protocol, "SLOWEST", 0.6)
    monkeypatch.setattr(run, "LOOKS", 1)
    async with Serving(place) as serving:
        put = f"PUT {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SETTINGS)}\r\n"
        made = await serving.send(f"{put}\r\n{SETTINGS}".encode())
        assert b"201" in await asyncio.wait_for(made[0].readline(), 60)
        stream = await serving.send(
            f"GET {PATH}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        began = time.monotonic()
        silent, head, half, fed = await asyncio.gather(
            serving.answer(b""),
            serving.answer(POST.encode()),
            serving.answer(POST.encode() + b'Content-Length: 100\r\n\r\n{"row": '),
            _fed(serving),
        )
        assert time.monotonic() - began < 15
        assert silent == b""
        _problem(head, 408, "slow")
        _problem(half, 408, "slow")
        _problem(fed, 408, "slow")
        # Those who keep to it, and those who listen, are left alone.
        whole = b'{"row": {"sex": "male", "smoker": "no", "age": 30, "bmi": 24.5}}'
        content = POST.encode() + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(whole)
        assert b" 200 " in (await serving.answer(content + whole))[:20]
        await asyncio.sleep(0.8)
        assert not stream[0].at_eof()
        assert b"event: figures" in await stream[0].readuntil(b"event: figures")
        stream[1].close()


@asynchronous
async def test_line_ends_are_no_request(file, monkeypatch):
    monkeypatch.setattr(protocol, "SLOWEST", 0.6)
    monkeypatch.setattr(run, "LOOKS", 1)
    async with Serving(file) as serving:
        reader, writer = await serving.send(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        writer.write(b"\r\n")
        await asyncio.wait_for(reader.read(), 15)  # until it is closed
        writer.close()


@asynchronous
async def test_a_head_has_an_end(file):
    """Nobody has shown a token before it, and all of it is kept until then."""
    begin = POST.encode() + b"Content-Length: 2\r\n"
    async with Serving(file) as serving:
        for beginning in (begin, begin + b"X: "):
            reader, writer = await serving.send(beginning)
            await asyncio.sleep(0.05)  # what comes with its first byte is not counted
            for _ in range(5):
                writer.write(b"a" * 20_000 if beginning.endswith(b": ") else b"X: a\r\n" * 3_000)
                await asyncio.sleep(0.02)
            _problem(await asyncio.wait_for(reader.read(), 20), 413, "too-long")
            writer.close()
        # Nor do ends of chunks: what comes with them is kept too.
        reader, writer = await serving.send(POST.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(6):
            writer.write(b"1;" + b"a" * 20_000 + b"\r\n \r\n")
            await asyncio.sleep(0.02)
        _problem(await asyncio.wait_for(reader.read(), 20), 413, "too-long")
        writer.close()
        # A long body in the smallest of chunks is no head.
        reader, writer = await serving.send(POST.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            writer.write(b"1\r\n \r\n" * 3_000)
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert head.startswith(b"HTTP/1.1 400 ")
        writer.close()


@asynchronous
async def test_nobody_waits_at_the_end_for_half_a_request(file):
    half = POST.encode() + b'Content-Length: 100\r\n\r\n{"row": '
    async with Serving(file) as serving:
        asked = asyncio.create_task(serving.answer(half))
        await asyncio.sleep(0.2)
        began = time.monotonic()
    assert time.monotonic() - began < 15
    _problem(await asked, 503, "unavailable")


@asynchronous
async def test_who_goes_on_sending_gets_the_answer(file):
    """What is unread when a connection is closed would take it away."""
    async with Serving(file) as serving:
        for _ in range(20):
            reader, writer = await serving.send(b"hello\r\n\r\n" + b"a" * 300_000)
            await writer.drain()
            await asyncio.sleep(0.01)
            with suppress(ConnectionError):
                writer.write(b"a" * 300_000)
                await writer.drain()
            _problem(await asyncio.wait_for(reader.read(), 20), 400, "malformed")
            writer.close()


@pytest.mark.parametrize("next", [POST.encode(), b"hello\r\n\r\n"], ids=["half", "no HTTP"])
@asynchronous
async def test_no_request_gets_the_answer_to_the_next(file, monkeypatch, next):
    """One that has not come to its end is not refused before others are answered."""
    monkeypatch.setattr(protocol, "SLOWEST", 0.4)
    monkeypatch.setattr(run, "LOOKS", 1)
    async with Serving(file) as serving:
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def slow(request, token):
            begun.set()
            await goes_on.wait()
            return Json(b"{}")

        serving.app._quick["predict",] = serving.app._guarded(slow, "predict")
        whole = POST.encode() + b"Content-Length: 2\r\n\r\n{}"
        asked = asyncio.create_task(serving.answer(whole + next))
        assert await asked == b""
        assert begun.is_set()
        goes_on.set()


@pytest.mark.parametrize("pause", [0.0, 0.05])
@asynchronous
async def test_an_offer_of_another_protocol_is_ignored(file, pause):
    """As clients of Java make it, with every first request."""
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAA\r\n"
    whole = b'{"row": {"sex": "male", "smoker": "no", "age": 30, "bmi": 24.5}}'
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole)
    async with Serving(file) as serving:
        put = f"PUT {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SETTINGS)}\r\n"
        made = await serving.send(f"{put}\r\n{SETTINGS}".encode())
        assert b"201" in await asyncio.wait_for(made[0].readline(), 60)
        for lines, body in (
            (f"Content-Length: {len(whole)}\r\n", whole),
            ("Transfer-Encoding: chunked\r\n", chunks),
        ):
            reader, writer = await serving.send(f"{POST}{offer}{lines}\r\n".encode())
            await asyncio.sleep(pause)
            writer.write(body + f"{POST}Content-Length: {len(whole)}\r\n\r\n".encode() + whole)
            for _ in range(2):
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
                assert head.startswith(b"HTTP/1.1 200 ")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
                assert "prediction" in json.loads(await reader.readexactly(size))
            writer.close()


async def _fed(serving: Serving) -> bytes:
    """What somebody gets who sends a byte now and then."""
    reader, writer = await serving.send(POST.encode() + b"Content-Length: 100\r\n\r\n")
    answer = asyncio.create_task(reader.read())
    while not answer.done():
        writer.write(b" ")
        await asyncio.sleep(0.1)
    return await answer


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@asynchronous
async def test_a_head_leaves_with_what_follows_it():
    transport = Transport()
    joined = Joined(transport, asyncio.get_running_loop())
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    joined.write(b"body")
    joined.write(b"more")
    assert transport.sent == [b"HTTP/1.1 200 OK\r\n\r\nbody", b"more"]
    joined.write(b"alone\r\n\r\n")
    assert len(transport.sent) == 2
    await asyncio.sleep(0)
    assert transport.sent[2:] == [b"alone\r\n\r\n"]
    joined.write(b"last\r\n\r\n")
    joined.close()
    await asyncio.sleep(0)
    assert transport.sent[3:] == [b"last\r\n\r\n"]
    assert transport.closed
    for content in (b"nobody is there\r\n\r\n", b"any more"):
        joined.write(content)
    await asyncio.sleep(0)
    assert transport.sent[4:] == []
