"""Several files as one: the rows of one file, cut anywhere; and what is refused."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.dataset
import pytest

import groupwise as gw
from groupwise.engines import LocalEngine
from groupwise.errors import DataError, OutputError
from groupwise.files.audit import audit
from groupwise.files.by import LONGEST, Done, Job, folder_of, run_by
from groupwise.files.plan import planned
from groupwise.files.ranges import ranges, units_of
from groupwise.files.rows import pieces
from groupwise.files.run import run, run_in_segments
from groupwise.files.scan import scan
from groupwise.files.segments import Asked
from groupwise.files.several import named, opened

pytestmark = pytest.mark.usefixtures("two_panels")


def people(rows=900, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "city": rng.choice(["Bonn", "Köln"], rows),
            "age": rng.integers(18, 80, rows),
            "pay": rng.uniform(0.0, 50.0, rows),
        }
    )


def written(frame, path):
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return str(path)


def cut(folder, kind="csv"):
    frame = people()
    parts = [frame[:200], frame[200:201], frame[201:]]
    return [written(one, folder / f"{i}.{kind}") for i, one in enumerate(parts)]


def regret_of(data, out, **settings):
    with planned(data, target="pay", **settings) as (found, plan):
        run(found, plan, out, progress=False)
    return json.loads((out / "regret.json").read_text("utf-8"))["rows"]


@pytest.mark.parametrize("kind", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_the_same_as_one_file(tmp_path, kind):
    whole = written(people(), tmp_path / f"whole.{kind}")
    parts = cut(tmp_path, kind)
    expected = regret_of(whole, tmp_path / "one")
    assert regret_of(parts, tmp_path / "several") == expected
    assert regret_of(f"file://{tmp_path}/[0-9].{kind}", tmp_path / "pattern") == expected


@pytest.mark.slow
def test_files_in_memory_by_url(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    try:
        for path in [*cut(tmp_path), *cut(tmp_path, "parquet")]:
            memory.pipe("/rows/" + path.rpartition("/")[2], Path(path).read_bytes())
        expected = regret_of(cut(tmp_path), tmp_path / "here")
        for kind in ("csv", "parquet"):
            assert regret_of(f"memory://rows/*.{kind}", tmp_path / kind) == expected
        with pytest.raises(DataError, match="no such file"), opened("memory://rows/none.csv"):
            pass
        with pytest.raises(DataError, match="No file is called like"):
            named(["memory://rows/*.xlsx"])
    finally:
        memory.rm("/rows", recursive=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("size", [1, 7, 200, 450, 5_000])
def test_rows_from_one_number_to_another(tmp_path, kind, size):
    with opened(cut(tmp_path, kind)) as source:
        every = list(ranges(units_of(scan(source, None)), size))
        assert [one.first for one in every] == [*range(0, 900, size)]
        ages = people()["age"].to_list()
        for one in every[:5] + every[-5:]:
            found = [int(x) for table, _ in one.chunks(["age"]) for x in table["age"].to_pylist()]
            assert found == ages[one.first : one.first + one.rows]
        last = every[-1].located(every[-1].rows)
        assert last == f"Row 699 of {tmp_path / '2'}.{kind}"


def test_row_groups_are_read_alone(tmp_path, monkeypatch):
    """A task reads the row groups that its rows are in, and no others."""
    from groupwise.files import columnar

    people().write_parquet(tmp_path / "a.parquet", row_group_size=100)
    asked = []
    plain = columnar.parquet

    def noted(source, columns, group):
        asked.append(group)
        return plain(source, columns, group)

    monkeypatch.setattr(columnar, "parquet", noted)
    with opened(str(tmp_path / "a.parquet")) as source:
        every = list(ranges(units_of(scan(source, None)), 150))
        list(every[2].chunks(["age"]))
    assert asked == [3, 4]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (pl.DataFrame({"city": ["a"], "age": [3]}), "no column 'pay', which"),
        (people(9).with_columns(more=pl.lit(1)), "a column 'more', which"),
        (people(9).with_columns(age=pl.lit("old")), "'age' holds numbers in .*0.* and text in"),
        (people(9).with_columns(city=pl.lit(3)), "'city' holds numbers in .*1.* and text in .*0"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_that_change(tmp_path, kind, second, said):
    paths = [
        written(people(), tmp_path / f"0.{kind}"),
        written(second, tmp_path / f"1.{kind}"),
    ]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match=said) as raised:
        regret_of(paths, tmp_path / "out")
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_columns_in_another_order_are_the_same(tmp_path):
    parts = cut(tmp_path)
    expected = regret_of(parts, tmp_path / "a")
    pl.read_csv(parts[2]).select("pay", "age", "city").write_csv(parts[2])
    assert regret_of(parts, tmp_path / "b") == expected


def test_files_that_are_not_there(tmp_path):
    parts = cut(tmp_path)
    with pytest.raises(DataError, match=r"none\.csv: No such file"), opened([*parts, "none.csv"]):
        pass
    with pytest.raises(DataError, match="No file is called like"), opened(f"{tmp_path}/*.json"):
        pass
    other = written(people(5), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"is CSV and .* is Parquet"), opened([parts[0], other]):
        pass


def test_bad_rows_are_named_by_their_file(tmp_path):
    parts = cut(tmp_path)
    text = (tmp_path / "2.csv").read_text().splitlines()
    text[4] += ",one cell more"
    (tmp_path / "2.csv").write_text("\n".join(text))
    with pytest.raises(DataError, match=r"Row 4 of .*2\.csv has 4 cells"):
        regret_of(parts, tmp_path / "out")
    with planned(parts, target="pay", skip_bad=True) as (found, plan):
        finished = run(found, plan, tmp_path / "out", progress=False)
    assert any("Row 4 of" in one and "2.csv was skipped" in one for one in finished.warnings)


def test_a_dataset_of_pyarrow(tmp_path):
    """Its files and row groups, one after another."""
    for place, part in enumerate((people()[:500], people()[500:])):
        part.write_parquet(tmp_path / f"{place}.parquet", row_group_size=120)
    found = []
    for frame in (pyarrow.dataset.dataset(tmp_path), people()):
        model = gw.Groupwise([gw.by("city")], loss=gw.losses.Square(0, 50), features=["age"])
        found.append(model.replay(frame, "pay").prediction)
    assert found[0].tobytes() == found[1].tobytes()


SEGMENTED = [
    ({"order": "age"}, "--order"),
    ({"skip_bad": True}, "--skip-bad"),
    ({"missing": "drop"}, "--missing drop"),
]


@pytest.mark.parametrize(("settings", "said"), SEGMENTED)
def test_what_segments_cannot(tmp_path, settings, said):
    whole = written(people(), tmp_path / "a.csv")
    with (
        planned(whole, target="pay", **settings) as (found, plan),
        pytest.raises(gw.GroupwiseError, match=said),
    ):
        run_in_segments(found, plan, tmp_path / "out", Asked(100), progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 1])
def test_segments_of_files(tmp_path, jobs):
    """Against the run without segments: predictions to 1e-8 of the range; the same for any jobs."""
    parts = cut(tmp_path)
    regret_of(parts, tmp_path / "plain")
    expected = pl.read_csv(tmp_path / "plain" / "predictions.csv")
    with planned(parts, target="pay") as (found, plan):
        finished = run_in_segments(found, plan, tmp_path / "out", Asked(130, jobs=jobs))
    whole = pl.read_parquet(tmp_path / "out" / "predictions")
    for name in ("row", "label", "groups"):
        assert whole[name].to_list() == expected[name].to_list()
    off = whole["prediction"].to_numpy() - expected["prediction"].to_numpy()
    assert np.abs(off).max() <= 1e-8 * 50.0
    assert finished.table.settled == 900
    for row in finished.table:
        assert row["regret"] <= row["certificate"]
    error = finished.errors["regret"].loss("always_on").mean
    truth = ((whole["prediction"] - whole["label"]) ** 2).mean()
    assert error == pytest.approx(truth, rel=1e-12)
    assert finished.curves["always_on"].time.tolist()[-1] == 900


@pytest.mark.slow
def test_a_model_for_every_value(tmp_path):
    """Each is what a run over its rows alone gives; rows without a value are left out."""
    frame = people().with_columns(city=pl.when(pl.arange(0, 900) == 5).then(None).otherwise("city"))
    data = written(frame, tmp_path / "people.csv")
    warned: list[str] = []
    job = Job((data,), None, {"target": "pay"}, "city", tmp_path / "out", None)
    done = run_by(job, "local", warned.append)
    assert warned == ["1 row of no 'city' are left out."]
    assert [one.value for one in done] == frame["city"].drop_nulls().unique(
        maintain_order=True
    ).to_list()
    for one in done:
        alone = frame.filter(pl.col("city") == one.value).drop("city")
        assert one.rows == len(alone)
        expected = regret_of(written(alone, tmp_path / "alone.csv"), tmp_path / one.value)
        found = json.loads((tmp_path / "out" / one.folder / "regret.json").read_text("utf-8"))
        assert found["rows"] == expected
    about = json.loads((tmp_path / "out" / "by.json").read_text("utf-8"))
    assert list(about["values"]) == [one.value for one in done]
    assert gw.load(tmp_path / "out" / done[0].folder / "model.gw").issued == done[0].rows


def test_models_by_value_come_together_or_not_at_all(tmp_path):
    text = "city,age,pay\n" + "a,3,1\na,4,2\n" * 20 + "b,3,\n" * 3
    (tmp_path / "people.csv").write_text(text)
    job = Job((str(tmp_path / "people.csv"),), None, {"target": "pay"}, "city", tmp_path / "o", 1)
    with pytest.raises(DataError):
        run_by(job, "local", print)
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]
    with pytest.raises(DataError, match="no column 'town'"):
        run_by(job._replace(column="town"), "local", print)


def test_an_audit_by_sums(tmp_path):
    """The losses are those of the rows, and the best is that of least squares on each group."""
    frame = people().with_columns(theirs=pl.col("age") * 0.5)
    parts = [
        written(frame[:400], tmp_path / "0.parquet"),
        written(frame[400:], tmp_path / "1.parquet"),
    ]
    asked = {"features": "age", "groups": "city", "range": "0,50"}
    with planned(parts, predictions=["theirs"], target="pay", **asked) as (found, plan):  # type: ignore[arg-type]
        (table,) = audit(found, plan, Asked(170, jobs=2), tmp_path / "out", progress=False).values()
    for city in ("Bonn", "Köln"):
        mine = frame.filter(pl.col("city") == city)
        x = np.column_stack([np.ones(len(mine)), mine["age"].to_numpy()])
        y, theirs = mine["pay"].to_numpy(), mine["theirs"].to_numpy()
        best = float(np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2))
        row = table[f"city={city}"]
        assert row["loss"] == pytest.approx(float(np.sum((y - theirs) ** 2)), rel=1e-12)
        assert row["best_loss"] == pytest.approx(best, rel=1e-9)
    kept = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    assert list(kept["rows"]) == ["theirs"]


class Meanwhile(LocalEngine):
    """Threads, beside which something happens before the second segment is read."""

    def __init__(self, what):
        super().__init__(1)
        self.what, self.reads = what, 0

    def submit(self, function, *arguments):
        self.reads += function.__name__ == "read"
        if self.reads == 2:
            self.reads += 1
            self.what()
        return super().submit(function, *arguments)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(
    ("rows", "said"),
    [(slice(100), "changed"), (slice(None), "changed"), (slice(200), "changed"), (None, "gone")],
)
def test_files_that_change_meanwhile(tmp_path, kind, begun, rows, said):
    """Fewer rows, more, or others between the first pass and the run, or in it: one line."""
    first, *others = cut(tmp_path, kind)

    def change():
        if rows is None:
            os.unlink(first)
            return
        written(people(seed=2)[rows], Path(first))
        os.utime(first, (0, 0))

    with planned([first, *others], target="pay") as (found, plan):
        if not begun:
            change()
        asked = Asked(90, Meanwhile(change if begun else int))
        with pytest.raises(DataError, match=said) as raised:
            run_in_segments(found, plan, tmp_path / "out", asked, progress=False)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_none_any_more(tmp_path):
    """What is wrong with it is said, and not that the folder of results cannot be written to."""
    first, *others = cut(tmp_path, "parquet")
    with planned([first, *others], target="pay") as (found, plan):
        stamp = os.stat(first)
        Path(first).write_bytes(b"x" * stamp.st_size)
        os.utime(first, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        with pytest.raises(DataError, match="Cannot read"):
            run_in_segments(found, plan, tmp_path / "out", Asked(90, jobs=1), progress=False)


def test_tasks_know_where_files_lie(tmp_path, monkeypatch):
    """Workers do not begin in the folder of who starts the run."""
    cut(tmp_path, "parquet")
    monkeypatch.chdir(tmp_path)
    with planned("[0-9].parquet", target="pay") as (found, _):
        every = list(ranges(units_of(found), 300))
        monkeypatch.chdir("/")
        assert [sum(len(table) for table, _ in one.chunks()) for one in every] == [300] * 3


def test_files_given_twice(tmp_path, monkeypatch):
    first, *_ = cut(tmp_path)
    monkeypatch.chdir(tmp_path)
    for names in ([f"{tmp_path}/*.csv", first], ["0.csv", f"file://{first}"], ["0.csv", "./0.csv"]):
        with pytest.raises(DataError, match=r"0\.csv is given twice"):
            named(names)


def test_objects_that_lack_a_field(tmp_path):
    """Fields that only some files have, of which a segment has some of both."""
    rows = people(60).to_dicts()
    for k in range(2):
        some = [{**row, f"more{k}": 1.5 * i} for i, row in enumerate(rows[k * 30 : k * 30 + 30])]
        text = "".join(json.dumps(row) + "\n" for row in some)
        (tmp_path / f"{k}.jsonl").write_text(text)
    with planned(f"{tmp_path}/*.jsonl", target="pay") as (found, plan):
        run_in_segments(found, plan, tmp_path / "out", Asked(40, jobs=1), progress=False)
    model = gw.load(tmp_path / "out" / "model.gw")
    assert {"more0", "more1"} <= {*model.feature_names}


def test_predictions_that_a_killed_worker_left(tmp_path):
    first, *_ = cut(tmp_path, "parquet")

    def leave():
        (place,) = tmp_path.glob(".groupwise-*/predictions")
        (place / ".part-0123").write_bytes(b"half")

    with planned(first, target="pay") as (found, plan):
        asked = Asked(90, Meanwhile(leave))
        run_in_segments(found, plan, tmp_path / "out", asked, progress=False)
    names = {one.name for one in (tmp_path / "out" / "predictions").iterdir()}
    assert names == {f"part-{k:012d}.parquet" for k in (0, 90, 180)}


def test_folders_of_values(tmp_path):
    long = ["é" * 200, "é" * 201]
    assert len({folder_of("city", one) for one in long}) == 2
    assert all(len(folder_of("city", one)) == LONGEST for one in long)
    names = [folder_of("city", one) for one in ("..", "a/b", "../../x", "\n")]
    assert names == ["city=..", "city=a%2Fb", "city=..%2F..%2Fx", "city=%0A"]


def test_what_there_can_be_no_model_for_each_of(tmp_path, monkeypatch):
    cut(tmp_path)
    monkeypatch.chdir(tmp_path)
    job = Job(("*.csv",), None, {"target": "pay"}, "pay", tmp_path / "o", 1)
    with pytest.raises(DataError, match="'pay' is the label"):
        run_by(job, "local", print)
    with pytest.raises(DataError, match="a pipe gives them once"):
        run_by(job._replace(data=("-",), column="city"), "local", print)
    done = run_by(job._replace(column="city"), "local", print)
    assert sum(one.rows for one in done) == 900


def test_an_audit_says_which_row(tmp_path):
    frame = people().with_columns(theirs=pl.lit(20.0))
    huge = pl.when(pl.arange(0, 500) == 333).then(1e200).otherwise("theirs")
    parts = [
        written(frame[:400], tmp_path / "0.parquet"),
        written(frame[400:].with_columns(theirs=huge), tmp_path / "1.parquet"),
    ]
    said = r"Row 334 of .*1\.parquet: .*too large.* Take such"
    with (
        planned(parts, predictions=["theirs"], target="pay") as (found, plan),
        pytest.raises(gw.GroupwiseError, match=said),
    ):
        audit(found, plan, Asked(170, jobs=2), tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("segmented", [True, False])
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("by", ["memory://rows", "file"])
def test_urls_that_change_meanwhile(tmp_path, by, begun, segmented):
    """As many bytes, other ones, between the first pass and the run or in it."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    parts = cut(tmp_path, "parquet")
    urls = [f"file://{one}" for one in parts]
    if by != "file":
        urls = [f"{by}/{Path(one).name}" for one in parts]
        for one in parts:
            memory.pipe(f"/rows/{Path(one).name}", Path(one).read_bytes())

    def change():
        if by == "file":
            os.utime(parts[0], (0, 0))
        else:
            memory.pipe("/rows/0.parquet", Path(parts[0]).read_bytes())

    try:
        with planned(urls, target="pay") as (found, plan):
            if not begun:
                change()
            meanwhile = change if begun else int

            def read():
                if segmented:
                    asked = Asked(90, Meanwhile(meanwhile))
                    run_in_segments(found, plan, tmp_path / "out", asked, progress=False)
                    return
                for _ in pieces(found, plan.kinds, (), 90):
                    assert begun
                    meanwhile()

            with pytest.raises(DataError, match=r"0\.parquet was changed while") as raised:
                read()
    finally:
        if by != "file":
            memory.rm("/rows", recursive=True)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_files_that_change_between_the_models_of_values(tmp_path, monkeypatch):
    data = written(people(), tmp_path / "a.csv")

    def run_value(job, value):
        os.utime(data, (0, 0))
        return Done(value, folder_of(job.column, value), 1, 0.0, None, ())

    monkeypatch.setattr("groupwise.files.by.run_value", run_value)
    job = Job((data,), None, {"target": "pay"}, "city", tmp_path / "out", 1)
    with pytest.raises(DataError, match=r"a\.csv was changed while"):
        run_by(job, "local", print)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_urls_that_stay_as_they_are(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for path in cut(tmp_path, "parquet"):
        memory.pipe("/rows/" + Path(path).name, Path(path).read_bytes())
    try:
        for name in (f"file://{tmp_path}/*.parquet", "memory://rows/*.parquet"):
            with planned(name, target="pay") as (found, plan):
                run_in_segments(found, plan, tmp_path / "out", Asked(200, jobs=1), progress=False)
            assert pl.read_parquet(tmp_path / "out" / "predictions").height == 900
    finally:
        memory.rm("/rows", recursive=True)


def test_a_url_that_is_gone(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    (path, *_) = cut(tmp_path, "parquet")
    memory.pipe("/rows/0.parquet", Path(path).read_bytes())
    with opened("memory://rows/0.parquet") as source:
        source.check()
        memory.rm("/rows", recursive=True)
        with pytest.raises(DataError, match=r"0\.parquet: there is no such file"):
            source.check()


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_file_without_rows_among_others(tmp_path, kind, place):
    frame = people()
    parts = [frame[:200], frame[200:]]
    parts.insert(place, frame[:0])
    names = []
    for i, one in enumerate(parts):
        path = tmp_path / f"{i}.{kind}"
        if kind == "arrow":
            one.write_ipc(path)
        elif kind == "jsonl":
            one.write_ndjson(path) if len(one) else path.write_text("\n")
        else:
            written(one, path)
        names.append(str(path))
    ages = frame["age"].to_list()
    with opened(names) as source:
        found = scan(source, "pay")
        assert found.rows == 900
        every = list(ranges(units_of(found), 250))
    read = [int(x) for one in every for t, _ in one.chunks(["age"]) for x in t["age"].to_pylist()]
    assert read == ages
    last = every[-1].located(every[-1].rows)
    assert last == f"Row 700 of {names[1 if place == 2 else 2]}"


@pytest.mark.parametrize("nothing", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_text_without_a_byte_among_others(tmp_path, kind, nothing):
    """It is how some programs write a part that has no rows."""
    (tmp_path / f"0.{kind}").write_bytes(nothing)
    (tmp_path / f"2.{kind}").write_bytes(nothing)
    one = tmp_path / f"1.{kind}"
    people().write_ndjson(one) if kind == "jsonl" else written(people(), one)
    with opened(f"{tmp_path}/*.{kind}") as source:
        found = scan(source, "pay")
        assert found.rows == 900
        assert [unit.rows for unit in units_of(found)] == [900]
    one.unlink()
    with (
        pytest.raises(DataError, match=r"0\..* (is empty|holds no rows)") as raised,
        opened(f"{tmp_path}/*.{kind}") as source,
    ):
        scan(source, "pay")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_runs_over_a_file_without_rows(tmp_path, kind):
    expected = regret_of(cut(tmp_path, kind), tmp_path / "a")
    written(people()[:0], tmp_path / f"00.{kind}")
    assert regret_of(f"{tmp_path}/*.{kind}", tmp_path / "b") == expected


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_without_rows_that_are_refused(tmp_path, kind):
    """Other columns; all of them without rows; and no bytes where the format has some."""
    whole = written(people(), tmp_path / f"0.{kind}")
    for other, said in (
        (people()[:0].drop("age"), "1.* has no column 'age', which .*0"),
        (people()[:0].with_columns(more=1), "1.* has a column 'more', which .*0"),
    ):
        second = written(other, tmp_path / f"1.{kind}")
        with pytest.raises(DataError, match=said):
            regret_of([whole, second], tmp_path / "out")
    none = [written(people()[:0], tmp_path / f"{i}.{kind}") for i in range(2)]
    with pytest.raises(DataError, match=r"0\..* has a header but no rows"):
        regret_of(none, tmp_path / "out")
    if kind == "parquet":  # no table
        Path(none[1]).write_bytes(b"")
        written(people(), Path(none[0]))
        with pytest.raises(DataError, match=r"1\.parquet is empty"):
            regret_of(none, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def in_segments(data, out, rows=300):
    with planned(data, target="pay") as (found, plan):
        run_in_segments(found, plan, out, Asked(rows, jobs=1), progress=False)


def listing(out):
    return sorted(str(one.relative_to(out)) for one in out.rglob("*") if one.is_file())


@pytest.mark.slow
def test_a_folder_holds_the_predictions_of_one_run(tmp_path):
    """Whatever ran there before; and what others have put there stays."""
    out, data = tmp_path / "out", written(people(600), tmp_path / "a.csv")
    rest = ["model.gw", "regret.json", "report.html"]
    parts = [f"predictions/part-{k:012d}.parquet" for k in (0, 300)]
    regret_of(data, out)
    assert listing(out) == sorted([*rest, "predictions.csv"])
    in_segments(data, out)
    assert listing(out) == sorted([*rest, *parts])
    regret_of(data, out)
    assert listing(out) == sorted([*rest, "predictions.csv"])
    assert not (out / "predictions").exists()

    mine = ["notes.txt", "predictions/mine.parquet", "predictions/deeper/part.txt"]
    (out / "predictions" / "deeper").mkdir(parents=True)
    for name in mine:
        (out / name).write_text("mine")
    in_segments(data, out, 100)
    in_segments(data, out)
    assert listing(out) == sorted([*rest, *parts, *mine])
    regret_of(data, out)
    assert listing(out) == sorted([*rest, "predictions.csv", *mine])
    (out / "predictions.csv").write_text("mine,too\n")
    in_segments(data, out)
    assert listing(out) == sorted([*rest, "predictions.csv", *parts, *mine])


def test_a_run_that_fails_takes_nothing_away(tmp_path):
    out, data = tmp_path / "out", written(people(600), tmp_path / "a.csv")
    gap = pl.when(pl.arange(0, 600) == 400).then(None).otherwise("pay")
    bad = written(people(600).with_columns(pay=gap), tmp_path / "bad.csv")
    regret_of(data, out)
    before = {name: (out / name).read_bytes() for name in listing(out)}
    with pytest.raises(DataError, match="label is missing"):
        in_segments(bad, out)
    assert {name: (out / name).read_bytes() for name in listing(out)} == before
    (out / "predictions").write_text("a file")
    before["predictions"] = b"a file"
    with pytest.raises(OutputError, match="predictions is a file"):
        in_segments(data, out)
    assert {name: (out / name).read_bytes() for name in listing(out)} == before


@pytest.mark.parametrize("segmented", [True, False])
@pytest.mark.parametrize("name", ["predictions.csv", "predictions/part-000000000000.parquet"])
def test_a_run_does_not_replace_what_it_reads(tmp_path, name, segmented):
    """Nor does a link to it; elsewhere, a file may have any name."""
    (tmp_path / "out" / "predictions").mkdir(parents=True)
    data = tmp_path / "out" / name
    written(people(600), data)
    link = tmp_path / "link"
    link.symlink_to(data)
    before = data.read_bytes()
    go = in_segments if segmented else regret_of
    for one in (data, link):
        with pytest.raises(OutputError, match="is read, and would be replaced"):
            go(str(one), tmp_path / "out")
    assert data.read_bytes() == before
    assert listing(tmp_path / "out") == [name]
    go(str(data), tmp_path / "elsewhere")
    assert data.read_bytes() == before


def test_a_damaged_file_among_others(tmp_path):
    whole, bad = cut(tmp_path, "parquet")[1:]
    Path(bad).write_bytes(Path(bad).read_bytes()[:-8])
    with pytest.raises(DataError, match=r"Cannot read .*2\.parquet: .*[^.]\.$"):
        in_segments([whole, bad], tmp_path / "out")
    assert not (tmp_path / "out").exists()
