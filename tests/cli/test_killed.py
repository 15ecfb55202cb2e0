"""Killed at any moment, a command leaves whole files or none."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import groupwise as gw
from tests.cli.commands import OUTPUTS, people_file, succeed

pytestmark = pytest.mark.slow

TRIALS = 4


def start(*arguments):
    command = [sys.executable, "-m", "groupwise", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return people_file(tmp_path_factory.mktemp("data") / "people.csv", 20_000)


@pytest.mark.parametrize("trial", range(TRIALS))
def test_run(trial, data, tmp_path):
    """Killed once the first files are being written, at a random moment after that."""
    out = tmp_path / "out"
    if trial % 2:
        out.mkdir()  # files then appear one by one
    process = start("run", data, "--target", "pay", "--out", out)
    while process.poll() is None and not list(tmp_path.glob("**/.groupwise-*")):
        time.sleep(0.01)
    time.sleep(random.Random(trial).uniform(0.0, 2.0))
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = {p.name for p in out.iterdir() if not p.name.startswith(".")} if out.exists() else set()
    assert found <= OUTPUTS
    if not trial % 2:
        assert found in (set(), OUTPUTS)
    if "predictions.csv" in found:
        with (out / "predictions.csv").open(newline="") as file:
            assert sum(1 for _ in csv.reader(file)) == 20_001
    if "regret.json" in found:
        assert json.loads((out / "regret.json").read_text())["rounds"] == 20_000
    if "model.gw" in found:
        assert gw.load(out / "model.gw").regret().settled == 20_000
    if "report.html" in found:
        assert (out / "report.html").read_text().rstrip().endswith("</html>")


def test_what_a_killed_run_left_is_cleared_away(data, tmp_path):
    left: set[Any] = set()
    process = start("run", data, "--target", "pay", "--out", tmp_path / "out")
    while process.poll() is None and len(left) < 2:
        left = set(tmp_path.glob(".groupwise-*"))
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(left) == 2
    people = people_file(tmp_path / "people.csv", 60)
    succeed("run", people, "--target", "pay", "--out", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "out"}


def test_learn(data, tmp_path):
    """Whatever the moment, the snapshot is the old one or the new one."""
    few = people_file(tmp_path / "few.csv", 50)
    options = ("--target", "pay", "--range=-100,100", "--groups", "city")
    succeed("run", few, *options, "--out", tmp_path / "out")
    snapshot = tmp_path / "out" / "model.gw"
    settled = 50
    for trial in range(2):
        process = start("learn", snapshot, data)
        time.sleep(random.Random(trial).uniform(0.5, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = gw.load(snapshot).regret().settled
        assert now in (settled, settled + 20_000)
        settled = now
