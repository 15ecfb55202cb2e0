"""What a file is, by its first bytes: how it is packed, and of which format, read or not."""

import bz2
import gzip
import lzma
import shutil
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from groupwise.archive import HEADER
from groupwise.errors import DataError
from groupwise.files.text import listed, shown

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
PACKED = {
    GZIP: "gzip",
    ZIP: "zip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"BZh": "bz2",
}
UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
PARQUET, ARROW, STREAM, FEATHER = "Parquet", "Arrow", "Arrow stream", "Feather"
EXCEL, SQLITE, CSV, LINES, ARRAY = "Excel", "SQLite", "CSV", "JSON Lines", "JSON"
BINARY = {
    b"PAR1": PARQUET,
    b"ARROW1": ARROW,
    b"\xff\xff\xff\xff": STREAM,
    b"FEA1": FEATHER,
    b"SQLite format 3\x00": SQLITE,
    b"\xd0\xcf\x11\xe0": EXCEL,
}
"""Formats that are no text."""
OTHERS = {
    b"ORC": "ORC",
    b"PARE": "encrypted Parquet",
    b"Obj\x01": "Avro",
    b"\x89HDF": "HDF5",
    b"CDF": "NetCDF",
    b"\x93NUMPY": "an array of numpy",
    b"\x80\x02": "a pickle of Python",
    b"\x80\x03": "a pickle of Python",
    b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
    b"RDX": "a file of R (RData)",
    b"RDA": "a file of R (RData)",
    b"X\n\x00": "a file of R (RDS)",
    b"<stata_dta>": "Stata",
    b"$FL2": "SPSS",
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc2\xea\x81": "SAS",
    b"%PDF": "PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "RAR",
    b"{\\rtf": "RTF",
    b"DUCK": "DuckDB",
}
"""What is known, and not read."""
MARKUP = {b"<!doctype": "a web page", b"<html": "a web page", b"<?xml": "XML", b"<": "XML"}
OURS = "CSV, Parquet, Arrow (Feather), Excel, SQLite, JSON Lines or a JSON array"
START = 64
UNPACKING = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
"""What a packed file can do when it is read."""


def packing_of(path: Path) -> str | None:
    """How a file is packed; None where it is not. Workbooks are zip files of their own kind."""
    with path.open("rb") as file:
        start = file.read(START)
    found = next((name for magic, name in PACKED.items() if start.startswith(magic)), None)
    return None if found == "zip" and is_workbook(path) else found


def is_workbook(path: Path) -> bool:
    """Is a zip file one of a spreadsheet program?"""
    with suppress(*UNPACKING), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "xl/workbook.xml" in names or "xl/workbook.bin" in names:
            return True
        kind = archive.read("mimetype") if "mimetype" in names else b""
        return kind.startswith(b"application/vnd.oasis.opendocument.spreadsheet")
    return False


def unpack(name: str, path: Path, packing: str, place: Path) -> str:
    """Write what is in a packed file to a place; gives the name that it has there."""
    try:
        if packing == "zip":
            with zipfile.ZipFile(path) as archive:
                member = _only(name, archive)
                with archive.open(member) as inside, place.open("wb") as file:
                    shutil.copyfileobj(inside, file)
                return member
        with unpacked(path, packing) as inside, place.open("wb") as file:
            shutil.copyfileobj(inside, file)
    except (*UNPACKING, NotImplementedError) as error:
        raise _cannot(name, error) from None
    return name.rpartition(".")[0] or name


def _cannot(name: str, error: Exception) -> DataError:
    if "password" in str(error):
        return DataError(f"{shown(name)} is locked by a password. Unpack it first.")
    return DataError(f"Cannot unpack {shown(name)}: {shown(str(error) or 'it is damaged')}.")


def unpacked(path: Path, packing: str) -> Any:
    """The bytes that are in a packed file."""
    if packing == "zst":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
    openers: dict[str, Any] = {"gzip": gzip.open, "xz": lzma.open, "bz2": bz2.open}
    return openers[packing](path)


def _only(name: str, archive: zipfile.ZipFile) -> str:
    """The one file in a zip file."""
    every = [one.filename for one in archive.infolist() if not one.is_dir()]
    hidden = "__MACOSX/", "."
    files = [one for one in every if not one.startswith(hidden)]
    if HEADER in files:
        raise DataError(
            f"{shown(name)} is a groupwise snapshot, not a file of rows. Where both are asked for, "
            "the model comes before the rows."
        )
    if len(files) != 1:
        what = f"{len(files)} files: {listed(files, 5)}" if files else "no file"
        raise DataError(f"{shown(name)} holds {what}. Give a zip file with one file of rows.")
    return files[0]


def format_of(name: str, path: Path, sniffed: bool) -> tuple[str, bool]:
    """The format of a file, and whether it is packed with gzip; ``sniffed`` whatever its name is.

    Text is CSV, unless its name or what it begins with say that it is JSON.
    """
    start = _start(path)
    packed = start.startswith(GZIP)
    if packed:
        try:
            with gzip.open(path) as file:
                start = file.read(START)
        except UNPACKING as error:
            raise _cannot(name, error) from None
    known = next((kind for magic, kind in BINARY.items() if start.startswith(magic)), None)
    if start.startswith(ZIP):
        known = EXCEL
    if known is not None:
        return known, packed
    _refuse(name, path, start)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    bare = name.lower().removesuffix(".gz")
    objects = bare.endswith((".jsonl", ".ndjson", ".json"))
    if text.startswith(b"[") and (objects or sniffed):
        return ARRAY if _is_array(text) else LINES, packed
    return LINES if objects or (sniffed and text.startswith(b"{")) else CSV, packed


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(START)


def _is_array(text: bytes) -> bool:
    """Does it begin like an array of objects, and not like a line that holds an array?"""
    return text[1:].lstrip()[:1] in (b"{", b"]", b"")


def _refuse(name: str, path: Path, start: bytes) -> None:
    """Say what a file is, where that is known and it is none to read."""
    what = next((kind for magic, kind in OTHERS.items() if start.startswith(magic)), None)
    lowered = start.lstrip().lower()
    what = what or next((kind for sign, kind in MARKUP.items() if lowered.startswith(sign)), None)
    if what is None and path.stat().st_size > 262:
        with path.open("rb") as file:
            file.seek(257)
            what = "a tar archive" if file.read(5) == b"ustar" else None
    if what is None and start[8:12] == b"DUCK":
        what = "DuckDB"
    if what is not None:
        raise DataError(f"{shown(name)} is {what}, which is not read. Save it as {OURS}.")


def encoding_of(path: Path, packed: bool = False) -> str | None:
    """The encoding of text of two bytes a character, as spreadsheets save it; None for others."""
    start = _start(path)
    if packed:
        with gzip.open(path) as file:
            start = file.read(START)
    if start.startswith(b"\xff\xfe\x00\x00"):
        return "utf-32"
    for place, kind in enumerate(UTF_16.values()):  # letters of Latin, without a mark
        letters, zeros = start[place::2], start[1 - place :: 2]
        if (
            len(start) > 3
            and not any(zeros)
            and all(one >= 32 or one in b"\t\r\n" for one in letters)
        ):
            return kind
    return next((kind for mark, kind in UTF_16.items() if start.startswith(mark)), None)


def recode(name: str, path: Path, encoding: str, place: Path) -> None:
    """Write text as UTF-8 to a place."""
    try:
        with (
            path.open(encoding=encoding, newline="") as text,
            place.open("w", encoding="utf-8", newline="") as file,
        ):
            shutil.copyfileobj(text, file)
    except UnicodeError as error:
        raise DataError(f"{shown(name)} is no {encoding} text: {error}.") from None
