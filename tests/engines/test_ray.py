"""One, two and three nodes, killed workers and lost nodes: the same bytes as on this machine."""

import json
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupwise as gw
from groupwise.engines import each, opened
from groupwise.engines.fingerprint import fingerprint
from groupwise.engines.ray import RayEngine
from groupwise.errors import DataError, EngineError, LabelError
from groupwise.files.audit import audit
from groupwise.files.by import Job, run_by
from groupwise.files.plan import planned
from groupwise.files.run import run_in_segments
from groupwise.files.segments import Asked
from tests.engines import tasks
from tests.engines.conftest import STORE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

ROWS, SEGMENT = 6_000, 500


def people(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "city": rng.choice(["Bonn", "Köln", "Trier"], rows, p=[0.6, 0.399, 0.001]),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(18, 80, rows),
            "size": rng.normal(170.0, 9.0, rows),
        }
    )
    late = np.arange(rows) > rows // 2  # a value that first comes in a later segment
    frame = frame.with_columns(
        city=pl.when(pl.Series(late & (frame["age"] == 30).to_numpy()))
        .then(pl.lit("Ulm"))
        .otherwise(frame["city"])
    )
    pay = 20.0 + 0.4 * frame["age"].to_numpy() + 5.0 * (frame["sex"] == "m").to_numpy()
    return frame.with_columns(pay=pl.Series(pay + rng.normal(0.0, 4.0, rows)))


def model():
    loss = gw.losses.Square(0.0, 80.0)
    features = {"age": (18, 80), "size": (130, 210), "city": None}
    return gw.Groupwise([gw.by("city"), gw.by("sex")], loss=loss, features=features)


@pytest.fixture(scope="module", autouse=True)
def one_key():
    """Models sign their tickets with a key of chance; here all have the same one."""
    chance = SimpleNamespace(**{**vars(os), "urandom": bytes})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("groupwise.model.os", chance)
        yield


def replayed(folder, engine):
    mine = model()
    found = mine.replay(people(), "pay", segment=SEGMENT, engine=engine)
    mine.save(folder / "model.gw")
    return found.prediction.tobytes(), mine.regret().rows, (folder / "model.gw").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return replayed(tmp_path_factory.mktemp("local"), "local")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    frame = people()
    frame[:2_300].write_parquet(folder / "a.parquet", row_group_size=700)
    frame[2_300:].write_parquet(folder / "b.parquet", row_group_size=1_100)
    return folder


PLAIN = {"features": "age, size, city", "hinges": False}
"""Settings without makers, so that segments are read at once."""


def run_files(files, out, engine, **settings):
    with planned(f"file://{files}/*.parquet", target="pay", **settings) as (found, plan):
        run_in_segments(found, plan, out, Asked(SEGMENT, engine), progress=False)
    parts = {one.name: one.read_bytes() for one in (out / "predictions").iterdir()}
    rows = json.loads((out / "regret.json").read_text("utf-8"))["rows"]
    return parts, rows, (out / "model.gw").read_bytes()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nodes(nodes, expected, tmp_path, count):
    nodes.have(count)
    assert replayed(tmp_path, "ray") == expected


@pytest.mark.parametrize("makers", [True, False])
def test_files(nodes, files, tmp_path, makers):
    """With makers, whose state is carried along, and without."""
    settings = {} if makers else PLAIN
    found = run_files(files, tmp_path / "ray", "ray", **settings)
    assert len(found[0]) == ROWS // SEGMENT
    assert found == run_files(files, tmp_path / "local", "local", **settings)
    whole = pl.read_parquet(tmp_path / "ray" / "predictions")
    assert whole["row"].to_list() == [*range(1, ROWS + 1)]
    assert whole["label"].to_list() == people()["pay"].to_list()
    again = gw.load(tmp_path / "ray" / "model.gw")
    assert again.issued == ROWS
    again.learn_one(people(1).drop("pay").to_dicts()[0], 30.0)
    assert again.regret().settled == ROWS + 1


@pytest.mark.parametrize("killed", ["add_up", "learn", "follow", "record", "settle"])
def test_kills(nodes, expected, tmp_path, killed):
    """kill -9 of the worker that is at one kind of task, twice in mid-run."""
    seen = []

    def before(function):
        seen.append(function.__name__)
        count = seen.count(function.__name__)
        if function.__name__ == killed and count in (2, 7):
            return str(tmp_path / f"{killed}-{count}")
        return None

    with opened("ray") as engine:
        assert replayed(tmp_path, tasks.Around(engine, before)) == expected
    assert len([*tmp_path.glob(f"{killed}-*")]) == 2


def test_a_node_is_lost(nodes, expected, tmp_path):
    nodes.have(3)
    seen = []

    def before(function):
        seen.append(function.__name__)
        if seen.count("settle") == 7 and function.__name__ == "settle":
            nodes.remove()

    with opened("ray") as engine:
        assert engine.workers == 3
        assert replayed(tmp_path, tasks.Around(engine, before)) == expected


@pytest.fixture(scope="module")
def expected_files(files, tmp_path_factory):
    return run_files(files, tmp_path_factory.mktemp("local") / "out", "local", **PLAIN)


@pytest.mark.parametrize("killed", ["read", "scout", "advance", "encode", "write"])
def test_kills_amid_files(nodes, files, expected_files, tmp_path, killed):
    """kill -9 of the worker that reads or writes files."""
    seen = []

    def before(function):
        seen.append(function.__name__)
        again = function.__name__ == killed and seen.count(killed) in (3, 8)
        return str(tmp_path / f"{killed}-{seen.count(killed)}") if again else None

    with opened("ray") as engine:
        around = tasks.Around(engine, before)
        assert run_files(files, tmp_path / "out", around, **PLAIN) == expected_files
    assert len([*tmp_path.glob(f"{killed}-*")]) == 2
    assert [*(tmp_path / "out" / "predictions").glob(".*")] == []


def test_a_node_is_lost_amid_files(nodes, files, expected_files, tmp_path):
    nodes.have(3)
    seen = []

    def before(function):
        seen.append(function.__name__)
        if function.__name__ == "write" and seen.count("write") == 8:
            nodes.remove()

    with opened("ray") as engine:
        around = tasks.Around(engine, before)
        assert run_files(files, tmp_path / "out", around, **PLAIN) == expected_files
    assert len(nodes.others) == 1


def test_a_model_for_every_value(nodes, files, tmp_path):
    found = []
    for engine in ("local", "ray"):
        out, asked = tmp_path / engine, {"target": "pay", **PLAIN}
        done = run_by(Job((f"{files}/*.parquet",), None, asked, "sex", out, None), engine, print)
        assert [one.value for one in done] == people()["sex"].unique(maintain_order=True).to_list()
        folders = [out / one.folder for one in done]
        texts = [json.loads((one / "regret.json").read_text("utf-8"))["rows"] for one in folders]
        found.append((texts, [(one / "predictions.csv").read_bytes() for one in folders]))
    assert found[0] == found[1]


def test_an_audit(nodes, files):
    found = []
    for engine in ("local", "ray"):
        about: dict[str, Any] = {"target": "pay", "predictions": ["size"]}
        with planned(f"{files}/*.parquet", **about) as (scanned, plan):
            (table,) = audit(scanned, plan, Asked(SEGMENT, engine), progress=False).values()
        found.append(table.rows)
    assert found[0] == found[1]


def test_workers_have_one_thread_of_linear_algebra(nodes):
    with opened("ray") as engine:
        assert {*engine.get(engine.submit(tasks.threads))} == {1}


def test_a_map(nodes):
    with opened("ray") as engine:
        assert list(each(engine, tasks.double, [(i,) for i in range(9)])) == [*range(0, 18, 2)]


def test_errors_come_as_they_are(nodes):
    with opened("ray") as engine:
        with pytest.raises(LabelError) as raised:
            engine.get(engine.submit(tasks.double, engine.submit(tasks.refuse, 5)))
        assert (str(raised.value), raised.value.row) == ("row 7: 5 is no label.", 7)
        with pytest.raises(ZeroDivisionError):
            engine.get(engine.submit(tasks.fail, 5))


def test_a_store_too_small(nodes):
    with opened("ray") as engine, pytest.raises(EngineError, match="holds 120 MB") as raised:
        engine.put({"rows": np.empty(STORE // 8 + 1)})
    assert "\n" not in str(raised.value)


def test_other_digits_are_refused_by_name(nodes):
    """A worker whose digits are others than those agreed on says where it is."""
    with opened("ray") as engine:
        assert isinstance(engine, RayEngine)
        version = fingerprint().split(":")[0]
        engine.digits = f"{version}:0000000000000000"
        address = nodes.ray.nodes()[0]["NodeManagerAddress"]
        with pytest.raises(EngineError, match=f"Node {address} .* does not compute the digits"):
            engine.get(engine.submit(tasks.double, 1))


def test_bad_rows_leave_nothing(nodes, tmp_path):
    """A row without a label, in the second file: its place is said, and nothing is left."""
    gap = pl.when(pl.arange(0, ROWS) == 3_000).then(None).otherwise("pay")
    frame = people().with_columns(pay=gap)
    frame[:2_300].write_parquet(tmp_path / "a.parquet")
    frame[2_300:].write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"Row 701 of .*b\.parquet: the label is missing"):
        run_files(tmp_path, tmp_path / "out", "ray")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]
