"""Files and settings that cannot be used: one clear message, exit code 2, nothing written."""

import gzip
import re

import pyarrow
import pyarrow.parquet as parquet
import pytest

from tests.cli.commands import people_file, refused


def damaged(content: bytes) -> bytes:
    """Packed, and changed in the middle."""
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[len(packed) // 2 : len(packed) // 2 + 4] = b"\xff" * 4
    return bytes(packed)


FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n", "is empty"),
    "header only": (b"a,b,y\n", "has a header but no rows"),
    "ragged": (b"a,b,y\n1,x,2\n3,x\n", "Row 2 of .* has 2 cells and the header has 3"),
    "wrong encoding": (b"a,b,y\n1,x,2\n3,caf\xe9,4\n", "not UTF-8 text: line 3 holds .* 0xe9"),
    "wrong encoding in the header": (b"caf\xe9,y\n1,2\n", "not UTF-8 text: line 1"),
    "missing target": (b"a,b,z\n1,x,2\n3,y,4\n", "no column 'y' for the label.*'a', 'b', 'z'"),
    "non-numeric target": (b"a,b,y\n1,x,2\n3,y,hot\n", "holds 'hot' in row 2, which is no number"),
    "NaN labels alone": (b"a,b,y\n1,x,\n3,y,NaN\n", "'y' holds no value at all"),
    "infinite feature": (b"a,b,y\n1,x,2\ninf,y,1\n3,x,3\n", "'a' holds an infinite .* in row 2"),
    "columns of one value alone": (b"a,b,y\n1,x,2\n1,x,4\n1,x,1\n", "no column besides the label"),
    "a label of one value": (b"a,b,y\n1,x,2\n3,y,2\n2,x,2\n", "'y' holds one value only"),
    "nothing but the label": (b"y\n1\n2\n", "no column besides the label"),
    "nothing but names": (b"n,y\na,1\nb,2\nc,4\n", "no column besides the label"),
    "two columns of one name": (b"a,a,y\n1,x,2\n", "two columns called 'a'"),
    "no text": (b"\x00\x01\x02\x03,\x00", "is no text file"),
    "a damaged gzip file": (damaged(b"a,y\n" + b"1,2\n3,5\n" * 9_999), "Cannot unpack"),
    "huge labels": (b"a,b,y\n1,x,0\n2,y,1e200\n3,x,5\n", r"range 0,1e\+200 .* Multiply 'y'"),
    "labels of both signs, and huge": (b"a,y\n1,-1e308\n2,1e308\n3,5\n", "is inf wide"),
    "tiny labels": (b"a,b,y\n1,x,0\n2,y,1e-320\n3,x,0\n", "beyond what can be computed with"),
    "half a gzip file": (gzip.compress(b"a,y\n" + bytes(range(256)) * 999)[:40], "Cannot"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name, tmp_path):
    content, message = FILES[name]
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    said = refused("run", data, "--target", "y", "--out", tmp_path / "out")

    assert re.search(message, said), said
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


JSON_LINES = {
    "not JSON": ('{"a": 1, "y": 2}\n{"a": 1,\n', "Line 2 of .* is not JSON"),
    "no object": ("[1, 2]\n", "Line 1 of .* holds an array, not an object"),
    "nested": (
        '{"a": 1, "y": [2]}\n',
        "'y' of .* is to be used for the label, and it holds arrays",
    ),
    "a very long number": (f'{{"a": {"1" * 5_000}, "y": 2}}\n', "Line 1 .* over 4,300 digits"),
    "deep": ("[" * 100_000 + "\n", "Line 1 of .* is not JSON"),
    "half a character": ('{"a": "\\ud800", "y": 2}\n', "half a character"),
}


@pytest.mark.parametrize("name", JSON_LINES)
def test_bad_json_lines(name, tmp_path):

    content, message = JSON_LINES[name]
    data = tmp_path / "data.jsonl"
    data.write_text(content)
    assert re.search(message, refused("run", data, "--target", "y", "--out", tmp_path / "out"))


def test_damaged_json_lines(tmp_path):
    data = tmp_path / "data.jsonl.gz"
    data.write_bytes(damaged(b'{"a": 1, "y": 2}\n' * 9_999))
    assert "Cannot unpack" in refused("run", data, "--target", "y", "--out", tmp_path / "out")


def test_a_bad_parquet_file(tmp_path):
    data = tmp_path / "data.parquet"
    data.write_bytes(b"PAR1 and nothing more")
    assert "Cannot read" in refused("run", data, "--target", "y", "--out", tmp_path / "out")
    columns = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    parquet.write_table(pyarrow.table(columns, names=["a", "a", "y"]), data)
    said = refused("run", data, "--target", "y", "--out", tmp_path / "out")
    assert "two columns called 'a'" in said


OPTIONS = {
    "an unknown group": (["--groups", "sexx"], "no column 'sexx' for a group. Did you mean 'sex'"),
    "the label as a group": (["--groups", "pay:3"], "'pay' is the label"),
    "a bad cut": (["--groups", "age:old"], "'old' after 'age' is no number"),
    "edges in no order": (["--groups", "age:50|35"], "strictly increasing"),
    "a group of text cut": (["--groups", "city:3"], "groups compare numbers"),
    "a group twice": (["--groups", "sex, sex"], "would exist twice"),
    "a stray comma": (["--groups", "sex,,city"], "Nothing stands before"),
    "an open quote": (["--groups", 'sex, "city'], "double quote is not closed"),
    "an unknown feature": (["--features", "wage"], "no column 'wage' for a feature"),
    "the label as a feature": (["--features", "pay"], "'pay' is the label"),
    "a range of text": (["--features", "city:1|2"], "'city' has a range but holds"),
    "an unknown order": (["--order", "time"], "no column 'time' to sort by"),
    "an unknown column to drop": (["--drop", "wage"], "no column 'wage' to leave out"),
    "half a range": (["--range", "3"], "--range 3 is not LOW,HIGH"),
    "a range upside down": (["--range", "3,1"], "LOW is below HIGH"),
    "an unknown learner": (["--learner", "forest"], "no learner 'forest'"),
    "an unknown aggregator": (["--aggregator", "vote"], "no aggregator 'vote'"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(name, tmp_path):
    options, message = OPTIONS[name]
    data = people_file(tmp_path / "people.csv", 40)
    said = refused("run", data, "--target", "pay", "--out", tmp_path / "out", *options)
    assert message in said
    assert not (tmp_path / "out").exists()


CONFIGS = {
    "no TOML": ("[[groups]", "is not valid TOML"),
    "deep TOML": (f"a = {'[' * 9_000}{']' * 9_000}", "nested too deeply"),
    "a very long number": (f"penalty = {'1' * 5_000}", "is not valid TOML"),
    "a number beyond numbers": (f"range = [0, {'1' * 400}]", "is not valid TOML"),
    "an unknown key": ('tarket = "pay"', "unknown key 'tarket'"),
    "an unknown kind of group": ('[[groups]]\nbuy = "sex"', "0 kinds"),
    "a range of one": ("range = [1]", "Give [low, high]"),
    "features of no use": ("[features]\nage = 3", "features.age holds 3"),
    "an absent column": ('[[groups]]\nby = "shop"', "no column 'shop' for a group"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_bad_configs(name, tmp_path):
    text, message = CONFIGS[name]
    data = people_file(tmp_path / "people.csv", 40)
    config = tmp_path / "config.toml"
    config.write_text(text)
    said = refused("run", data, "--target", "pay", "--config", config, "--out", tmp_path / "out")
    assert message in said


def test_no_file_and_no_target(tmp_path):
    assert "No such file" in refused("run", tmp_path / "none.csv", "--target", "y")
    data = people_file(tmp_path / "people.csv", 40)
    assert "--target COLUMN" in refused("run", data, "--out", tmp_path / "out")
    assert "No such file" in refused("run", data, "--config", tmp_path / "none.toml")
