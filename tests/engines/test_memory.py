"""Whoever starts a run holds no rows: a hundred times as many take no more memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cluster import GROWTH, MOST, table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no memory is told"),
]
ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("unhurried")
def test_the_driver(tmp_path):
    """Of 10⁵ and of 10⁷ rows, in MB."""
    pytest.importorskip("ray")
    found = []
    for rows in (100_000, 10_000_000):
        path = table(tmp_path / f"{rows}.parquet", rows, 3)
        command = [sys.executable, "-m", "benchmarks.cluster", "driver", str(path), "ray"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(float(done.stdout.split()[-1]))
        path.unlink()
    assert found[1] - found[0] <= GROWTH
    assert max(found) <= MOST
