"""What a run will cost: arithmetic by hand; how close it is, benchmarks/cluster.py measures."""

import numpy as np
import polars as pl
import pytest

from groupwise.files.estimate import Estimate, estimate
from groupwise.files.plan import planned
from groupwise.files.segments import Asked

SECONDS = {"read": 1.0, "encode": 2.0, "learn_of": 4.0, "settle_of": 1.0, "follow": 0.5}
BYTES = {"read": 100.0, "encode": 200.0, "follow": 30.0, "record": 10.0}


def test_by_hand():
    wide = Estimate(1_000, 10, 2, SECONDS, BYTES, in_order=False)
    assert (wide.cpu, wide.chain[1], wide.wall) == (85.0, 10.0, 42.5)
    assert wide.bottleneck == "the cores: up to 8 workers make it faster"
    assert (wide.state, wide.memory) == (40.0, 5 * 300.0 + 4 * 40.0)
    assert wide.moved == 10 * (3 * 100.0 + 4 * 200.0 + 30.0 + 10.0)
    assert wide.told()[0] == "1,000 rows in 10 segments, on 2 workers"
    few = Estimate(1_000, 1, 4, SECONDS, BYTES, in_order=False)
    assert few.wall == 8.5  # one worker does it all
    assert few.bottleneck.startswith("the segments: shorter ones")
    assert few.told()[0] == "1,000 rows in 1 segment, on 4 workers"
    late = Estimate(1_000, 10, 20, SECONDS, BYTES, in_order=True)
    assert (late.chain[1], late.wall) == (20.0, 20.0)
    assert "features of the past" in late.bottleneck


@pytest.mark.slow
def test_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"g": rng.choice(["a", "b"], 3_000), "x": rng.random(3_000)})
    frame.with_columns(y=pl.col("x") * 2.0).write_parquet(tmp_path / "a.parquet")
    with planned(str(tmp_path / "a.parquet"), target="y", hinges=False) as (found, plan):
        told = estimate(found, plan, Asked(500), 2)
    assert (told.rows, told.segments, told.in_order) == (3_000, 6, False)
    assert 0.0 < told.cpu < 60.0
    assert told.state > 0.0
    assert len(told.told()) == 7
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]
