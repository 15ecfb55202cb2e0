"""Files as people have them: numbers, dates and labels however written, nested columns, slips."""

import datetime
import gzip
import io
import json
import re
import sqlite3
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from groupwise.files.source import opened
from tests.cli.commands import invoke, predictions_of, refused, succeed
from tests.few import few
from tests.files.zoo import csv, excel, objects, parquet, plain, sqlite


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Pages and curves take longest, and other tests look at them."""
    monkeypatch.setattr("groupwise.files.run.points", lambda groups, features: 2)
    monkeypatch.setattr("groupwise.files.run.run_page", lambda finished: "<p>")
    monkeypatch.setattr("groupwise.files.run.compare_page", lambda compared: "<p>")


def cells(path, table=None) -> dict[str, list[Any]]:
    """What is read of a file."""
    with opened(str(path), table) as source:
        return pa.concat_tables([chunk for chunk, _ in source.chunks()]).to_pydict()


def run(tmp_path, name, content, *options):
    """The result of a run on a file, which must go well."""
    (tmp_path / name).write_bytes(content)
    out = tmp_path / "out"
    return succeed("run", tmp_path / name, "--target", "pay", "--out", out, *options)


def no(tmp_path, name, content, *options):
    """What is said of a file that is refused; nothing else is there afterwards."""
    (tmp_path / name).write_bytes(content)
    said = refused("run", tmp_path / name, "--target", "pay", "--out", tmp_path / "out", *options)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    return said


def french(value: float, apart: str) -> str:
    return f"{value:,.2f}".replace(",", "\0").replace(".", ",").replace("\0", apart)


WRITTEN: dict[str, tuple[str, Any]] = {
    "commas between thousands": (",", lambda x: f"{x:,.2f}"),
    "commas between thousands, and tabs": ("\t", lambda x: f"{x:,.2f}"),
    "points between thousands": (";", lambda x: french(x, ".")),
    "spaces between thousands": (";", lambda x: french(x, " ")),
    "narrow spaces between thousands": (";", lambda x: french(x, "\u202f")),
    "as a program writes them": (",", repr),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_with_signs_between_thousands(name, tmp_path):
    sep, write = WRITTEN[name]
    values = [1234567.25, -12.5, 999.0, 1000.0, -54321.75]
    frame = pd.DataFrame({"a": ["x, y", "z", "1,5,6", "b", "c"], "pay": map(write, values)})
    (tmp_path / "d.csv").write_bytes(csv(frame, sep=sep))
    found = cells(tmp_path / "d.csv")
    assert [float(one) for one in found["pay"]] == values
    assert found["a"] == frame["a"].tolist()


def test_points_in_one_column_and_commas_in_another(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"version;pay;sold\n2.0;1,5;1.200\n3.1;-2,25e-7;12\n")
    found = cells(tmp_path / "d.csv")
    assert found == {"version": ["2.0", "3.1"], "pay": ["1.5", "-2.25e-7"], "sold": ["1200", "12"]}


def test_decimals_are_the_nearest_numbers(tmp_path):
    texts = [f"{i * 7919 % 100_000 / 100:.2f}" for i in range(3_000)]
    kind = pa.decimal128(12, 2)
    table = pa.table({"x": pa.array(texts).cast(kind)})
    pa.parquet.write_table(table, tmp_path / "d.parquet")
    assert cells(tmp_path / "d.parquet")["x"] == [float(text) for text in texts]


def test_whole_thousands_in_cells_between_commas(tmp_path):
    (tmp_path / "d.csv").write_bytes(b'a,b\n"12,500",1.5\n"1,250",2\n"1,25",3\n')
    assert cells(tmp_path / "d.csv")["a"] == ["12500", "1250", "1,25"]


def test_text_of_two_bytes_a_letter_without_a_mark_or_in_gzip(tmp_path):
    text = csv(plain()).decode()
    expected = cells_of(tmp_path, "d.csv", text.encode())
    assert cells_of(tmp_path, "le.csv", text.encode("utf-16-le")) == expected
    assert cells_of(tmp_path, "be.csv", text.encode("utf-16-be")) == expected
    assert cells_of(tmp_path, "d.csv.gz", gzip.compress(text.encode("utf-16"))) == expected


def cells_of(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return cells(tmp_path / name)


def test_a_line_that_says_what_stands_between_cells(tmp_path):
    expected = cells_of(tmp_path, "d.csv", csv(plain()))
    assert cells_of(tmp_path, "s.csv", b"\nsep=;\r\n" + csv(plain(), sep=";")) == expected


@pytest.mark.parametrize("mark", few(["?", "None", "-", ".", "NULL", "#N/A", "<NA>"], 2))
def test_what_stands_for_a_missing_number(mark, tmp_path):
    """In a column of numbers; among texts it is one."""
    frame = plain().astype({"age": object})
    frame.loc[5, "age"] = mark
    frame.loc[5, "city"] = mark
    result = run(tmp_path, "d.csv", csv(frame))
    assert "Column 'age' has a missing value, in row 6" in result.stderr
    row = predictions_of(tmp_path / "out" / "predictions.csv")[5]
    assert f"city={mark}" in row["groups"]
    assert "age:" not in row["groups"]


def test_numbers_too_long_to_be_told_apart_name_things(tmp_path):
    """As text, in all formats alike; a label is a number, however long."""
    frame = plain().assign(code=[10**30 + i % 4 for i in range(48)])
    for name, write in (("d.csv", csv), ("d.jsonl", objects_of)):
        run(tmp_path, name, write(frame))
        found = predictions_of(tmp_path / "out" / "predictions.csv")[1]["groups"]
        assert "code=1000000000000000000000000000001" in found
    frame = plain().assign(pay=[2**60 + i % 7 * 2**55 for i in range(48)])
    run(tmp_path, "d.csv", csv(frame))
    record = json.loads((tmp_path / "out" / "regret.json").read_text())
    assert record["settings"]["task"] == "number"
    unsigned = pa.table({"h": pa.array([2**64 - 1 - i % 3 for i in range(48)], pa.uint64())})
    table = pa.Table.from_pandas(plain(), preserve_index=False).append_column("h", unsigned["h"])
    run(tmp_path, "d.parquet", written(table))
    assert "h=18446744073709551615" in (tmp_path / "out" / "predictions.csv").read_text()


def objects_of(frame):
    rows = frame.to_dict(orient="records")
    return "\n".join(
        json.dumps({k: getattr(v, "item", lambda v=v: v)() for k, v in row.items()}) for row in rows
    ).encode()


def written(table) -> bytes:
    found = io.BytesIO()
    pa.parquet.write_table(table, found)
    return found.getvalue()


def test_nested_columns_are_left_out_with_a_word(tmp_path):
    rows = [
        {**row, "tags": [1, 2], "home": {"zip": i}}
        for i, row in enumerate(plain().to_dict("records"))
    ]
    table = pa.Table.from_pylist(rows).append_column("blob", pa.array([b"\xff"] * len(rows)))
    table = table.append_column(
        "span", pa.array([(1, 2, 3)] * len(rows), pa.month_day_nano_interval())
    )
    feather = io.BytesIO()
    pa.feather.write_feather(table, feather)
    kinds = {"tags": "lists", "home": "objects", "blob": "bytes", "span": "intervals"}
    result = run(tmp_path, "d.arrow", feather.getvalue())
    for name, what in kinds.items():
        assert f"Column '{name}' is left out: it holds {what}, which are not read." in result.stderr
    result = run(tmp_path, "d.json", json.dumps(rows, default=float).encode())
    assert "Column 'home' is left out: it holds objects, which are not read." in result.stderr
    assert (
        "'home'"
        not in run(
            tmp_path, "d.json", json.dumps(rows, default=float).encode(), "--drop", "home"
        ).stderr
    )
    expected = predictions_of(tmp_path / "out" / "predictions.csv")
    run(tmp_path, "d.csv", csv(plain()))
    assert predictions_of(tmp_path / "out" / "predictions.csv") == expected
    succeed("predict", tmp_path / "out" / "model.gw", tmp_path / "d.json", "--out", tmp_path / "p")


def test_a_nested_column_that_is_asked_for(tmp_path):
    table = pa.table({"pay": [{"a": 1}, {"a": 2}], "x": [1, 2]})
    said = no(tmp_path, "d.parquet", written(table))
    assert "'pay' of" in said
    assert "is to be used for the label, and it holds objects" in said
    rows = [{"x": i, "pay": i % 3} for i in range(9)]
    (tmp_path / "d.parquet").unlink()
    said = no(tmp_path, "d.json", json.dumps({"data": rows}).encode())
    assert "has no column 'pay' for the label. Not read, being nested or bytes: 'data'." in said


def test_rows_after_the_array_are_not_passed_over(tmp_path):
    said = no(tmp_path, "d.json", objects(plain(), False) + objects(plain(), False))
    assert "After its array" in said


def test_databases_as_they_are(tmp_path):
    """Bytes are left out, generated columns are there."""
    base = sqlite3.connect(tmp_path / "d.db")
    plain().to_sql("seen", base, index=False)
    base.execute(
        "CREATE TABLE t (age INT, pay REAL, pic, two INT AS (2 * age), three AS (3 * age) STORED)"
    )
    base.execute("INSERT INTO t SELECT age, pay, CASE WHEN age > 40 THEN x'ff' END FROM seen")
    base.commit()
    base.close()
    found = cells(tmp_path / "d.db", "t")
    assert list(found) == ["age", "pay", "two", "three"]
    assert found["two"] == [str(2 * age) for age in plain()["age"]]
    result = succeed(
        "run", tmp_path / "d.db", "--table", "t", "--target", "pay", "--out", tmp_path / "o"
    )
    assert "Column 'pic' is left out: it holds bytes" in result.stderr


def workbook(fill) -> bytes:
    book, found = pytest.importorskip("openpyxl").Workbook(), io.BytesIO()
    sheet = book.active
    sheet.append(list(plain().columns))
    for row in plain().itertuples(index=False):
        sheet.append([getattr(one, "item", lambda one=one: one)() for one in row])
    fill(book, sheet)
    book.save(found)
    return found.getvalue()


def test_workbooks_as_they_are(tmp_path):
    """Blank rows at the end, hidden sheets and charts are nothing to speak of."""

    def fill(book, sheet):
        sheet["E1"] = "empty"
        sheet["A90"] = " "
        hidden = book.create_sheet("hidden")
        hidden["A1"] = "secret"
        hidden.sheet_state = "hidden"
        book.create_chartsheet("chart")

    result = run(tmp_path, "d.xlsx", workbook(fill))
    assert result.stderr.count("\n") == result.stderr.count("groupwise: ")
    assert "'empty' is left out" in result.stderr
    assert len(predictions_of(tmp_path / "out" / "predictions.csv")) == 48


def test_a_workbook_with_two_columns_of_one_name(tmp_path):
    def fill(book, sheet):
        sheet["A1"] = "city"

    assert "two columns called 'city'" in no(tmp_path, "d.xlsx", workbook(fill))


def test_missing_labels_among_classes(tmp_path):
    """NA is no class: such rows are predicted, and teach nothing, as those with an empty cell."""
    marks = plain().assign(pay=[("yes", "no", "NA")[i % 3] for i in range(48)])
    result = run(tmp_path, "d.csv", csv(marks))
    assert "'NA' among the labels stands for a missing one" in result.stderr
    assert "16 rows have no label and taught nothing." in result.stderr
    found = predictions_of(tmp_path / "out" / "predictions.csv")
    assert "probability:yes" in found[0]
    run(tmp_path, "e.csv", csv(marks.replace({"pay": {"NA": None}})))
    assert predictions_of(tmp_path / "out" / "predictions.csv") == found
    learned = succeed("learn", tmp_path / "out" / "model.gw", tmp_path / "d.csv")
    assert "32 rows learned, 64 in all" in learned.stdout
    assert "16 rows have no label" in learned.stderr
    named = run(tmp_path, "d.csv", csv(marks), "--classes", "no, yes, NA")
    assert "no label" not in named.stderr


@pytest.mark.parametrize("missing", ["", "NA"])
def test_the_first_labels_are_missing(tmp_path, missing):
    """Nothing is known of any group yet when the first point of the curves is due."""
    late = plain().assign(pay=[missing if i < 16 else ("yes", "no")[i % 2] for i in range(48)])
    result = run(tmp_path, "d.csv", csv(late))
    assert "16 rows have no label and taught nothing." in result.stderr
    assert len(predictions_of(tmp_path / "out" / "predictions.csv")) == 48


def test_infinite_numbers_are_skipped_on_request(tmp_path):
    frame = plain().astype({"age": object, "pay": object})
    frame.loc[3, "age"], frame.loc[7, "pay"] = "inf", "-inf"
    result = run(tmp_path, "d.csv", csv(frame), "--skip-bad")
    assert "Row 4 of" in result.stderr
    assert "Row 8 of" in result.stderr
    assert len(predictions_of(tmp_path / "out" / "predictions.csv")) == 46
    assert (
        "age" in json.loads((tmp_path / "out" / "regret.json").read_text())["settings"]["features"]
    )


def test_labels_outside_a_range_are_named_or_skipped(tmp_path):
    pay = plain()["pay"]
    said = no(tmp_path, "d.csv", csv(plain()), "--range", "0,30")
    assert f"holds {pay.min():g} in row {pay.idxmin() + 1}, which is outside the range 0,30" in said
    run(tmp_path, "d.csv", csv(plain()), "--range", "0,30", "--skip-bad")
    kept = [int(row["row"]) - 1 for row in predictions_of(tmp_path / "out" / "predictions.csv")]
    assert kept == [i for i in range(48) if 0 <= pay[i] <= 30]


def test_predictions_that_are_none_are_skipped_on_request(tmp_path):
    frame = plain().assign(pay=plain()["pay"] > 10, p=[0.25 + i / 100 for i in range(48)])
    frame.loc[2, "p"], frame.loc[5, "p"] = None, 1.5
    (tmp_path / "d.csv").write_bytes(csv(frame))
    compare = "compare", tmp_path / "d.csv", "--target", "pay", "--prediction", "p"
    assert "--skip-bad leaves out the rows without a prediction" in refused(*compare)
    out = tmp_path / "out"
    result = succeed(*compare, "--skip-bad", "--out", out)
    assert "Row 3 of" in result.stderr
    assert "Row 6 of" in result.stderr
    kept = frame.drop(index=[2, 5])
    came = kept["pay"].to_numpy(dtype=float)
    chance = kept["p"].to_numpy(dtype=float)
    loss = -(came * np.log(chance) + (1 - came) * np.log(1 - chance)).sum()
    rows = {row["group"]: row for row in json.loads((out / "compare.json").read_text())["rows"]}
    assert rows["always_on"]["rounds"] == 46
    assert rows["always_on"]["predictions"]["p"]["loss"] == pytest.approx(loss, rel=1e-12)


def test_a_folder_that_is_none_is_said_before_the_work(tmp_path, monkeypatch):
    frame = plain().assign(p=1.0)
    (tmp_path / "d.csv").write_bytes(csv(frame))
    monkeypatch.setattr("groupwise.files.run.Following.pieces", lambda *_: sys.exit("worked"))
    compare = "compare", tmp_path / "d.csv", "--target", "pay", "--prediction", "p"
    assert "is a file. Give --out a folder" in refused(*compare, "--out", tmp_path / "d.csv")
    monkeypatch.setattr("groupwise.files.plan.planned", lambda *_, **__: sys.exit("looked"))
    run = "run", tmp_path / "d.csv", "--target", "pay"
    assert "is a file. Give --out a folder" in refused(*run, "--out", tmp_path / "d.csv")


def test_folders_and_models_in_the_place_of_files(tmp_path):
    run(tmp_path, "d.csv", csv(plain()))
    rows, out = tmp_path / "d.csv", tmp_path / "out"
    assert "out is a folder. Give the files in it" in refused("run", out, "--target", "pay")
    for said in (refused("regret", out), refused("predict", out, rows)):
        assert f"out is a folder. Give the model in it: {out / 'model.gw'}" in said
    said = refused("predict", rows, out / "model.gw")
    assert "model.gw is a groupwise snapshot, not a file of rows" in said
    assert "the model comes before the rows" in said
    assert "not a file of rows" in refused("run", out / "model.gw", "--target", "pay")


def test_a_command_that_nearly_is_one():
    assert "No such command 'runn'. Did you mean 'run'? See " in refused("runn")


SAID: dict[str, tuple[list[str], str]] = {
    "logistic for numbers": (
        ["--learner", "logistic"],
        "--learner logistic predicts probabilities, and 'pay' is a number",
    ),
    "a preset that does not clip": (
        ["--preset", "paper", "--aggregator", "prod"],
        "--preset paper takes advice as it comes, and --aggregator prod needs it within",
    ),
    "means of classes": (
        ["--task", "classes", "--features", "city:encoded, age"],
        "city:encoded stands for the mean label of a value, and 'pay' has several classes",
    ),
    "a group twice": (["--groups", "sex, sex"], "The group 'sex=...' would exist twice. Drop one"),
    "a range upside down": (
        ["--features", "age:90|10"],
        "The range of the feature 'age' is 90 to 10. Give two numbers, the lower one first",
    ),
    "a date of numbers": (["--features", "age:date"], "no date that can be read: it holds numbers"),
    "no such option": (["--targt", "pay"], "No such option: --targt.* See .* run --help"),
    "no such number": (["--jobs", "0"], "--jobs.* See .* run --help"),
}


@pytest.mark.parametrize("name", SAID)
def test_messages_speak_of_the_command_line(name, tmp_path):
    options, said = SAID[name]
    (tmp_path / "d.csv").write_bytes(csv(plain()))
    found = refused("run", tmp_path / "d.csv", "--target", "pay", "--out", tmp_path / "o", *options)
    assert re.search(said, found), found
    assert not re.search(r"gw\.|losses\.|learners\.|\w\(\w+=", found)


def test_one_row_is_one_row(tmp_path):
    run(tmp_path, "d.csv", csv(plain()))
    model = tmp_path / "out" / "model.gw"
    (tmp_path / "one.csv").write_bytes(csv(plain()[:1]))
    assert (
        "1 row learned, 49 in all; its error is"
        in succeed("learn", model, tmp_path / "one.csv").stdout
    )
    (tmp_path / "none.csv").write_bytes(csv(plain().assign(pay=None)))
    learned = succeed("learn", model, tmp_path / "none.csv", "--widen")
    assert "No row learned, 49 in all. The model is" in learned.stdout
    said = succeed("predict", model, tmp_path / "one.csv", "--out", tmp_path / "p.csv").stdout
    assert "1 prediction in" in said


def test_a_header_without_a_line_end(tmp_path):
    assert "has a header but no rows" in no(tmp_path, "d.csv", b"sex,pay")


def test_a_date_that_is_none_is_said_in_the_words_of_the_file(tmp_path):
    days = [str(datetime.date(2024, 1, 1) + datetime.timedelta(days=9 * i)) for i in range(48)]
    run(tmp_path, "d.csv", csv(plain().assign(day=days)))
    bad = csv(plain().assign(day=["soon" if i == 4 else day for i, day in enumerate(days)]))
    (tmp_path / "bad.csv").write_bytes(bad)
    said = refused("predict", tmp_path / "out" / "model.gw", tmp_path / "bad.csv")
    assert "Row 5 of" in said
    assert "'soon', which is no date that can be read" in said
    predict = "predict", tmp_path / "out" / "model.gw", tmp_path / "bad.csv", "--skip-bad"
    assert invoke(*predict).exit_code == 0


def test_values_in_two_spellings_are_pointed_out(tmp_path):
    city = plain()["city"]
    result = run(tmp_path, "d.csv", csv(plain().assign(city=city.mask(city.index < 9, " North"))))
    assert "The values ' North' and 'north' of 'city' differ in capitals, spaces" in result.stderr
    assert "differ in" not in run(tmp_path, "d.csv", csv(plain())).stderr


def test_dates_of_a_model_are_read_from_files_that_have_a_type_for_them(tmp_path):
    """What was written as in Germany when it was learned, Parquet and workbooks hold as dates."""
    days = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=31 * i) for i in range(48)]
    run(tmp_path, "d.csv", csv(plain().assign(day=[f"{one:%d.%m.%Y %H:%M}" for one in days])))
    found = []
    for name, write in (("d.csv", None), ("d.parquet", parquet), ("d.xlsx", excel)):
        if write is not None:
            (tmp_path / name).write_bytes(write(plain().assign(day=days)))
        succeed("predict", tmp_path / "out" / "model.gw", tmp_path / name, "--out", tmp_path / "p")
        found.append((tmp_path / "p").read_text())
    assert "day month=2" in found[0]
    assert found[0] == found[1] == found[2]


def test_truths_are_0_and_1_where_a_database_had_them_so(tmp_path):
    frame = plain().assign(member=[i % 3 == 0 for i in range(48)])
    run(tmp_path, "d.db", sqlite(frame))
    found = []
    for name, write in (("n.db", sqlite), ("n.csv", csv), ("n.parquet", parquet)):
        (tmp_path / name).write_bytes(write(frame))
        succeed("predict", tmp_path / "out" / "model.gw", tmp_path / name, "--out", tmp_path / "p")
        found.append((tmp_path / "p").read_text())
    assert "member=1" in found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_the_same_from_workbook_table_and_text(tmp_path):
    """Numbers stored as text in a workbook are the numbers that they are elsewhere."""
    found = []
    for name, write in (("d.csv", csv), ("d.xlsx", excel), ("d.parquet", parquet)):
        run(tmp_path, name, write(plain().assign(age=plain()["age"].astype(str))))
        found.append(predictions_of(tmp_path / "out" / "predictions.csv"))
    assert found[0] == found[1] == found[2]
