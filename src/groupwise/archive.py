"""State to one file and back: a zip archive of NumPy arrays (no pickle) and one JSON page.

The archive is stored, not compressed; every member carries a checksum. A crash while writing leaves
the old file. Reading runs no code from it.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from groupwise.errors import SnapshotError
from groupwise.writing import replaced

SCHEMA = 4
FORMAT = "groupwise snapshot"
HEADER = "groupwise.json"
EPOCH = (1980, 1, 1, 0, 0, 0)

Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a snapshot; the file at ``path`` is the old one or the whole new one at any moment."""
    page = {"format": FORMAT, "schema": SCHEMA, "arrays": sorted(arrays), **header}
    with (
        replaced(Path(path), SnapshotError) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(page))
        for key in sorted(arrays):
            with archive.open(_member(key), "w", force_zip64=True) as member:
                npy.write_array(member, np.ascontiguousarray(arrays[key]), None, False)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The JSON page and the arrays of a snapshot."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"Cannot read {path}: {error.strerror or error}.") from None
    if not data.startswith(b"PK"):
        kind = "empty" if not data else "not a groupwise snapshot"
        raise SnapshotError(f"{path} is {kind}. Give a file written by model.save(path).")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            header = _header(archive, path)
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise SnapshotError(f"{path} is damaged: a member is compressed.")
            arrays = {
                key: npy.read_array(io.BytesIO(archive.read(f"{key}.npy")), allow_pickle=False)
                for key in header["arrays"]
            }
    except zipfile.BadZipFile as error:
        raise SnapshotError(
            f"{path} is truncated or damaged ({error}). Restore it from a copy."
        ) from None
    except (KeyError, ValueError, EOFError, OSError, TypeError, NotImplementedError) as error:
        raise SnapshotError(f"{path} is damaged ({error}). Restore it from a copy.") from None
    return header, arrays


def _header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise SnapshotError(
            f"{path} is a zip archive, but not a groupwise snapshot. "
            "Give a file written by model.save(path)."
        )
    header = json.loads(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise SnapshotError(f"{path} is not a groupwise snapshot.")
    schema = header["schema"]
    if not isinstance(schema, int) or schema > SCHEMA:
        raise SnapshotError(
            f"{path} was written by a newer groupwise (schema {schema}; this one reads up to "
            f"{SCHEMA}). Upgrade groupwise to read it."
        )
    return header


def _member(key: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(f"{key}.npy", EPOCH)
