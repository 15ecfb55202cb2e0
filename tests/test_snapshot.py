"""Snapshots: bit for bit, atomic, no pickle, and a clear word about every bad file."""

import io
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise import archive, snapshot
from groupwise.errors import SnapshotError
from groupwise.learners.crew import Crew


def stream(count, seed=0):
    generator = np.random.default_rng(seed)
    for t in range(count):
        row = {"g": str(generator.integers(0, 3)), "u": float(generator.random())}
        if t > count // 2:
            row["late"] = float(generator.random())
        yield row, float(generator.random())


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "forward": {"learner": gw.learners.Ridge(0.5, forward=True)},
    "forgetting": {"learner": gw.learners.Ridge(2.0, forgetting=0.9)},
    "sample": {"play": "sample", "seed": 7},
    "specialists": {
        "aggregator": gw.aggregators.Specialists(),
        "learner": [gw.learners.Ridge(0.1), gw.learners.Ridge(10.0)],
        "prior": {"g=1": 3.0},
    },
    "range": {"loss": gw.losses.Square(-3, 5), "features": ["u"], "clip": False},
    "scaled": {"features": {"u": (0, 2)}},
    "absolute": {"loss": gw.losses.Absolute(0, 2)},
    "no always-on": {"always_on": False, "indicators": False},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_loaded_model_goes_on_bit_for_bit(name, tmp_path):
    model = gw.Groupwise([gw.by("g"), gw.where("u", ">", 0.5)], **CONFIGURATIONS[name])
    for row, label in stream(60):
        model.learn_one(row, label)
    model.save(tmp_path / "a.gw")
    loaded = gw.load(tmp_path / "a.gw")
    for row, label in stream(60, seed=1):
        if "late" in row:  # a field that came after the file was written
            row["later"] = label / 2
        one, other = model.predict(row), loaded.predict(row)
        assert one.prediction == other.prediction
        assert (one.weights == other.weights).all()
        model.learn(one, label)
        loaded.learn(other, label)
    assert model.regret().rows == loaded.regret().rows
    model.save(tmp_path / "b.gw")
    loaded.save(tmp_path / "c.gw")
    assert (tmp_path / "b.gw").read_bytes() == (tmp_path / "c.gw").read_bytes()


def test_wide_models_keep_their_held_back_rows(tmp_path):
    generator = np.random.default_rng(0)
    model = gw.Groupwise([])
    rows = [{f"x{i}": float(v) for i, v in enumerate(generator.random(70))} for _ in range(40)]
    for t, row in enumerate(rows):
        model.learn_one(row, 0.5)
        if t == 22:
            model.save(tmp_path / "m.gw")
            loaded = gw.load(tmp_path / "m.gw")
        elif t > 22:
            loaded.learn_one(row, 0.5)
    assert loaded.predict_one(rows[0]) == model.predict_one(rows[0])


def saved(tmp_path):
    model = gw.Groupwise([gw.by("g")])
    for row, label in stream(20):
        model.learn_one(row, label)
    path = tmp_path / "model.gw"
    model.save(path)
    return path


def test_the_file_holds_arrays_and_json_and_no_pickle(tmp_path):
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as file:
        header = json.loads(file.read("groupwise.json"))
        assert header["schema"] == archive.SCHEMA
        for name in file.namelist():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(file.read(name)), allow_pickle=False)
                assert array.dtype in (np.float64, np.int64)
            else:
                assert name == "groupwise.json"


def test_every_truncation_is_noticed(tmp_path):
    path = saved(tmp_path)
    data = path.read_bytes()
    for size in [1, 2, 3, 10, *range(20, len(data), 211), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(SnapshotError, match=r"truncated|damaged|not a groupwise"):
            gw.load(path)


def test_flipped_bits_are_noticed_or_harmless(tmp_path):
    path = saved(tmp_path)
    data = path.read_bytes()
    good = gw.load(path).regret().rows
    generator = np.random.default_rng(0)
    noticed = 0
    for _ in range(150):
        broken = bytearray(data)
        broken[generator.integers(len(data))] ^= 1 << generator.integers(8)
        path.write_bytes(bytes(broken))
        try:
            assert gw.load(path).regret().rows == good
        except SnapshotError:
            noticed += 1
    assert noticed > 100


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"hello, world", "not a groupwise snapshot"),
        (b"PK\x03\x04 but nothing else", "truncated or damaged"),
    ],
)
def test_foreign_files_are_named_so(content, message, tmp_path):
    path = tmp_path / "f.gw"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=message):
        gw.load(path)


def test_another_zip_archive_is_foreign(tmp_path):
    path = tmp_path / "f.gw"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "x")
    with pytest.raises(SnapshotError, match="not a groupwise snapshot"):
        gw.load(path)


def rewritten(path, change):
    """The snapshot with another header."""
    header, arrays = archive.read(path)
    change(header, arrays)
    for key in ("format", "schema", "arrays"):
        header.setdefault(key, None)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("groupwise.json", json.dumps(header))
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            file.writestr(f"{key}.npy", buffer.getvalue())


def test_a_file_of_schema_1_is_read():
    """Its figures were printed by the version that wrote it, after 21 labels and after 42."""
    model = gw.load(Path(__file__).parent / "snapshots" / "schema_1.gw")
    generator = random.Random(0)

    def rows():
        for _ in range(21):
            yield (
                {
                    "sex": generator.choice("fm"),
                    "age": generator.random(),
                    "bmi": generator.random(),
                },
                round(generator.random(), 3),
            )

    def figures():
        return [
            model.predict_one({"sex": "f", "age": 0.25, "bmi": 0.75}),
            *(row[key] for row in model.regret() for key in ("regret", "certificate")),
        ]

    assert figures() == pytest.approx(
        [
            0.6058694920483229,
            *(0.856844606575246, 1.9249116266616058),
            *(0.733494867492219, 1.9610735316980121),
            *(1.43243117228451, 3.1456919532857137),
        ],
        rel=1e-12,
    )
    for _ in rows():
        pass
    for row, label in rows():
        model.learn_one(row, label)
    assert figures() == pytest.approx(
        [
            0.6189293042068071,
            *(0.9222542050973992, 2.160672141273421),
            *(0.923316206015715, 2.4180838410139507),
            *(1.8089969557237584, 3.7000727481716638),
        ],
        rel=1e-12,
    )


def test_a_file_of_schema_1_goes_on_alike_in_both_drivers():
    """It has rows held back, five of sixteen: here they are in the sums."""
    path = Path(__file__).parent / "snapshots" / "schema_1.gw"
    loop, replayed = gw.load(path), gw.load(path)
    generator = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "sex": generator.choice(["f", "m"], 300),
            "age": generator.random(300),
            "bmi": generator.random(300),
            "y": generator.random(300),
        }
    )
    for row in frame.to_dict("records"):
        label = row.pop("y")
        loop.learn_one(row, label)
    replayed.replay(frame, target="y")
    assert loop.regret().rows == replayed.regret().rows
    probe = {"sex": "f", "age": 0.25, "bmi": 0.75}
    assert loop.predict_one(probe) == replayed.predict_one(probe)


def test_hindsight_from_older_sums_says_what_it_cannot_tell():
    """Sums to 16 digits are enough for a small column, and not for a Unix timestamp."""
    model = gw.load(Path(__file__).parent / "snapshots" / "schema_1.gw")
    assert {row["status"] for row in model.regret()} == {"loose"}
    generator = np.random.default_rng(0)
    moment, gram = np.array([[20.0, 0.0]]), np.array([[[40.0, 0.0], [0.0, 0.0]]])
    for offset, status in ((10.0, False), (1.7e9, True)):
        x = offset + generator.random(40)
        y = generator.random(40)
        gram[0, 1] = x.sum(), x @ x
        moment[0] = y.sum(), x @ y
        old = {
            "hindsight.waiting": np.array([0]),
            "hindsight.rows": np.array([40]),
            "hindsight.power": np.array([y @ y]),
            "hindsight.moment": moment,
            "hindsight.held": np.zeros((1, 8, 2)),
            "hindsight.gram": gram,
            "hindsight.place": np.array([0]),
            "hindsight.placed": np.array([1]),
        }
        crew = Crew([], gw.losses.Square())
        crew.load(snapshot.from_sums(old), 1, 2)
        found = crew.hindsight(0, 2)
        assert found is not None
        assert found.uncertain == status


def test_a_newer_file_asks_for_an_upgrade(tmp_path):
    path = saved(tmp_path)
    rewritten(path, lambda header, arrays: header.update(schema=archive.SCHEMA + 1))
    with pytest.raises(SnapshotError, match=r"newer groupwise.*Upgrade"):
        gw.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: arrays.update({"ridge.theta": arrays["ridge.theta"][:1]}),
        lambda header, arrays: header["names"].append("surplus"),
        lambda header, arrays: header["names"].reverse(),
        lambda header, arrays: header["members"].pop(),
        lambda header, arrays: header["members"][0].__setitem__(0, 7),
        lambda header, arrays: header["members"][0].__setitem__(1, [1]),
        lambda header, arrays: header["model"]["aggregator"].update(type="System"),
        lambda header, arrays: header["model"].update(unknown=1),
        lambda header, arrays: header.pop("settled"),
        lambda header, arrays: header["model"]["learner"][0].update(penalty=-1),
        lambda header, arrays: arrays.update(
            {"ridge.theta": arrays["ridge.theta"].astype(np.float32)}
        ),
        # Numbers that would be taken for positions in memory.
        lambda header, arrays: arrays["ridge.place"].__setitem__(-1, 10**9),
        lambda header, arrays: arrays["ridge.place"].__setitem__(0, -2),
        lambda header, arrays: arrays["hindsight.place"].__setitem__(-1, 10**9),
        lambda header, arrays: arrays["ridge.placed"].__setitem__(0, 10**9),
        lambda header, arrays: arrays["hindsight.placed"].__setitem__(0, -1),
        lambda header, arrays: arrays["ridge.waiting"].__setitem__(0, 8),
        lambda header, arrays: arrays["ridge.waiting"].__setitem__(0, -1),
        lambda header, arrays: arrays["hindsight.waiting"].__setitem__(0, 10**9),
    ],
)
def test_parts_that_do_not_fit_are_damage(change, tmp_path):
    path = saved(tmp_path)
    rewritten(path, change)
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(path)


def test_arrays_with_objects_are_refused_unread(tmp_path):
    path = saved(tmp_path)
    header, arrays = archive.read(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("groupwise.json", json.dumps(header))
        buffer = io.BytesIO()
        np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
        for key in arrays:
            file.writestr(f"{key}.npy", buffer.getvalue())
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(path)


def test_a_crash_while_saving_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()
    model = gw.load(path)
    model.learn_one({"g": "0", "u": 0.5}, 0.5)

    def crash(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(SnapshotError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.gw"]
    monkeypatch.undo()
    monkeypatch.setattr(
        np.lib.format, "write_array", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.gw"]


def test_places_that_cannot_be_written_or_read(tmp_path):
    model = gw.Groupwise([])
    with pytest.raises(SnapshotError, match="Cannot write"):
        model.save(tmp_path / "no" / "such" / "folder.gw")
    with pytest.raises(SnapshotError, match="Cannot read"):
        gw.load(tmp_path / "missing.gw")
    with pytest.raises(SnapshotError, match=r"is a folder\. Give the model\.gw of"):
        gw.load(tmp_path)
    model.save(tmp_path / "model.gw")
    with pytest.raises(SnapshotError, match=r"is a folder\. Give the model in it: .*model\.gw"):
        gw.load(tmp_path)


def test_a_snapshot_may_say_how_its_table_is_read(tmp_path):
    model = gw.Groupwise([gw.by("g")])
    model.learn_one({"g": "a", "u": 0.5}, 0.5)
    table = {"target": "y", "kinds": {"u": "number"}}
    model.save(tmp_path / "with.gw", table=table)
    model.save(tmp_path / "without.gw")
    assert archive.read(tmp_path / "with.gw")[0]["table"] == table
    assert archive.read(tmp_path / "without.gw")[0].get("table") is None
    assert gw.load(tmp_path / "with.gw").regret().rows == model.regret().rows
