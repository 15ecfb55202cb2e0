"""A process of its own that starts runs: a process is connected to one cluster at a time.

``python -m tests.engines.driver replay ENGINE FOLDER`` writes what replays give to a folder;
anything else is a command of groupwise. Models sign their tickets with the same key in all of them.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import groupwise as gw
from groupwise import model
from groupwise.cli import main

SEGMENT = 500


def replay(engine: str, folder: Path) -> None:
    """Of arrays, and of a frame by a model that is saved."""
    import polars as pl

    rng = np.random.default_rng(3)
    x, y = rng.random((4_000, 5)), rng.random(4_000)
    groups = np.column_stack([x[:, 0] < 0.5, x[:, 1] < 0.2, np.ones(y.size)])
    found = gw.replay(x, y, groups, segment=SEGMENT, engine=engine)
    frame = pl.DataFrame({"x": x[:, 0], "kind": np.where(x[:, 1] < 0.5, "a", "b"), "y": y})
    mine = gw.Groupwise([gw.by("kind")], loss=gw.losses.Square(0.0, 1.0), features={"x": (0, 1)})
    told = mine.replay(frame, "y", segment=SEGMENT, engine=engine)
    mine.save(folder / "model.gw")
    (folder / "predictions").write_bytes(found.prediction.tobytes() + told.prediction.tobytes())
    rows = [*found.regret().rows, *mine.regret().rows]
    (folder / "regret").write_text(json.dumps(rows), "utf-8")


if __name__ == "__main__":
    vars(model)["os"] = SimpleNamespace(**{**vars(os), "urandom": bytes})
    if sys.argv[1] == "replay":
        replay(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
