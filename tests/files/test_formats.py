"""The same rows in every format, compressed or not, in chunks of any size: the same numbers."""

import gzip
import io
import json
import sys

import polars as pl
import pytest

from groupwise.files import rows as rows_of_files
from groupwise.files import source
from groupwise.files.rows import in_pieces
from groupwise.files.scan import scan
from groupwise.files.source import opened
from tests.cli.commands import people, people_file, regret_of, succeed, write_rows

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
        path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    return path


@pytest.mark.parametrize(
    "kind", ["csv.gz", "parquet", "jsonl", "ndjson.gz", "semicolons and a byte-order mark"]
)
def test_the_same_numbers(kind, expected, tmp_path, monkeypatch):
    data, regret = expected
    monkeypatch.setattr(source, "BLOCK", 1000)
    monkeypatch.setattr(source, "LINES", 37)
    monkeypatch.setattr(source, "ROWS", 41)
    path = written(kind, data, tmp_path)
    succeed("run", path, "--target", "pay", "--out", tmp_path / "out")
    assert regret_of(tmp_path / "out") == regret


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
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


def test_pieces_hold_all_rows_in_order():
    import pyarrow as pa

    parts = ((0, 3), (3, 3), (3, 20), (20, 21))
    tables = [(pa.table({"x": pa.array(range(a, b), pa.int64())}), b) for a, b in parts]
    found = list(in_pieces(iter(tables), 5))
    assert [position for _, position in found] == [20, 20, 20, 20, 21]
    pieces = [piece.column("x").to_pylist() for piece, _ in found]
    assert [len(piece) for piece in pieces] == [5, 5, 5, 5, 1]
    assert [x for piece in pieces for x in piece] == list(range(21))


def profiles(path):
    with opened(str(path)) as source:
        return scan(source, None).columns


def test_what_columns_hold(tmp_path):
    rows = [
        (" 1 ", "1", "9007199254740993", "true", "", "1"),
        ("2.5", "x", "9007199254740995", "false", "a", "NA"),
        ("-3e2", "2", "9007199254740997", "true", "a", "2"),
    ]
    data = write_rows(tmp_path / "d.csv", ("number", "mixed", "id", "flag", "text", "gap"), rows)
    found = profiles(data)
    kinds = {name: profile.kind for name, profile in found.items()}
    assert kinds == {
        "number": "number",
        "mixed": "text",
        "id": "text",  # as numbers two of them would be the same
        "flag": "text",
        "text": "text",
        "gap": "number",
    }
    assert (found["number"].low, found["number"].high) == (-300.0, 2.5)
    assert not found["number"].whole
    assert (found["text"].missing, found["text"].first_missing) == (1, 1)
    assert (found["gap"].missing, found["gap"].first_missing, found["gap"].distinct) == (1, 2, 2)
    assert (found["mixed"].text_row, found["mixed"].text) == (2, "x")


def test_fields_that_come_and_go_in_json_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LINES", 2)
    lines = [{"x": i, "y": i * 2.0, "k": "ab"[i % 2]} for i in range(8)]
    del lines[0]["k"], lines[1]["k"], lines[5]["k"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    succeed("run", path, "--target", "y", "--groups", "k", "--out", tmp_path / "out")
    rows = regret_of(tmp_path / "out")
    assert (rows["k=a"]["rounds"], rows["k=b"]["rounds"], rows["always_on"]["rounds"]) == (3, 2, 8)


def test_a_sort_in_many_stretches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_of_files, "STRETCH", 20)
    rows = people(250)
    data = write_rows(tmp_path / "people.csv", HEADER, rows)
    for order, column in (("city", 1), ("pay", 3)):
        out = tmp_path / order
        succeed("run", data, "--target", "pay", "--order", order, "--out", out)
        lines = (out / "predictions.csv").read_text().splitlines()[1:]
        places = sorted(range(250), key=lambda i, c=column: rows[i][c])
        assert [int(line.split(",")[0]) - 1 for line in lines] == places
