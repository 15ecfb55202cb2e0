"""The process that computes tables: it is asked, dies, is left alone, and is asked again."""

import asyncio
import errno
import gc
import os
import subprocess
from typing import Any

import msgspec
import numpy as np
import pytest

import groupwise as gw
from groupwise.serve import reader
from groupwise.serve.errors import InvalidError, UnavailableError
from groupwise.serve.reader import Reader
from tests.serve.running import asynchronous

REGRET = {"what": "regret", "largest": None, "event": 7}


def model() -> gw.Groupwise:
    found = gw.Groupwise([gw.by("sex")])
    for number in range(20):
        found.learn(found.predict({"sex": "male" if number % 3 else "female"}), number / 20)
    return found


@asynchronous
async def test_a_table_is_the_models_own():
    own, asked = model(), Reader()
    try:
        found = msgspec.json.decode(await asked.ask(own.contents(), REGRET))
        assert found["event"] == 7
        assert found["rows"] == msgspec.json.decode(
            msgspec.json.encode([dict(one) for one in own.regret().rows], enc_hook=np.generic.item)
        )
    finally:
        await asked.close()


@asynchronous
async def test_a_process_that_was_killed_is_started_again():
    contents = model().contents()
    asked: Any = Reader()
    try:
        first = msgspec.json.decode(await asked.ask(contents, REGRET))
        process = asked._process
        process.kill()
        again = msgspec.json.decode(await asked.ask(contents, REGRET))
        assert again["rows"] == first["rows"]
        assert asked._process is not process
        asked._process.kill()
        asked._process.poll = lambda: None  # as if it ended while it was asked
        assert msgspec.json.decode(await asked.ask(contents, REGRET))["rows"] == first["rows"]
    finally:
        await asked.close()


@asynchronous
async def test_who_gives_up_leaves_no_answer_to_the_next():
    contents, asked = model().contents(), Reader()
    try:
        waiting = asyncio.create_task(asked.ask(contents, REGRET))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        found = await asked.ask(contents, {**REGRET, "event": 8})
        assert msgspec.json.decode(found)["event"] == 8
    finally:
        await asked.close()


@asynchronous
async def test_a_process_that_cannot_start_is_no_table_for_now(monkeypatch):
    """Where there are too many open files: 503, and once there are fewer a table."""
    contents, asked = model().contents(), Reader()

    def full(*about, **options):
        raise OSError(errno.EMFILE, "Too many open files")

    try:
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", full)
            with pytest.raises(UnavailableError, match=r"cannot start.*Too many open files"):
                await asked.ask(contents, REGRET)
        assert await asked.ask(contents, REGRET)
    finally:
        await asked.close()


@asynchronous
async def test_who_gives_up_leaves_nothing_in_the_log(caplog):
    contents, asked = model().contents(), Reader()
    waiting = asyncio.create_task(asked.ask(contents, REGRET))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del waiting, asked
    gc.collect()
    assert not caplog.records  # "exception was never retrieved"


@asynchronous
async def test_what_the_model_refuses():
    contents, asked = model().contents(), Reader()
    try:
        for _ in range(2):
            with pytest.raises(InvalidError, match="no intervals"):
                await asked.ask(contents, {**REGRET, "what": "coverage"})
        assert await asked.ask(contents, REGRET)
    finally:
        await asked.close()


def test_what_is_sent_arrives_in_whatever_pieces(monkeypatch):
    """Calls that send some of it, and questions of more arrays than one call takes."""
    arrays: dict[str, Any] = {"byte": np.arange(1, dtype=np.uint8)}
    arrays |= {f"a{n}": np.arange(n, dtype=float).reshape(-1, 1) for n in range(40)}
    arrays["wide"] = np.arange(12.0).reshape(3, 4)[:, 1]
    pieces = reader.packed(({"settled": [[0, 3]]}, arrays), REGRET)
    sent = bytearray()

    class Sink:
        def fileno(self):
            return -1

        def flush(self):
            pass

    def writev(place, some):
        assert len(some) <= 7
        taken = b"".join(some)[:50]
        sent.extend(taken)
        return len(taken)

    monkeypatch.setattr(reader, "PIECES", 7)
    monkeypatch.setattr(os, "writev", writev)
    sink: Any = Sink()
    reader._send(sink, pieces)

    class Source:
        place = 0

        def readinto(self, view):
            some = sent[self.place : self.place + min(len(view), 33)]
            view[: len(some)] = some
            self.place += len(some)
            return len(some)

    source: Any = Source()
    (header, found), question = reader.received(source)
    assert question == REGRET
    assert header["settled"] == [[0, 3]]
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    assert all(array.flags.aligned for array in found.values())
    with pytest.raises(EOFError):  # there is nothing more
        reader.received(source)
