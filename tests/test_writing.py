"""Files are there whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest

from groupwise.errors import OutputError, SnapshotError
from groupwise.writing import alone, folder, is_stream, outputs, replaced, write

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


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


@POSIX
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


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o444, 0o664])
def test_a_file_keeps_its_permissions(tmp_path, wanted):
    for name in ("a", "out/a"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
        path.chmod(wanted)
    write(tmp_path / "a", "new")
    with outputs(tmp_path / "out") as files:
        files.path("a").write_text("new")
        files.publish()
    for path in (tmp_path / "a", tmp_path / "out" / "a"):
        assert (path.read_text(), mode(path)) == ("new", wanted)


@POSIX
def test_nobody_reads_a_private_file_while_it_is_written(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o600)
    with replaced(tmp_path / "a") as part:
        assert mode(part) == 0o600


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs the superuser")
def test_a_file_keeps_its_owner(tmp_path):
    (tmp_path / "a").write_text("old")
    os.chown(tmp_path / "a", 1234, 4321)
    write(tmp_path / "a", "new")
    assert ((tmp_path / "a").stat().st_uid, (tmp_path / "a").stat().st_gid) == (1234, 4321)


@POSIX
@pytest.mark.parametrize("exists", [True, False])
def test_what_a_link_points_to_is_replaced(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link, chain = tmp_path / "there" / "a", tmp_path / "link", tmp_path / "chain"
    if exists:
        target.write_text("old")
    link.symlink_to("there/a")
    chain.symlink_to(link)
    write(chain, "new")
    assert (target.read_text(), link.is_symlink(), chain.is_symlink()) == ("new", True, True)
    assert {path.name for path in tmp_path.iterdir()} == {"there", "link", "chain"}
    with outputs(tmp_path) as files:
        files.path("link").write_text("newer")
        files.publish()
    assert (target.read_text(), link.is_symlink()) == ("newer", True)
    (tmp_path / "folder").symlink_to("made")
    with outputs(tmp_path / "folder") as files:
        files.path("a").write_text("new")
        files.publish()
    assert (tmp_path / "made" / "a").read_text() == "new"


@POSIX
def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OutputError, match="Cannot write"):
        write(tmp_path / "a", "text")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


@POSIX
def test_a_pipe_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        command = [sys.executable, "-c", f"print(open({str(tmp_path / 'pipe')!r}).read())"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            write(tmp_path / name, "through")
            assert reader.communicate()[0].strip() == "through"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_devices_stay_what_they_are(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("/dev/null", tmp_path / "link"):
        write(type(tmp_path)(name), "away")
    with pytest.raises(OutputError, match=r"Cannot write /dev/full: No space left"):
        write(type(tmp_path)("/dev/full"), "much")
    for name in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(os.stat(name).st_mode)


@POSIX
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_goes_on_where_it_was(tmp_path, name):
    code = (
        "from pathlib import Path\nfrom groupwise.writing import write\n"
        f"print('before')\nwrite(Path({name!r}), 'inside,')\nprint('after')\n"
    )
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\ninside,after\n"
    assert not is_stream(tmp_path / "out")


HALF = """
import sys
from pathlib import Path
from groupwise.writing import replaced
with replaced(Path(sys.argv[1])) as part:
    part.write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_is_cleared_away_by_the_next(tmp_path):
    command = [sys.executable, "-c", HALF, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        in_use = set(tmp_path.iterdir())
        assert len(in_use) == 2
        write(tmp_path / "b", "text")
        assert in_use < set(tmp_path.iterdir()), "its writer is alive"
        process.kill()
    write(tmp_path / "b", "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "b"]


HOLDER = """
import sys
from pathlib import Path
from groupwise.writing import alone
with alone(Path(sys.argv[1]), waiting=lambda: None):
    print("ready", flush=True)
    sys.stdin.read()
"""


class Busy(Exception):
    """Somebody else is at it."""


def busy():
    raise Busy


def test_one_process_at_a_time_and_a_killed_one_lets_go(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        with pytest.raises(Busy), alone(tmp_path / "a", busy):
            pass
        with alone(tmp_path / "b", busy):
            pass
        process.kill()
    with alone(tmp_path / "a", busy):
        with pytest.raises(Busy), alone(tmp_path / "a", busy):
            pass
        if os.name != "nt":
            (tmp_path / "link").symlink_to("a")
            with pytest.raises(Busy), alone(tmp_path / "link", busy):
                pass
            (tmp_path / "link").unlink()
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(OutputError, match="Cannot write beside"),
        alone(tmp_path / "no" / "a", busy),
    ):
        pass
