"""Files are there whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest

from groupwise.errors import OutputError, SnapshotError
from groupwise.writing import folder, outputs, replaced, write


def test_writes_text_and_bytes(tmp_path):
    assert write(tmp_path / "a", "± text").read_bytes() == "± text".encode()
    assert write(tmp_path / "a", b"other").read_bytes() == b"other"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(28, "No space left")])
def test_whoever_interrupts_leaves_the_old_file(tmp_path, monkeypatch, step, problem):
    write(tmp_path / "a", "old")

    def interrupted(*arguments):
        raise problem

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises((KeyboardInterrupt, OutputError)):
        write(tmp_path / "a", "new")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_what_goes_wrong_while_writing_leaves_the_old_file(tmp_path):
    write(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError), replaced(tmp_path / "a") as part:
        part.write_text("half" * 10_000 + "\ud800")
    full = pytest.raises(SnapshotError, match=r"Cannot write .*: full")
    with full, replaced(tmp_path / "a", SnapshotError):
        raise OSError("full")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_those_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", "text")
        with outputs(tmp_path / "out") as files:
            files.path("b").write_text("text")
            files.publish()
    finally:
        os.umask(before)
    found = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "out", "out/b")]
    assert found == [0o640, 0o750, 0o640]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="Cannot write to"):
            folder(path)
    with pytest.raises(OutputError, match="Cannot write"):
        write(tmp_path / "nowhere" / "a", "text")
    assert folder(tmp_path / "new" / "deeper").is_dir()
    assert list((tmp_path / "new" / "deeper").iterdir()) == []


@pytest.mark.parametrize("exists", [False, True])
def test_files_appear_together(tmp_path, exists):
    out = tmp_path / "deep" / "out"
    if exists:
        out.mkdir(parents=True)
        (out / "mine").write_text("kept")
        (out / "a").write_text("old")
    with outputs(out) as files:
        for name in "ab":
            files.path(name).write_text(name)
        assert not (out / "b").exists()
        files.publish()
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "a": "a",
        "b": "b",
        **({"mine": "kept"} if exists else {}),
    }
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_nothing_is_left_of_files_that_are_not_published(tmp_path):
    with outputs(tmp_path / "out") as files:
        files.path("a").write_text("whole")
    with pytest.raises(KeyboardInterrupt), outputs(tmp_path / "out"):
        raise KeyboardInterrupt
    with pytest.raises(OutputError, match="No space left"), outputs(tmp_path / "out"):
        raise OSError(28, "No space left")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"), outputs(tmp_path / "file"):
        pass
    with pytest.raises(OutputError, match="Cannot write to"), outputs(tmp_path / "file" / "out"):
        pass


KILLED = """
import os, sys
from pathlib import Path
from groupwise.writing import outputs
with outputs(Path(sys.argv[1])) as files:
    files.path("a").write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_cleared_away_and_nothing_else(tmp_path):
    """Also where its number has been given to another process meanwhile."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        in_use = set(tmp_path.iterdir())
        assert len(in_use) == 2
        about_to_be_locked = tmp_path / ".groupwise-abc.lock"
        about_to_be_locked.touch()
        with outputs(tmp_path / "out"):
            assert in_use < set(tmp_path.iterdir())
        process.kill()
    assert in_use < set(tmp_path.iterdir())
    with outputs(tmp_path / "out"):
        assert not in_use & set(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == [about_to_be_locked]
