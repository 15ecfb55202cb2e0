"""A zoo of files: the same few rows with every oddity, in every format, packed and damaged.

``ANIMALS`` has them by name. Each is a file name, how its bytes are made, the options of the run,
and what a refusal says; None where the run must go well.
"""

import bz2
import datetime
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

ROWS = 48


class Animal(NamedTuple):
    """A file, and what must come of it."""

    name: str
    made: Callable[[], bytes]
    options: Sequence[str] = ()
    refusal: str | None = None


def plain(rows: int = ROWS) -> pd.DataFrame:
    """Rows of sex, city, age, pay."""
    generator = np.random.default_rng(7)
    city = generator.integers(0, 3, rows)
    age = generator.integers(18, 65, rows)
    return pd.DataFrame(
        {
            "sex": np.where(generator.random(rows) < 0.5, "f", "m"),
            "city": np.array(["north", "south", "west"])[city],
            "age": age,
            "pay": np.round(10.0 + (city - 1) * age + generator.normal(size=rows), 3),
        }
    )


def _with(**columns: Any) -> Callable[[], pd.DataFrame]:
    """The plain rows with other columns, or others instead; None drops one."""

    def made() -> pd.DataFrame:
        frame = plain()
        for name, given in columns.items():
            value = given(frame) if callable(given) else given
            frame[name] = value
        return frame

    return made


def _every(step: int, value: Any, of: str) -> Callable[[pd.DataFrame], Any]:
    """A column with a value, or nothing, in every so many rows."""

    def made(frame: pd.DataFrame) -> Any:
        column = frame[of].astype(object)
        column[::step] = value
        return column

    return made


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=9 * i) for i in range(ROWS)]
KINDS: dict[str, Callable[[], pd.DataFrame]] = {
    "plain": plain,
    "booleans": _with(member=[i % 3 == 0 for i in range(ROWS)]),
    "booleans, some missing": _with(member=[(True, False, None)[i % 3] for i in range(ROWS)]),
    "numbers missing": _with(age=_every(5, None, "age")),
    "text missing": _with(city=_every(5, None, "city")),
    "labels missing": _with(pay=_every(6, None, "pay")),
    "first label missing": _with(pay=_every(99, None, "pay")),
    "a column of nothing": _with(empty=[None] * ROWS),
    "a constant": _with(country="here"),
    "a constant number": _with(year=2024),
    "an id": _with(customer_id=range(5_000, 5_000 + ROWS)),
    "an id of text": _with(uuid=[f"{i:08x}-zz" for i in range(ROWS)]),
    "a row number": lambda: pd.concat([pd.Series(range(ROWS), name="Unnamed: 0"), plain()], axis=1),
    "days": _with(day=[one.isoformat() for one in DAYS]),
    "days of the week only": _with(day=[f"{one:%A}" for one in DAYS]),
    "moments": _with(at=[f"{one}T{i % 24:02}:30:00" for i, one in enumerate(DAYS)]),
    "days as in Germany": _with(day=[f"{one:%d.%m.%Y}" for one in DAYS]),
    "days missing": _with(
        day=[None if i % 7 == 0 else one.isoformat() for i, one in enumerate(DAYS)]
    ),
    "very many texts": _with(job=[f"job {i % 40}" for i in range(ROWS)]),
    "yes and no": _with(pay=lambda frame: np.where(frame["pay"] > 10, "yes", "no")),
    "true and false": _with(pay=lambda frame: frame["pay"] > 10),
    "0 and 1": _with(pay=lambda frame: (frame["pay"] > 10).astype(int)),
    "three classes": _with(pay=lambda frame: frame["city"].str[:1], city="x"),
    "the label twice": _with(copy=lambda frame: frame["pay"]),
    "parts of the label": _with(
        part=lambda frame: frame["pay"] / 4, rest=lambda frame: frame["pay"] - frame["pay"] / 4
    ),
    "two columns alike": _with(gender=lambda frame: frame["sex"].map({"f": 1, "m": 2})),
    "long whole numbers": _with(code=[2**60 + i % 5 for i in range(ROWS)]),
    "tiny and huge numbers": _with(x=[10.0 ** (i % 60 - 30) for i in range(ROWS)]),
    "names with signs": lambda: plain().rename(
        columns={"age": "Alter, «Jahre»\n=1+1", "sex": " s "}
    ),
    "text with signs": _with(city=lambda frame: frame["city"] + ' "ä", \n=x'),
}


def csv(frame: pd.DataFrame, **options: Any) -> bytes:
    return frame.to_csv(index=False, **options).encode()


def parquet(frame: pd.DataFrame, **options: Any) -> bytes:
    found = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), found, **options)
    return found.getvalue()


def excel(frame: pd.DataFrame, **options: Any) -> bytes:
    found = io.BytesIO()
    frame.to_excel(found, index=False, **options)
    return found.getvalue()


def sqlite(frame: pd.DataFrame, *tables: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.db"
        base = sqlite3.connect(path)
        for table in tables or ("rows",):
            frame.to_sql(table, base, index=False)
        base.commit()
        base.close()
        return path.read_bytes()


def arrow(frame: pd.DataFrame, streamed: bool = False) -> bytes:
    table, found = pa.Table.from_pandas(frame, preserve_index=False), io.BytesIO()
    with (pa.ipc.new_stream if streamed else pa.ipc.new_file)(found, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    return found.getvalue()


def feather(frame: pd.DataFrame, **options: Any) -> bytes:
    found = io.BytesIO()
    pyarrow.feather.write_feather(
        pa.Table.from_pandas(frame, preserve_index=False), found, **options
    )
    return found.getvalue()


def objects(frame: pd.DataFrame, lines: bool = True) -> bytes:
    rows = json.loads(frame.to_json(orient="records"))
    if not lines:
        return json.dumps(rows, indent=1).encode()
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def zipped(content: bytes, *names: str, folder: str = "") -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("rows.csv",):
            archive.writestr(f"{folder}{name}", content)
    return found.getvalue()


def zstd(content: bytes) -> bytes:
    found = pa.BufferOutputStream()
    with pa.CompressedOutputStream(found, "zstd") as stream:
        stream.write(content)
    return found.getvalue().to_pybytes()


FORMATS: dict[str, tuple[str, Callable[..., bytes]]] = {
    "CSV": ("rows.csv", csv),
    "Parquet": ("rows.parquet", parquet),
    "Excel": ("rows.xlsx", excel),
    "SQLite": ("rows.sqlite", sqlite),
    "JSON Lines": ("rows.jsonl", objects),
}
NOT_IN = {("names with signs", "Excel"), ("names with signs", "SQLite")}
"""What cannot be written so, by these programs."""


def _written(write: Callable[..., bytes], kind: str) -> bytes:
    return write(KINDS[kind]())


def _kinds() -> dict[str, Animal]:
    return {
        f"{kind}, {form}": Animal(name, partial(_written, write, kind))
        for form, (name, write) in FORMATS.items()
        for kind in KINDS
        if (kind, form) not in NOT_IN
    }


def _text(**options: Any) -> Callable[[], bytes]:
    return lambda: csv(plain(), **options)


def _broken(**changes: Any) -> bytes:
    """The plain rows as CSV, some lines of which are others."""
    lines = csv(plain()).decode().splitlines()
    for number, line in changes.items():
        lines[int(number[1:])] = line
    return "\n".join(lines).encode()


PACKED: dict[str, Animal] = {
    "gzip": Animal("rows.csv.gz", lambda: gzip.compress(csv(plain()))),
    "xz": Animal("rows.csv.xz", lambda: lzma.compress(csv(plain()))),
    "bz2": Animal("rows.csv.bz2", lambda: bz2.compress(csv(plain()))),
    "zst": Animal("rows.csv.zst", lambda: zstd(csv(plain()))),
    "zip": Animal("rows.zip", lambda: zipped(csv(plain()))),
    "zip with a folder": Animal("rows.zip", lambda: zipped(csv(plain()), folder="data/")),
    "zip of Parquet": Animal("rows.zip", lambda: zipped(parquet(plain()), "rows.parquet")),
    "zip of JSON": Animal("rows.zip", lambda: zipped(objects(plain(), False), "rows.json")),
    "zip of Excel": Animal("rows.zip", lambda: zipped(excel(plain()), "rows.xlsx")),
    "gzip of Parquet": Animal("rows.parquet.gz", lambda: gzip.compress(parquet(plain()))),
    "gzip of JSON Lines": Animal("rows.jsonl.gz", lambda: gzip.compress(objects(plain()))),
    "gzip of a JSON array": Animal("a.json.gz", lambda: gzip.compress(objects(plain(), False))),
    "xz of JSON Lines": Animal("rows.jsonl.xz", lambda: lzma.compress(objects(plain()))),
    "xz of SQLite": Animal("rows.sqlite.xz", lambda: lzma.compress(sqlite(plain()))),
    "zst of Arrow": Animal("rows.arrow.zst", lambda: zstd(arrow(plain()))),
    "gzip that says nothing": Animal("rows", lambda: gzip.compress(csv(plain()))),
}
WRITTEN: dict[str, Animal] = {
    "tabs": Animal("rows.tsv", _text(sep="\t")),
    "semicolons": Animal("rows.csv", _text(sep=";")),
    "bars": Animal("rows.txt", _text(sep="|")),
    "decimal commas": Animal("rows.csv", _text(sep=";", decimal=",")),
    "decimal commas and tabs": Animal("rows.tsv", _text(sep="\t", decimal=",")),
    "lines as in Windows": Animal("rows.csv", _text(lineterminator="\r\n")),
    "all quoted": Animal("rows.csv", _text(quoting=1)),
    "a byte-order mark": Animal("rows.csv", lambda: b"\xef\xbb\xbf" + csv(plain())),
    "UTF-16": Animal("rows.csv", lambda: csv(plain()).decode().encode("utf-16")),
    "UTF-16 the other way": Animal(
        "rows.txt", lambda: b"\xfe\xff" + csv(plain(), sep="\t").decode().encode("utf-16-be")
    ),
    "blank lines before and after": Animal("r.csv", lambda: b"\n\n" + csv(plain()) + b"\n\n\n"),
    "no name for a column": Animal("r.csv", lambda: csv(plain()).replace(b"city", b"", 1)),
    "an index of pandas": Animal("r.csv", lambda: plain().to_csv().encode()),
    "booleans of R": Animal(
        "r.csv", lambda: csv(KINDS["booleans"]()).replace(b"True", b"TRUE").replace(b"False", b"NA")
    ),
    "NA for numbers": Animal("r.csv", lambda: csv(KINDS["numbers missing"](), na_rep="NA")),
    "a capital ending": Animal("ROWS.CSV", _text()),
    "no ending": Animal("rows", _text()),
    "Parquet, zstd": Animal("rows.parquet", lambda: parquet(plain(), compression="zstd")),
    "Parquet in groups of rows": Animal("r.pq", lambda: parquet(plain(), row_group_size=7)),
    "Parquet called CSV": Animal("rows.csv", lambda: parquet(plain())),
    "Arrow": Animal("rows.arrow", lambda: arrow(plain())),
    "an Arrow stream": Animal("rows.arrows", lambda: arrow(plain(), True)),
    "Feather": Animal("rows.feather", lambda: feather(plain())),
    "Feather, not packed": Animal(
        "r.feather", lambda: feather(plain(), compression="uncompressed")
    ),
    "Feather of old": Animal("rows.feather", lambda: feather(plain(), version=1)),
    "a JSON array": Animal("rows.json", lambda: objects(plain(), False)),
    "a JSON array on one line": Animal(
        "rows.json", lambda: json.dumps(json.loads(objects(plain(), False))).encode()
    ),
    "a sheet of two": Animal("r.xlsx", lambda: _sheets("one", "two"), ("--table", "two")),
    "a table of two": Animal("r.db", lambda: sqlite(plain(), "a", "b"), ("--table", "b")),
    "missing is an error": Animal(
        "r.csv",
        lambda: csv(KINDS["numbers missing"]()),
        ("--missing", "error"),
        "'age' has 10 missing values",
    ),
    "missing is dropped": Animal(
        "r.csv", lambda: csv(KINDS["numbers missing"]()), ("--missing", "drop")
    ),
    "a bad number skipped": Animal("r.csv", lambda: _broken(_9="f,west,old,12"), ("--skip-bad",)),
    "a bad label skipped": Animal("r.csv", lambda: _broken(_9="f,west,30,much"), ("--skip-bad",)),
    "a ragged row skipped": Animal("r.csv", lambda: _broken(_9="f,west"), ("--skip-bad",)),
    "a line that is no JSON skipped": Animal(
        "r.jsonl", lambda: objects(plain()) + b"\n{oh\n", ("--skip-bad",)
    ),
    "many columns": Animal(
        "r.csv",
        lambda: csv(
            pd.concat(
                [
                    plain(),
                    pd.DataFrame(np.random.default_rng(1).random((ROWS, 700))).add_prefix("c"),
                ],
                axis=1,
            )
        ),
    ),
}


def _sheets(*names: str) -> bytes:
    found = io.BytesIO()
    with pd.ExcelWriter(found) as writer:
        for name in names:
            plain().to_excel(writer, sheet_name=name, index=False)
    return found.getvalue()


def _refused(name: str, content: bytes | Callable[[], bytes], why: str, *options: str) -> Animal:
    made = content if callable(content) else lambda: content
    return Animal(name, made, options, why)


BAD: dict[str, Animal] = {
    "empty": _refused("r.csv", b"", "is empty"),
    "blank": _refused("r.csv", b"\n \n", "is empty"),
    "an empty gzip file": _refused("r.csv.gz", gzip.compress(b""), "is empty"),
    "an empty zip file": _refused("r.zip", lambda: zipped(b"", "a.csv"), "is empty"),
    "a header only": _refused("r.csv", b"a,b,pay\n", "no rows"),
    "Parquet without rows": _refused("r.parquet", lambda: parquet(plain()[:0]), "no rows"),
    "Excel without rows": _refused("r.xlsx", lambda: excel(plain()[:0]), "no (rows|sheet)"),
    "SQLite without rows": _refused("r.db", lambda: sqlite(plain()[:0]), "no rows"),
    "Arrow without rows": _refused("r.arrow", lambda: arrow(plain()[:0]), "no rows"),
    "an array of nothing": _refused("r.json", b"[]", "no rows"),
    "one row": _refused("r.csv", b"a,pay\n1,2\n", "one value only"),
    "a label of one value": _refused("r.csv", b"a,pay\n1,2\n3,2\n4,2\n", "one value only"),
    "no label at all": _refused("r.csv", b"a,pay\n1,\n2,\n3,\n", "no value at all"),
    "nothing but the label": _refused("r.csv", b"pay\n1\n2\n3\n", "no column besides the label"),
    "no such label": _refused("r.csv", b"a,b\n1,2\n3,4\n", "no column 'pay' for the label"),
    "text and numbers in the label": _refused(
        "r.csv", lambda: _broken(_9="f,west,30,hot"), "'hot'"
    ),
    "an infinite label": _refused("r.csv", lambda: _broken(_9="f,west,30,inf"), "infinite"),
    "an infinite feature": _refused("r.csv", lambda: _broken(_9="f,west,inf,3"), "infinite"),
    "a ragged row": _refused("r.csv", lambda: _broken(_9="f,west"), "Row 9 .* has 2 cells"),
    "two names alike": _refused("r.csv", b"a,a,pay\n1,2,3\n", "two columns called 'a'"),
    "Latin letters": _refused("r.csv", b"a,pay\ncaf\xe9,2\nb,3\n", "not UTF-8"),
    "a damaged gzip file": _refused("r.csv.gz", gzip.compress(csv(plain()))[:90], "Cannot unpack"),
    "a damaged xz file": _refused("r.csv.xz", lzma.compress(csv(plain()))[:90], "Cannot unpack"),
    "a damaged zip file": _refused("r.zip", zipped(csv(plain()))[:90], "Cannot unpack"),
    "a damaged zst file": _refused("r.csv.zst", zstd(csv(plain()))[:60] + b"zz", "Cannot unpack"),
    "a damaged Parquet file": _refused("r.parquet", parquet(plain())[:500], "Cannot read"),
    "a damaged Arrow file": _refused("r.arrow", arrow(plain())[:300], "Cannot read"),
    "a damaged workbook": _refused("r.xlsx", excel(plain())[:2_000], "Cannot"),
    "a damaged database": _refused("r.db", sqlite(plain())[:1_500], "Cannot read"),
    "a database of nothing": _refused("r.db", sqlite(plain())[:100], "Cannot read|no table"),
    "half an array": _refused("r.json", objects(plain(), False)[:700], "not JSON|not closed"),
    "an array of numbers": _refused("r.json", b"[1, 2]", "holds an array, not an object"),
    "an object of columns": _refused(
        "r.json",
        b'{"a": {"0": 1}, "pay": {"0": 2}}',
        "'pay' .* for the label, and it holds objects",
    ),
    "lines that are no JSON": _refused("r.jsonl", b"{'a': 1}\n", "Line 1 .* not JSON"),
    "two files in a zip": _refused("r.zip", lambda: zipped(b"a\n", "a.csv", "b.csv"), "2 files"),
    "a zip in a zip": _refused("r.zip", lambda: zipped(zipped(b"a"), "a.zip"), "packed twice"),
    "two sheets": _refused("r.xlsx", lambda: _sheets("one", "two"), "2 sheets: .*--table"),
    "two tables": _refused("r.db", lambda: sqlite(plain(), "a", "b"), "2 tables: .*--table"),
    "no such sheet": _refused("r.xlsx", lambda: excel(plain()), "no sheet 'x'", "--table", "x"),
    "a table of CSV": _refused("r.csv", lambda: csv(plain()), "--table is for", "--table", "x"),
    "a pickle": _refused("r.pkl", lambda: pickle.dumps(plain(), 5), "is a pickle of Python"),
    "HDF5": _refused("r.h5", b"\x89HDF\r\n\x1a\n" + bytes(99), "is HDF5"),
    "ORC": _refused("r.orc", b"ORC" + bytes(99), "is ORC"),
    "Avro": _refused("r.avro", b"Obj\x01" + bytes(99), "is Avro"),
    "Stata": _refused("r.dta", b"<stata_dta><header>", "is Stata"),
    "SPSS": _refused("r.sav", b"$FL2@(#) SPSS", "is SPSS"),
    "an R file": _refused(
        "r.rds", lambda: gzip.compress(b"X\n\x00\x00\x00\x03" + bytes(99)), "of R"
    ),
    "a web page": _refused("r.csv", b"<!DOCTYPE html>\n<html>no</html>", "is a web page"),
    "XML": _refused("r.xml", b"<?xml version='1.0'?><a/>", "is XML"),
    "PDF": _refused("r.pdf", b"%PDF-1.7\n" + bytes(99), "is PDF"),
    "a picture": _refused("r.png", b"\x89PNG\r\n\x1a\n" + bytes(99), "is a picture"),
    "a tar archive": _refused("r.tar", bytes(1), "no text file|tar"),
    "7z": _refused("r.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99), "is 7z"),
    "bytes": _refused("r.dat", bytes(range(256)), "no text file|not UTF-8"),
}
ANIMALS: dict[str, Animal] = {**WRITTEN, **PACKED, **BAD, **_kinds()}
