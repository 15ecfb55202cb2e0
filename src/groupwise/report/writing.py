"""Files that are there whole or not at all."""

import os
import tempfile
from pathlib import Path

from groupwise.errors import OutputError


def folder(path: Path) -> Path:
    """The folder, made if need be; an error unless files can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(
            f"Cannot write to {path}: {error.strerror}. Choose another folder."
        ) from error
    return path


def write(path: Path, content: str | bytes) -> Path:
    """Write under another name and rename: whoever interrupts leaves no half of a file."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror}.") from error
    return path
