"""What is said of long work: a bar on a terminal, lines elsewhere, and never silence for long."""

import io
import sys
import time

import pytest

from groupwise import progress
from groupwise.paper.engine import in_processes


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_where_there_is_no_terminal_lines_come_ever_more_seldom(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    with progress.progress_bar(60, "routing", unit="runs", steady=True) as advance:
        advance(3)
        time.sleep(0.6)
    lines = said.getvalue().splitlines()
    assert set(lines) == {"groupwise: routing, 3 of 60 runs"}
    assert 1 <= len(lines) <= 4  # after 0.05, 0.15, 0.35 and 0.75 s
    ended = said.getvalue()
    time.sleep(0.2)
    assert said.getvalue() == ended


@pytest.mark.parametrize(("show", "steady"), [(True, False), (False, True)])
def test_nothing_is_said_elsewhere(monkeypatch, show, steady):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.progress_bar(4, "replay", show, steady=steady) as advance:
        advance(1)
        time.sleep(0.05)
    assert said.getvalue() == ""


@pytest.mark.parametrize("rich", [True, False])
def test_a_steady_bar_is_there_before_the_first_is_done(monkeypatch, rich):
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setenv("TERM", "xterm")
    if not rich:
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    with progress.progress_bar(7, "routing", unit="runs", steady=True) as advance:
        assert said.getvalue() == ""  # it may still be compiled, which is said elsewhere
        advance(0)
        assert "routing" in said.getvalue()
    with progress.progress_bar(7, "other", unit="runs") as advance:
        advance(0)
        assert "other" not in said.getvalue()


def test_processes_give_what_the_calls_give_and_say_how_far_they_are(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(progress, "SILENCE", 0.01)

    def slow():
        time.sleep(0.05)
        return 1

    assert list(in_processes([slow] * 3, 1, "slow work")) == [1, 1, 1]
    assert said.getvalue().startswith("groupwise: slow work, 0 of 3 runs\n")
    said.truncate(0)
    assert list(in_processes([slow] * 2, 1)) == [1, 1]
    assert said.getvalue() == ""
