"""Tables of regret, calibration and coverage, computed beside the service, which does not wait.

The best model in hindsight of a thousand groups takes a while. Another process gets a copy of the
model and sends the table back, as the text that is answered: whatever the service itself did with
it, requests would wait for.
"""

import asyncio
import json
import os
import struct
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, Any

import msgspec
import numpy as np

from groupwise.archive import SCHEMA, Arrays
from groupwise.errors import GroupwiseError
from groupwise.serve.errors import InvalidError, UnavailableError
from groupwise.serve.state import Contents

_SIZES = struct.Struct("<QQ")
PIECES = 512
"""So many are sent in one call; some systems take no more than 1,024."""


class Reader:
    """The other process; it is started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = asyncio.Lock()
        self._asked: asyncio.Future[bytes] | None = None
        """What the thread that waits for the process is going to find."""

    async def ask(self, contents: Contents, question: dict[str, Any]) -> bytes:
        """A table of a model as it was, in JSON."""
        async with self._asking:
            for attempt in range(2):
                try:
                    asked = asyncio.to_thread(_asked, self._started(), contents, question)
                    self._asked = asyncio.ensure_future(asked)
                    return await asyncio.shield(self._asked)
                except (OSError, EOFError) as error:
                    await self.close()
                    if attempt:
                        raise UnavailableError(
                            f"The process that computes tables ended, or cannot start: {error!r}."
                        ) from error
                except asyncio.CancelledError:
                    await self.close()  # its answer would be taken for that of the next
                    raise
        raise AssertionError

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "groupwise.serve.reader"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe)
        return self._process

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            if self._asked is not None:
                # Nobody reads what is closed, and what comes of it is known.
                await asyncio.gather(self._asked, return_exceptions=True)
            await asyncio.to_thread(process.communicate)


def _asked(
    process: "subprocess.Popen[bytes]", contents: Contents, question: dict[str, Any]
) -> bytes:
    """Ask the other process, and wait for it; in a thread, which hardly needs the interpreter."""
    source, sink = process.stdout, process.stdin
    assert source is not None
    assert sink is not None
    _send(sink, packed(contents, question))
    length, failed = _SIZES.unpack(_read(source, _SIZES.size))
    found = bytes(_read(source, length))
    if failed:
        raise InvalidError(found.decode())
    return found


def packed(contents: Contents, question: dict[str, Any]) -> list[Any]:
    """A question about a model, in pieces that are sent one after the other: arrays as they are."""
    header, arrays = contents
    kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    kinds = {name: (array.dtype.str, array.shape) for name, array in kept.items()}
    whole = {"schema": SCHEMA, **header}
    text = json.dumps([question, whole, kinds]).encode()  # it may hold numbers that msgspec drops
    size = sum(array.nbytes for array in kept.values())
    pieces = (array.reshape(-1).view(np.uint8) for array in kept.values() if array.size)
    return [_SIZES.pack(len(text), size) + text, *pieces]


def received(source: IO[bytes]) -> tuple[Contents, dict[str, Any]]:
    """What was packed, from where it was sent to."""
    long, much = _SIZES.unpack(_read(source, _SIZES.size))
    question, header, kinds = json.loads(_read(source, long))
    content = _read(source, much)
    arrays: Arrays = {}
    first = 0
    for name, (kind, shape) in kinds.items():
        count = int(np.prod(shape, dtype=np.int64))
        # A copy of its own begins where the machine wants numbers to begin.
        arrays[name] = np.frombuffer(content, kind, count, first).reshape(shape).copy()
        first += arrays[name].nbytes
    return (header, arrays), question


def _send(sink: IO[bytes], pieces: list[Any]) -> None:
    """Send all pieces: together where the system can, for the interpreter is needed for each."""
    left = [memoryview(piece) for piece in pieces]
    while left:
        if sys.platform == "win32":
            sent = sink.write(left[0])
        else:
            sent = os.writev(sink.fileno(), left[:PIECES])
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if sent:
            left[0] = left[0][sent:]
    sink.flush()


def _read(source: Any, size: int) -> bytearray:
    """So many bytes; an error where they end before."""
    found = bytearray(size)
    view, first = memoryview(found), 0
    while first < size:
        count = source.readinto(view[first:])
        if not count:
            raise EOFError("it said no more")
        first += count
    return found


def answered(contents: Contents, question: dict[str, Any]) -> bytes:
    """The table that was asked for, in JSON: with the event that it is of, and when it was made."""
    found = table(contents, question)
    about = {"event": question["event"], "at": time.time()}
    return msgspec.json.encode({**found, **about}, enc_hook=_plain)


def table(contents: Contents, question: dict[str, Any]) -> dict[str, Any]:
    """The table that was asked for."""
    from groupwise.snapshot import restored

    model = restored("a copy of the model", *contents)
    largest = question["largest"]
    if question["what"] == "regret":
        known = model.regret(largest)
        return {
            "comparator": known.comparator,
            "settled": known.settled,
            "unit": model.loss.unit,
            "units": known.units,
            "rows": [dict(row) for row in known.rows],
        }
    if question["what"] == "coverage":
        covered = model.coverage(largest)
        rows = [dict(row) for row in covered.rows]
        return {"wanted": covered.wanted, "settled": covered.settled, "rows": rows}
    classes = model.loss.classes
    every = [None] if classes is None or len(classes) == 2 else classes
    tables = {str(of): [dict(row) for row in model.calibration(largest, of).rows] for of in every}
    return {"classes": None if classes is None else [*classes], "tables": tables}


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def answer(source: IO[bytes], sink: IO[bytes]) -> bool:
    """Answer one question; False where there is none any more."""
    try:
        asked = received(source)
    except EOFError:
        return False
    try:
        failed, text = False, answered(*asked)
    except GroupwiseError as error:
        failed, text = True, str(error).encode()
    _send(sink, [_SIZES.pack(len(text), failed) + text])
    return True


if __name__ == "__main__":
    with suppress(OSError, AttributeError):  # predictions come first, at once where that can be had
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(BrokenPipeError, KeyboardInterrupt):
        while answer(sys.stdin.buffer, sys.stdout.buffer):
            pass
