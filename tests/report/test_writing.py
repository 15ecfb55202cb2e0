"""Files are there whole or not at all."""

from pathlib import Path

import pytest

from groupwise.errors import OutputError
from groupwise.report.writing import folder, write


def test_writes_text_and_bytes(tmp_path):
    assert write(tmp_path / "a", "± text").read_bytes() == "± text".encode()
    assert write(tmp_path / "a", b"other").read_bytes() == b"other"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch, step):
    write(tmp_path / "a", "old")

    def interrupted(self, *arguments):
        if step == "write_bytes":
            self.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", "new")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="Cannot write to"):
            folder(path)
    with pytest.raises(OutputError, match="Cannot write"):
        write(tmp_path / "nowhere" / "a", "text")
    assert folder(tmp_path / "new" / "deeper").is_dir()
    assert list((tmp_path / "new" / "deeper").iterdir()) == []
