"""Snapshots and tickets made to do harm: refused in words, in little time and room."""

import io
import json
import random
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import groupwise as gw
from groupwise import archive
from groupwise.errors import SnapshotError, TicketError
from tests import crafted
from tests.few import few
from tests.test_snapshot import CONFIGURATIONS, stream


@pytest.fixture(scope="module")
def model():
    """One with everything that a page of JSON can say."""
    learners = [gw.learners.Ridge(1.0), gw.learners.Ridge(0.1, forward=True, forgetting=0.99)]
    found = gw.Groupwise(
        [gw.by("g"), gw.where("u", ">", 0.5)], learner=learners, prior={"g=1": 2.0}
    )
    for row, label in stream(30):
        found.learn_one(row, label)
    return found


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.gw")
    return tmp_path / "model.gw"


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_changed_files_are_refused_or_hold_finite_numbers(path, seed):
    generator, snapshot = random.Random(seed), crafted.opened(path)
    found = []
    for _ in range(60):
        changed, change = crafted.mutated(snapshot, generator)
        try:
            found.append(crafted.outcome(crafted.written(path, changed)))
        except Exception as error:
            error.add_note(str(change))
            raise
    assert set(found) == {crafted.REFUSED, crafted.LOADED}


def test_a_file_that_is_not_changed_is_loaded(path, model):
    crafted.written(path, crafted.opened(path))
    assert crafted.outcome(path) == crafted.LOADED
    assert gw.load(path).regret().rows == model.regret().rows


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["ridge.theta", "ridge.inverse", "hindsight.right", "ledger.loss"])
def test_numbers_that_are_not_finite_are_damage(path, name, value):
    snapshot = crafted.opened(path)
    snapshot.arrays[name].flat[0] = value
    crafted.written(path, snapshot)
    with pytest.raises(SnapshotError, match=f"{name} holds a number that is not finite"):
        gw.load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("next", -1),
        ("next", 2**70),
        ("next", 1.5),
        ("version", True),
        ("settled", [[0, 99]]),
        ("settled", [[3, 5], [0, 2]]),
        ("settled", [[0]]),
        ("settled", "always_on"),
        ("key", "00" * 99),
        ("schema", 0),
        ("schema", True),
    ],
)
def test_counts_that_are_none_are_damage(path, key, value):
    snapshot = crafted.opened(path)
    snapshot.header[key] = value
    crafted.written(path, snapshot)
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda a: a[None]),
        ("labels", lambda a: a + 1.0),
        ("labels", lambda a: a - 1.0),
        ("labels", lambda a: a.astype(np.int64)),
        ("values", lambda a: a * 1e200),
        ("weights", lambda a: -a),
        ("groups", lambda a: np.zeros_like(a)),
        ("groups", lambda a: a + 1),
        ("indices", lambda a: a - 1),
        ("members", lambda a: a[::-1].copy()),
        ("groups", lambda a: a[::-1].copy()),
    ],
)
def test_kept_rows_that_are_none_are_damage(name, change, tmp_path):
    model = gw.Groupwise([gw.by("g")], loss=gw.losses.Log())
    for row, label in stream(5):
        model.learn_one(row, float(label > 0.5))
    model.save(tmp_path / "a.gw")
    snapshot = crafted.opened(tmp_path / "a.gw")
    snapshot.arrays[f"rows.{name}"] = change(snapshot.arrays[f"rows.{name}"])
    crafted.written(tmp_path / "a.gw", snapshot)
    with pytest.raises(SnapshotError, match="kept row"):
        gw.load(tmp_path / "a.gw")


@pytest.mark.parametrize(
    ("name", "value"),
    [("hindsight.factor", 1e308), ("aggregator.mass", -1.0), ("ledger.rounds", -1.0)],
)
def test_numbers_that_cannot_be_are_damage(path, name, value):
    snapshot = crafted.opened(path)
    snapshot.arrays[name].flat[0] = value
    crafted.written(path, snapshot)
    with pytest.raises(SnapshotError, match=name):
        gw.load(path)


@pytest.mark.parametrize("which", [1, 2])
def test_sums_of_windows_that_cannot_be_are_damage(which, tmp_path):
    model = gw.Groupwise([], gw.learners.Ridge(), windows=gw.windows(1))
    for row, label in stream(30):
        model.learn_one(row, label)
    model.save(tmp_path / "a.gw")
    snapshot = crafted.opened(tmp_path / "a.gw")
    assert snapshot.arrays["windows.freed"].all()
    snapshot.arrays["windows.freed"][which] = 1e200
    crafted.written(tmp_path / "a.gw", snapshot)
    with pytest.raises(SnapshotError, match=r"windows\.freed"):
        gw.load(tmp_path / "a.gw")


@pytest.mark.parametrize("group", ["", []])
def test_a_feature_of_a_group_that_is_none_is_damage(path, group):
    snapshot = crafted.opened(path)
    number = next(one for one in snapshot.header["encoder"]["features"] if one[0] == "number")
    number.append(group)
    crafted.written(path, snapshot)
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(path)


def repacked(path, change=lambda info, data: data, again=(), kind=zipfile.ZIP_STORED):
    """The same members, each as ``change`` makes it; those ``again`` are there twice."""
    with zipfile.ZipFile(path) as file:
        members = [(info.filename, file.read(info)) for info in file.infolist()]
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, data in members:
            file.writestr(name, change(name, data))
            if name in again:
                with pytest.warns(UserWarning, match="Duplicate"):
                    file.writestr(name, data)


def flagged(data):
    """Every member says that it is encrypted."""
    data, place = bytearray(data), 0
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(sign)
        while place >= 0:
            data[place + offset] |= 1
            place = data.find(sign, place + 4)
    return bytes(data)


def shaped(shape, kind="<f8", content=b"\x00" * 8):
    """A member that says it has this shape."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + content


def array_as(data):
    return lambda path: repacked(path, lambda name, old: data if "theta" in name else old)


def header_as(change):
    def written(path):
        repacked(path, lambda name, old: change(old) if name == archive.HEADER else old)

    return written


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def aliased(path):
    """A thousand members that are all the same bytes of the file."""
    repacked(path)
    data = path.read_bytes()
    start, end = data.find(b"PK\x01\x02"), data.find(b"PK\x05\x06")
    entry = data[start : data.find(b"PK\x01\x02", start + 4)]
    name = entry[46 : 46 + len(archive.HEADER)]
    more = [entry.replace(name, f"{i:0{len(name)}d}".encode()) for i in range(1000)]
    directory = data[start:end] + b"".join(more)
    count = data[start:end].count(b"PK\x01\x02") + len(more)
    last = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), start, 0)
    path.write_bytes(data[:start] + directory + last)


CRAFTED = {
    "an encryption flag": lambda path: path.write_bytes(flagged(path.read_bytes())),
    "a compressed header": lambda path: repacked(path, kind=zipfile.ZIP_DEFLATED),
    "a bomb": header_as(lambda old: old + b" " * 50_000_000),
    "members twice": lambda path: repacked(path, again=["ridge.theta.npy"]),
    "headers twice": lambda path: repacked(path, again=[archive.HEADER]),
    "a thousand members in one place": aliased,
    "a shape of 1e12": array_as(shaped((10**12,))),
    "a shape of 1e30": array_as(shaped((10**30, 0))),
    "a negative shape": array_as(shaped((-1,))),
    "two negative lengths": array_as(shaped((-1, -1))),
    "a shape of many axes": array_as(shaped((1,) * 200)),
    "a deep shape": array_as(shaped("(" * 3_000 + ")" * 3_000)),
    "a shape that is code": array_as(shaped("__import__('os').getpid()")),
    "objects": array_as(pickled()),
    "text": array_as(shaped((1,), "<U2")),
    "a record": array_as(shaped((1,), "<f8', '<f8")),
    "another kind": array_as(shaped((2,), "<f4")),
    "another version": array_as(b"\x93NUMPY\x03\x00" + shaped((1,))[8:]),
    "no array": array_as(b""),
    "deep JSON": header_as(lambda old: b"[" * 200_000),
    "deep groups": header_as(
        lambda old: old.replace(
            b'"groups": [', b'"groups": [' + b'{"not": ' * 400 + b"{}" + b"}" * 400 + b", ", 1
        )
    ),
    "a number of 5,000 digits": header_as(lambda old: old[:-1] + b', "a": ' + b"1" * 5_000 + b"}"),
    "half a page": header_as(lambda old: old[: len(old) // 2]),
    "no text": header_as(lambda old: b"\xff\xfe\xfd"),
    "arrays that are a number": header_as(lambda old: json.dumps({**json.loads(old), "arrays": 3})),
    "no arrays": header_as(lambda old: json.dumps({**json.loads(old), "arrays": [{}, None]})),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_refused(path, name):
    if name == "a bomb":
        repacked(path, lambda one, old: old + b" " * 50_000_000 * (one == archive.HEADER), (), 8)
        assert path.stat().st_size < 1_000_000
    else:
        CRAFTED[name](path)
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError, match="damaged"):
            gw.load(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_what_never_ends_is_not_read(tmp_path):
    code = "import groupwise as gw; gw.load('/dev/zero')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "not a groupwise snapshot" in run.stderr


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_model_that_has_seen_nothing_is_saved_and_loaded(name, tmp_path):
    groups = [gw.by("g"), gw.where("u", ">", 0.5)]
    model = gw.Groupwise(groups, **CONFIGURATIONS[name])
    model.save(tmp_path / "a.gw")
    loaded = gw.load(tmp_path / "a.gw")
    for row, label in stream(10):
        model.learn_one(row, label)
        loaded.learn_one(row, label)
    assert loaded.regret().rows == model.regret().rows


@pytest.mark.parametrize("seed", range(3))
def test_changed_tickets_are_refused(model, seed):
    generator = random.Random(seed)
    text = model.predict({"g": "1", "u": 0.5}).to_json()
    said = gw.Ticket.from_json(text).content()
    for _ in range(200):
        changed, change = crafted.mutated_ticket(text, generator)
        try:
            if crafted.ticket_outcome(model, changed) == crafted.LOADED:
                assert gw.Ticket.from_json(changed).content() == said
        except Exception as error:
            error.add_note(str(change))
            raise
    model.forget(gw.Ticket.from_json(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"number": ' + "1" * 5_000 + "}",
        b"\xff\xfe",
        None,
    ],
)
def test_texts_that_are_no_tickets(text):
    with pytest.raises(TicketError, match="not a ticket"):
        gw.Ticket.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**12]},
        {"shape": [2, -1, -1]},
        {"advice": [{}, {}]},
        {"prediction": "high"},
        {"said": [[[10**400]]]},
        {"said": [[[0.5]]]},
    ],
)
def test_plays_that_are_none(model, change):
    page = json.loads(model.predict({"g": "1", "u": 0.5}).to_json())
    page["play"] = {**page["play"], **change}
    if "advice" in change or "shape" in change:
        page["play"] = {"advice": [0.5], "shape": [1, 1], "probabilities": [1.0], **page["play"]}
        page["play"] |= change
        del page["play"]["said"]
    with pytest.raises(TicketError, match="not a ticket"):
        gw.Ticket.from_json(json.dumps(page))


def test_a_ticket_for_nobody_comes_back():
    model = gw.Groupwise([gw.by("g")], always_on=False)
    ticket = gw.Ticket.from_json(model.predict({"g": None, "u": 0.5}).to_json())
    assert (ticket.groups, ticket.advice.tolist(), ticket.weights.tolist()) == ({}, [], [])
    model.learn(ticket, 0.5)
    assert model.regret().settled == 0
