"""The same rows in every format, compressed or not, in chunks of any size: the same numbers."""

import gzip
import hashlib
import io
import json
import sys

import polars as pl
import pytest

from groupwise.files import columnar, delimited, objects
from groupwise.files.source import opened
from tests.cli.commands import people, people_file, regret_of, succeed
from tests.few import few

HEADER = ("sex", "city", "age", "pay")

pytestmark = pytest.mark.usefixtures("two_panels")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The regret of a run over the CSV file."""
    folder = tmp_path_factory.mktemp("csv")
    data = people_file(folder / "people.csv")
    succeed("run", data, "--target", "pay", "--out", folder / "out")
    return data, regret_of(folder / "out")


def written(kind, data, folder):
    frame = pl.DataFrame(people(300), schema=list(HEADER), orient="row")
    if kind == "csv.gz":
        path = folder / "people.csv.gz"
        path.write_bytes(gzip.compress(data.read_bytes()))
    elif kind == "parquet":
        path = folder / "people.parquet"
        frame.with_columns(pl.col("city").cast(pl.Categorical)).write_parquet(path)
    elif kind == "semicolons and a byte-order mark":
        path = folder / "people.csv"
        path.write_text(data.read_text().replace(",", ";"), encoding="utf-8-sig")
    else:
        lines = [json.dumps(dict(zip(HEADER, row, strict=True))) for row in people(300)]
        path = folder / f"people.{kind}"
        content = "\n".join(lines).encode()
        path.write_bytes(gzip.compress(content, mtime=0) if kind.endswith("gz") else content)
    return path


@pytest.mark.parametrize(
    "kind", few(["parquet", "csv.gz", "jsonl", "ndjson.gz", "semicolons and a byte-order mark"], 1)
)
def test_the_same_numbers(kind, expected, tmp_path, monkeypatch):
    data, regret = expected
    monkeypatch.setattr(delimited, "BLOCK", 1000)
    monkeypatch.setattr(objects, "LINES", 37)
    monkeypatch.setattr(columnar, "ROWS", 41)
    path = written(kind, data, tmp_path)
    succeed("run", path, "--target", "pay", "--out", tmp_path / "out")
    assert regret_of(tmp_path / "out") == regret


@pytest.mark.parametrize("kind", few(["csv", "jsonl"], 1))
def test_standard_input(kind, expected, tmp_path, monkeypatch):
    data, regret = expected
    path = data if kind == "csv" else written(kind, data, tmp_path)
    from typer.testing import CliRunner

    from groupwise.cli import app

    words = ["run", "-", "--target", "pay", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words, input=path.read_bytes())
    assert result.exit_code == 0, result.stderr
    assert regret_of(tmp_path / "out") == regret
    assert "standard input" in (tmp_path / "out" / "report.html").read_text()


def test_spooled_input_is_removed(monkeypatch):
    class Input:
        buffer = io.BytesIO(b"a,y\n1,2\n")

    monkeypatch.setattr(sys, "stdin", Input)
    with opened("-") as source:
        path = source.path
        assert path.exists()
    assert not path.exists()


def test_fields_that_come_and_go_in_json_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "LINES", 2)
    lines = [{"x": i, "y": i * 2.0, "k": "ab"[i % 2]} for i in range(8)]
    del lines[0]["k"], lines[1]["k"], lines[5]["k"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    succeed("run", path, "--target", "y", "--groups", "k", "--out", tmp_path / "out")
    rows = regret_of(tmp_path / "out")
    assert (rows["k=a"]["rounds"], rows["k=b"]["rounds"], rows["always_on"]["rounds"]) == (3, 2, 8)


@pytest.mark.parametrize(
    ("name", "content", "format", "compressed"),
    [
        ("a.csv", b"a,y\n1,2\n", "CSV", False),
        ("a.CSV.gz", gzip.compress(b"a,y\n1,2\n", mtime=0), "CSV", True),
        ("a.ndjson", b'{"a": 1}\n', "JSON Lines", False),
        ("a.json.gz", gzip.compress(b'{"a": 1}\n', mtime=0), "JSON Lines", True),
        ("anything", b"{a},y\n1,2\n", "CSV", False),
    ],
)
def test_which_format_it_is(name, content, format, compressed, tmp_path):
    (tmp_path / name).write_bytes(content)
    with opened(str(tmp_path / name)) as found:
        assert (found.format, found.compressed, found.size) == (format, compressed, len(content))
        assert found.sha256 == hashlib.sha256(content).hexdigest()
        assert found.open().read() == (gzip.decompress(content) if compressed else content)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_columns_of_csv_by_name(delimiter, tmp_path):
    text = 'a , b,,y\n1,,x,2\n3,"q\nr",z,4\n'.replace(",", delimiter)
    (tmp_path / "d.csv").write_text(text)
    with opened(str(tmp_path / "d.csv")) as found:
        ((table, position),) = found.chunks()
        assert table.to_pydict() == {
            "a": ["1", "3"],
            "b": [None, "q\nr"],
            "column 3": ["x", "z"],
            "y": ["2", "4"],
        }
        assert position == found.size
        ((chosen, _),) = found.chunks(["y", "b"])
        assert chosen.column_names == ["b", "y"]
        ((none, _),) = found.chunks(["z"])
        assert none.column_names == []


def test_values_of_json_lines_and_parquet(tmp_path):
    row = {"n": 0.1, "i": 3, "t": "x", "b": True, "none": None, "e": "", "inf": float("inf")}
    (tmp_path / "d.jsonl").write_text(f"{json.dumps(row)}\n\n")
    with opened(str(tmp_path / "d.jsonl")) as found:
        ((table, _),) = found.chunks()
    assert table.to_pylist() == [
        {"n": "0.1", "i": "3", "t": "x", "b": "true", "none": None, "e": None, "inf": "inf"}
    ]
    columns = {"i": [1], "f": [float("nan")], "l": [[1]], "b": [True]}
    big = pl.Series("big", [2**64 - 1], pl.UInt64)
    pl.DataFrame({**columns, "big": big}).write_parquet(tmp_path / "d.parquet")
    with opened(str(tmp_path / "d.parquet")) as found:
        ((table, _),) = found.chunks()
    assert table.to_pylist() == [{"i": 1, "f": None, "b": "true", "big": str(2**64 - 1)}]
