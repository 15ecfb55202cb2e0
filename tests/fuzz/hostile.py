"""Files that were made to hurt, kills, full disks, threads: an error that says so, or no harm.

    python -m tests.fuzz.hostile --seconds 600 --seed 1 --jobs 2

Snapshots with valid checksums whose parts were changed, damaged bytes, tickets, tables of rows;
processes killed while they save or learn; disks that are full; threads that share a model. Nothing
but groupwise's own errors comes out; a file is the old or the new one; whatever model there is in
the end works, and all its state is finite.
"""

import copy
import io
import json
import os
import random
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import groupwise as gw
from tests.cli.commands import invoke, people_file
from tests.fuzz import draws
from tests.fuzz.adversary import check_state
from tests.fuzz.equality import MAKERS, SCRATCH
from tests.fuzz.runner import main

HEADER = "groupwise.json"
ODD: list[Any] = [None, True, -1, 0, 3, 2**62, 10**400, 1e308, -1e-320, float("nan")]
ODD += [float("inf"), "", "x", "\ud800", "always_on", [], [[]], {}, {"type": "Ridge"}, [1, 2, 3]]


def learned(draw):
    """A model that has learned a little, and more of its rows and labels."""
    kind = draws.choose(draw, list(MAKERS))
    model, rows, labels = MAKERS[kind](draw, 20)
    waiting = []
    for t in range(10):
        ticket = model.predict(rows[t])
        if ticket.wants_label and draw.random() < 0.8:
            model.learn(ticket, labels[t])
        else:
            waiting.append(ticket)
    return model, rows[10:20], labels[10:20], waiting


def use(model, rows, labels, found, about):
    """Go on with a model that should not have been: errors of groupwise, finite numbers."""
    try:
        for row, label in zip(rows, labels, strict=True):
            ticket = model.predict(row)
            fine = np.isfinite(np.asarray(ticket.prediction, dtype=float)).all()
            found.require(fine, "prediction not finite", about)
            if ticket.wants_label:
                model.learn(ticket, label)
            model.predict_one(row)
        str(model.regret())
        check_state(model, found, about)
        found.count("went on")
    except gw.GroupwiseError:
        found.count("stopped by an error")


# Snapshots whose checksums are right.


def unpacked(path):
    """The members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, method=zipfile.ZIP_STORED):
    """An archive of them, checksums and all."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def changed_array(draw, data):
    """An array in which something is not as it was, and what."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    what = draws.choose(draw, ["value", "value", "value", "all", "shape", "kind", "header"])
    if what in ("value", "all") and array.size:
        array = array.copy()
        whole = array.dtype.kind in "iu"
        odd = [-1, 1 << 62, 7, 0] if whole else [np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 0.0]
        array.ravel()[slice(None) if what == "all" else int(draw.integers(array.size))] = (
            draws.choose(draw, odd)
        )
    elif what == "shape":
        array = draws.choose(
            draw, [array[:0], array[..., None], array.ravel(), array.T, np.concatenate([array] * 2)]
        )
    elif what == "kind":
        kinds = ["f4", "i8", "c16", "U3", "b1", ">f8", "i1"]
        with np.errstate(all="ignore"):
            array = array.astype(draws.choose(draw, kinds))
    file = io.BytesIO()
    np.save(file, array)
    data = file.getvalue()
    if what == "header":  # a shape that is not there, at most as long as the one that is
        shape = str(array.shape).encode()
        fake = draws.choose(draw, [b"(10**9,)", b"(999999999999,)", b"(-1,)", b"()", b"(0,)"])
        data = data.replace(shape, fake.ljust(len(shape))[: max(len(shape), len(fake))], 1)
    return data, what


def changed_page(draw, page):
    """The JSON page with something odd in some place, and where."""
    page = copy.deepcopy(page)
    place, path = page, []
    while isinstance(place, (dict, list)) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draws.choose(draw, keys)
        path.append(key)
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or draw.random() < 0.3:
            what = draws.choose(draw, ["odd", "odd", "odd", "gone", "twice", "deep"])
            if what == "gone":
                del place[key]
            elif what == "twice" and isinstance(place, list):
                place.append(inner)
            elif what == "deep":
                for _ in range(draws.choose(draw, [5, 100_000])):
                    inner = [inner]
                place[key] = "DEEP"
                return json.dumps(page).replace('"DEEP"', "[" * 100_000 + "]" * 100_000), path
            else:
                place[key] = draws.choose(draw, ODD)
            break
        place = inner
    return json.dumps(page), path


def snapshot_case(draw, found):
    """A snapshot with a few changes."""
    model, rows, labels, _ = learned(draw)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "model.gw"
        try:
            model.save(path)
        except gw.errors.SnapshotError:
            return
        members = unpacked(path)
        done = []
        for _ in range(draws.choose(draw, [1, 1, 2, 4])):
            name = draws.choose(draw, [HEADER, draws.choose(draw, list(members))])
            if name == HEADER:
                text, where = changed_page(draw, json.loads(members.get(HEADER, b"{}") or b"{}"))
                members[HEADER] = text.encode()
                done.append(f"header {where}")
                if "[[[[" in text:
                    break
            elif draw.random() < 0.1:
                del members[name]
                done.append(f"no {name}")
            else:
                with suppress(ValueError):
                    members[name], what = changed_array(draw, members[name])
                    done.append(f"{what} of {name}")
        pack(path, members, draws.choose(draw, [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], [9, 1]))
        found.about = ", ".join(done)
        try:
            loaded = gw.load(path)
        except gw.errors.SnapshotError:
            found.count("refused")
            return
        found.count("accepted")
        use(loaded, rows, labels, found, found.about)


def bytes_case(draw, found):
    """A snapshot whose bytes were damaged on the way."""
    model, rows, labels, _ = learned(draw)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "model.gw"
        try:
            model.save(path)
        except gw.errors.SnapshotError:
            return
        data = bytearray(path.read_bytes())
        what = draws.choose(draw, ["cut", "flip", "insert", "flags", "noise", "empty"])
        place = int(draw.integers(len(data)))
        if what == "cut":
            data = data[:place]
        elif what == "flip":
            data[place] ^= 1 << int(draw.integers(8))
        elif what == "insert":
            data[place:place] = draw.bytes(int(draw.integers(1, 9)))
        elif what == "flags":  # encryption, unknown methods, sizes that are not so
            at = data.rfind(b"PK\x01\x02")
            struct.pack_into("<H", data, at + int(draw.choice([6, 8, 10, 20, 24, 28])), 1)
        elif what == "noise":
            data = bytearray(draw.bytes(200))
        else:
            data = bytearray(draws.choose(draw, [b"", b"PK", b"PK\x05\x06" + bytes(18)]))
        path.write_bytes(data)
        try:
            loaded = gw.load(path)
        except gw.errors.SnapshotError:
            found.count("refused")
            return
        found.count("accepted")
        use(loaded, rows, labels, found, what)


def ticket_case(draw, found):
    """A ticket as text, changed on the way."""
    model, rows, labels, waiting = learned(draw)
    if not waiting:
        return
    text, where = changed_page(draw, json.loads(draws.choose(draw, waiting).to_json()))
    if draw.random() < 0.1:
        text = text[: int(draw.integers(len(text)))]
    try:
        ticket = gw.Ticket.from_json(text)
        repr(ticket)
        model.learn(ticket, labels[0])
        found.count("ticket accepted")
    except gw.GroupwiseError:
        found.count("ticket refused")
    use(model, rows, labels, found, f"ticket {where}")


# Tables of rows, on the command line.

CELLS = [
    "1",
    "2.5",
    "-3",
    "x",
    "",
    "NaN",
    "inf",
    "1e400",
    "1e-320",
    "1e200",
    "9" * 4400,
    '"',
    "\x00",
]
CELLS += ["é", "\ud800", "2024-01-01", "true", "{{", "[[", "\r", " 7 "]
KEYS = ["target", "groups", "a.b", "range", "features"]
VALUES = ["1", "[", "[[[]]]", "{a = {b = 1}}", '"pay"', "nan", "[" * 5_000]


def rows_case(draw, found):
    """A table that may or may not be one, given to ``groupwise run``."""
    kind = draws.choose(draw, ["csv", "jsonl", "parquet", "toml"])
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        data = people_file(Path(folder) / "people.csv", 30)
        extra: list[Any] = []
        if kind == "toml":
            extra = ["--config", Path(folder) / "plan.toml"]
            count = int(draw.integers(1, 4))
            pairs = [(draws.choose(draw, KEYS), draws.choose(draw, VALUES)) for _ in range(count)]
            lines = [f"{key} = {value}" for key, value in pairs]
            extra[1].write_text("\n".join(lines))
        else:
            data = Path(folder) / f"data.{kind}"
            data.write_bytes(TABLES[kind](draw))
        options = ["--target", "pay", "--out", Path(folder) / "out", *extra]
        result = invoke("run", data, *options)
        found.count("exit code 0" if result.exit_code == 0 else "refused")
        text = f"{kind}: {result.exception!r}; exit code {result.exit_code}; {result.stderr[-300:]}"
        found.require(isinstance(result.exception, (SystemExit, type(None))), "traceback", text)
        found.require(result.exit_code in (0, 2), "exit code", text)


def as_csv(draw):
    """Cells, more or less in columns."""
    width = int(draw.integers(1, 5))
    names = ["pay", *(draws.choose(draw, ["a", "b", "a", "", "pay"]) for _ in range(width))]
    lines = [names] + [
        [
            str(round(float(draw.normal()), 3))
            if draw.random() < 0.85
            else draws.choose(draw, CELLS)
            for _ in range(width + 1 + int(draw.random() < 0.01))
        ]
        for _ in range(int(draw.integers(0, 30)))
    ]
    return "\n".join(",".join(line) for line in lines).encode("utf-8", "surrogatepass")


def as_json_lines(draw):
    """Objects, more or less."""
    return "\n".join(
        json.dumps({"pay": float(draw.normal()), "a": draws.choose(draw, ODD + [1.0] * 20)})
        if draw.random() < 0.95
        else draws.choose(draw, ["[" * 100_000, "{", "null", '{"pay": ' + "9" * 4400 + "}"])
        for _ in range(int(draw.integers(1, 20)))
    ).encode("utf-8", "surrogatepass")


def as_parquet(draw):
    """A file of Arrow's, perhaps with the same name twice, perhaps cut."""
    import pyarrow
    from pyarrow import parquet

    columns = [pyarrow.array(draw.normal(size=9)), pyarrow.array(["x", None, "y"] * 3)]
    columns += [pyarrow.array([[1]] * 9), pyarrow.array([None] * 9)]
    count = int(draw.integers(1, 5))
    names = ["pay", *(draws.choose(draw, ["a", "b", "pay"]) for _ in range(count - 1))]
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays(columns[:count], names=names), file)
    data = file.getvalue()
    return data[: int(draw.integers(len(data)))] if draw.random() < 0.3 else data


TABLES = {"csv": as_csv, "jsonl": as_json_lines, "parquet": as_parquet}


# Full disks.


@contextmanager
def files_of_at_most(size):
    """No file may grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def disk_case(draw, found):
    """Saving where there is no room leaves the old file, and nothing else."""
    model, rows, labels, _ = learned(draw)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gw"
        try:
            model.save(path)
        except gw.errors.SnapshotError:
            return
        old = path.read_bytes()
        with suppress(gw.GroupwiseError):
            for row, label in zip(rows, labels, strict=True):
                model.learn_one(row, label)
        room = int(draw.integers(0, len(old)))
        try:
            with files_of_at_most(room):
                model.save(path)
            found.require(False, "saved on a full disk", room)
        except gw.errors.SnapshotError:
            found.count("no room")
        found.require(path.read_bytes() == old, "old file lost", f"{room} bytes of room")
        left = sorted(one.name for one in Path(folder).iterdir() if not one.name.endswith(".lock"))
        found.require(left == ["model.gw"], "files left", left)
        device_case(model, Path(folder) / "full", found)


def device_case(model, path, found):
    """A device that is full stays a device. It is one of our own, where we may make one."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        with path.open("wb", buffering=0) as file, suppress(OSError):
            file.write(b"x")
    except OSError:
        return
    with suppress(gw.GroupwiseError):
        model.save(path)
        found.require(False, "saved on a full device")
    found.count("devices")
    found.require(stat.S_ISCHR(path.stat().st_mode), "device replaced by a file")


# Kills.

SAVING = """
import sys, groupwise as gw
model = gw.load(sys.argv[1])
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def kill_case(draw, found):
    """Killed while saving, or while learning: the file is the old or the new one."""
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "model.gw", people_file(Path(folder) / "people.csv", 400)
        options = ("--target", "pay", "--range=-100,100", "--groups", "city", "--out", folder)
        result = invoke("run", table, *options)
        found.require(result.exit_code == 0, "run", result.stderr)
        saving = draw.random() < 0.5
        command = ["-c", SAVING, path] if saving else ["-m", "groupwise", "learn", path, table]
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdout=subprocess.PIPE if saving else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if process.stdout is not None:
            process.stdout.readline()
            time.sleep(draw.uniform(0.0, 0.1))
        else:
            time.sleep(draw.uniform(0.2, 3.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found.count("kills")
        try:
            settled = gw.load(path).regret().settled
        except gw.GroupwiseError as error:
            found.require(False, "damaged by a kill", error)
            return
        found.require(settled in ((400,) if saving else (400, 800)), "rows lost", settled)


# Threads.


def threads_case(draw, found):
    """Several threads on one model: no update is lost, and nothing crashes."""
    model, rows, labels = MAKERS["numbers"](draw, 60)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        count, errors = int(draw.integers(2, 5)), []

        def learn(seed):
            mine = random.Random(seed)
            try:
                for row, label in zip(rows[:60], labels[:60], strict=True):
                    ticket = model.predict(row)
                    if mine.random() < 0.1:
                        str(model.regret())
                    if mine.random() < 0.02:
                        copy.deepcopy(model)
                    model.predict_one(row)
                    model.learn(ticket, label)
            except BaseException as error:
                errors.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=learn, args=(k,)) for k in range(count)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        found.count("threads", count)
        found.require(not errors, "error in a thread", errors[:2])
        awake = [bool(model.preview(row).names) for row in rows[:60]]
        settled, wanted = model.regret().settled, count * sum(awake)
        found.require(errors or settled == wanted, "updates lost", settled, "of", wanted)
        with suppress(gw.errors.SnapshotError):
            check_state(model, found, f"{count} threads", folder)


CASES = {
    snapshot_case: 20,
    bytes_case: 8,
    ticket_case: 8,
    rows_case: 8,
    disk_case: 3,
    kill_case: 0.4,
    threads_case: 1.5,
}


def case(draw, found):
    """One attack."""
    chosen = draws.choose(draw, list(CASES), list(CASES.values()))
    found.count(chosen.__name__.removesuffix("_case"))
    chosen(draw, found)


if __name__ == "__main__":
    main("tests.fuzz.hostile")
