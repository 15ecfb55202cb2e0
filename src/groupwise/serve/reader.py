"""Tables of regret, calibration and coverage, computed beside the service, which does not wait.

The best model in hindsight of a thousand groups takes a while. Another process gets a copy of the
model, as a snapshot is written, and sends the table back.
"""

import asyncio
import os
import struct
import sys
from contextlib import suppress
from typing import IO, Any

import msgspec

from groupwise import archive
from groupwise.errors import GroupwiseError
from groupwise.serve.errors import InvalidError, UnavailableError
from groupwise.serve.state import Contents

_SIZES = struct.Struct("<QQ")


class Reader:
    """The other process; it is started when it is first asked."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()

    async def ask(self, contents: Contents, question: dict[str, Any]) -> dict[str, Any]:
        """A table of a model as it was."""
        content = await asyncio.to_thread(archive.to_bytes, *contents)
        text = msgspec.json.encode(question)
        async with self._asking:
            for attempt in range(2):
                try:
                    return await self._sent(text, content)
                except (OSError, asyncio.IncompleteReadError) as error:
                    await self.close()
                    if attempt:
                        raise UnavailableError(
                            f"The process that computes tables ended: {error!r}."
                        ) from error
                except asyncio.CancelledError:
                    await self.close()  # its answer would be taken for that of the next
                    raise
        raise AssertionError

    async def _sent(self, text: bytes, content: bytes) -> dict[str, Any]:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "groupwise.serve.reader"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        sink.write(_SIZES.pack(len(text), len(content)) + text)
        sink.write(content)
        await sink.drain()
        length, _ = _SIZES.unpack(await source.readexactly(_SIZES.size))
        found: dict[str, Any] = msgspec.json.decode(await source.readexactly(length))
        if "error" in found:
            raise InvalidError(found["error"])
        return found

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def table(content: bytes, question: dict[str, Any]) -> dict[str, Any]:
    """The table that was asked for."""
    from groupwise.snapshot import restored

    header, arrays = archive.from_bytes(content, "a copy of the model")
    model = restored("a copy of the model", header, arrays)
    largest = question.get("largest")
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
    sizes = source.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return False
    long, much = _SIZES.unpack(sizes)
    question, content = msgspec.json.decode(source.read(long)), source.read(much)
    try:
        found = table(content, question)
    except GroupwiseError as error:
        found = {"error": str(error)}
    text = msgspec.json.encode(found, enc_hook=_plain)
    sink.write(_SIZES.pack(len(text), 0) + text)
    sink.flush()
    return True


if __name__ == "__main__":
    with suppress(OSError, AttributeError):
        os.nice(19)  # predictions come first
    with suppress(BrokenPipeError, KeyboardInterrupt):
        while answer(sys.stdin.buffer, sys.stdout.buffer):
            pass
