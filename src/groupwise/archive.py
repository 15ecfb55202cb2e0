"""State to one file and back: a zip archive of NumPy arrays (no pickle) and one JSON page.

The archive is stored, not compressed; every member carries a checksum. A crash while writing leaves
the old file. Reading runs no code from it.
"""

import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from groupwise.errors import SnapshotError
from groupwise.writing import replaced

SCHEMA = 5
FORMAT = "groupwise snapshot"
ADVICE = "Give the model.gw of a groupwise run, or a file written by model.save."
HEADER = "groupwise.json"
MODEL = "model.gw"
"""What a run calls its snapshot."""
EPOCH = (1980, 1, 1, 0, 0, 0)
MAGIC = b"PK"
LONGEST = 300

Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a snapshot; the file at ``path`` is the old one or the whole new one at any moment."""
    with replaced(Path(path), SnapshotError) as part, part.open("wb") as file:
        _write(file, header, arrays)


def to_bytes(header: dict[str, Any], arrays: Arrays) -> bytes:
    """What ``write`` writes."""
    file = io.BytesIO()
    _write(file, header, arrays)
    return file.getvalue()


def _write(file: IO[bytes], header: dict[str, Any], arrays: Arrays) -> None:
    page = {"format": FORMAT, "schema": SCHEMA, "arrays": sorted(arrays), **header}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(page))
        for key in sorted(arrays):
            with archive.open(_member(key), "w", force_zip64=True) as member:
                npy.write_array(member, np.ascontiguousarray(arrays[key]), None, False)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The JSON page and the arrays of a snapshot; they take no more memory than the file."""
    if Path(path).is_dir():
        inside = Path(path, MODEL)
        advice = f"Give the model in it: {inside}" if inside.is_file() else ADVICE
        raise SnapshotError(f"{path} is a folder. {advice}")
    try:
        with Path(path).open("rb") as file:
            data = file.read(len(MAGIC))
            if data == MAGIC:
                data += file.read()
    except OSError as error:
        raise SnapshotError(f"Cannot read {path}: {error.strerror or error}.") from None
    return from_bytes(data, path)


def from_bytes(data: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The same of a file's content; ``path`` is for messages."""
    if not data.startswith(MAGIC):
        kind = "not a groupwise snapshot" if data else "empty"
        raise SnapshotError(f"{path} is {kind}. {ADVICE}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if HEADER not in archive.namelist():
                raise SnapshotError(
                    f"{path} is a zip archive, but not a groupwise snapshot. {ADVICE}"
                )
            if any(info.compress_type != zipfile.ZIP_STORED for info in members):
                raise ValueError("a member is compressed")
            if sum(info.file_size for info in members) > len(data):
                raise ValueError("its members are larger than the file")
            if len({info.filename for info in members}) < len(members):
                raise ValueError("two members have the same name")
            header = _header(archive.read(HEADER), path)
            arrays = {key: _array(archive.read(f"{key}.npy")) for key in header["arrays"]}
    except SnapshotError:
        raise
    except zipfile.BadZipFile as error:
        raise SnapshotError(
            f"{path} is truncated or damaged ({error}). Restore it from a copy."
        ) from error
    except Exception as error:  # whatever a file can be made to hold
        raise SnapshotError(
            f"{path} is damaged ({shortened(error)}). Restore it from a copy."
        ) from error
    return header, arrays


def _header(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise SnapshotError(f"{path} is not a groupwise snapshot.")
    schema = header["schema"]
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("there is no such schema")
    if schema > SCHEMA:
        raise SnapshotError(
            f"{path} was written by a newer groupwise (schema {schema}; this one reads up to "
            f"{SCHEMA}). Upgrade groupwise to read it."
        )
    return header


def _array(data: bytes) -> NDArray[Any]:
    """The array of a member, which says its shape and kind: they must be those of its data."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array is written in version {version}")
    shape, by_column, kind = npy.read_array_header_1_0(file)
    if kind.kind not in "fiu" or math.prod(shape) * kind.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of {kind} has not the shape {shape}")
    array = np.frombuffer(data, kind, offset=file.tell())
    return array.reshape(shape, order="F" if by_column else "C").copy()


def shortened(error: Exception) -> str:
    """An error in a message; what it quotes from a file can be long."""
    text = repr(error)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _member(key: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(f"{key}.npy", EPOCH)
