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
import re
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
from tests import crafted
from tests.cli.commands import invoke, people_file
from tests.fuzz import draws
from tests.fuzz.adversary import check_state
from tests.fuzz.equality import MAKERS, SCRATCH, shown
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
            fine = np.isfinite(np.asarray(shown(ticket.prediction), dtype=float)).all()
            found.require(fine, "prediction not finite", about)
            if ticket.wants_label:
                model.learn(ticket, label)
            model.predict_one(row)
        str(model.regret())
        check_state(model, found, about)
        found.count("went on")
    except gw.GroupwiseError:
        found.count("stopped by an error")


# Snapshots and tickets.


def saved(model, path):
    """Save a model; False where its parts cannot be."""
    try:
        model.save(path)
    except gw.errors.SnapshotError:
        return False
    return True


def load_and_use(path, rows, labels, found, about):
    """A snapshot is refused, or its model can be used."""
    try:
        loaded = gw.load(path)
    except gw.errors.SnapshotError:
        found.count("refused")
        return
    found.count("accepted")
    use(loaded, rows, labels, found, about)


def pack(path, members):
    """An archive of them, checksums and all."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def snapshot_case(draw, found):
    """A snapshot with a few changes, whose checksums are right."""
    model, rows, labels, _ = learned(draw)
    generator = random.Random(int(draw.integers(2**62)))
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "model.gw"
        if not saved(model, path):
            return
        snapshot, changes = crafted.opened(path), []
        for _ in range(draws.choose(draw, [1, 1, 2, 4])):
            snapshot, change = crafted.mutated(snapshot, generator)
            changes.append(str(change))
        crafted.written(path, snapshot)
        load_and_use(path, rows, labels, found, ", ".join(changes))


def bytes_case(draw, found):
    """A snapshot whose bytes were damaged on the way, or whose members are bombs."""
    model, rows, labels, _ = learned(draw)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "model.gw"
        if not saved(model, path):
            return
        what = draws.choose(draw, list(DAMAGE))
        path.write_bytes(DAMAGE[what](draw, path.read_bytes()))
        load_and_use(path, rows, labels, found, what)


def flipped(draw, data):
    """One bit is another."""
    place = int(draw.integers(len(data)))
    return data[:place] + bytes([data[place] ^ 1 << int(draw.integers(8))]) + data[place + 1 :]


def inserted(draw, data):
    """Some bytes more."""
    place = int(draw.integers(len(data)))
    return data[:place] + draw.bytes(int(draw.integers(1, 9))) + data[place:]


def other_flags(draw, data):
    """A directory that tells of encryption, unknown methods, sizes that are not so."""
    changed = bytearray(data)
    place = changed.rfind(b"PK\x01\x02") + int(draw.choice([6, 8, 10, 20, 24, 28]))
    struct.pack_into("<H", changed, place, 1)
    return bytes(changed)


def members_of(change):
    """Damage to the members themselves, packed as if they were fine."""

    def damaged(draw, data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        file = io.BytesIO()
        pack(file, change(members))
        return file.getvalue()

    return damaged


def deep(members):
    """A page of JSON that is all brackets."""
    return {
        **members,
        HEADER: members[HEADER][:-1] + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    }


def vast(members):
    """An array that says it is of terabytes."""
    name = max(members, key=lambda one: (one != HEADER, len(members[one])))
    found = re.search(rb"'shape': \([^)]*\), \}", members[name])
    assert found is not None
    fake = b"'shape': (999999999999,), }".ljust(len(found[0]))
    padding = b" " * (len(fake) - len(found[0]))
    data = members[name].replace(found[0] + padding, fake, 1)
    return {**members, name: data}


DAMAGE = {
    "cut": lambda draw, data: data[: int(draw.integers(len(data)))],
    "noise": lambda draw, data: draw.bytes(200),
    "empty": lambda draw, data: draws.choose(draw, [b"", b"PK", b"PK\x05\x06" + bytes(18)]),
    "flipped": flipped,
    "inserted": inserted,
    "flags": other_flags,
    "deep": members_of(deep),
    "vast": members_of(vast),
}


def ticket_case(draw, found):
    """A ticket as text, changed on the way."""
    model, rows, labels, waiting = learned(draw)
    if not waiting:
        return
    generator = random.Random(int(draw.integers(2**62)))
    text = draws.choose(draw, waiting).to_json()
    text, change = crafted.mutated_ticket(text, generator)
    if draw.random() < 0.1:
        text = draws.choose(draw, [text[: int(draw.integers(len(text)))], "[" * 10**5, "9" * 5000])
    try:
        ticket = gw.Ticket.from_json(text)
        repr(ticket)
        model.learn(ticket, labels[0])
        found.count("ticket accepted")
    except gw.GroupwiseError:
        found.count("ticket refused")
    use(model, rows, labels, found, f"ticket {change}")


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
        if not saved(model, path):
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
