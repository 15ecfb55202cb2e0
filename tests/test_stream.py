"""Stretches of a stream: any number of threads, any chunks, any parts give the loop's numbers."""

import threading
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.aggregators import AdaNormalHedge, Prod, Specialists
from groupwise.errors import ConfigurationError
from groupwise.kernels.cells import Cells, of_matrix
from groupwise.kernels.schedule import compress
from groupwise.learners import Ridge
from groupwise.protocols import Awake, Row
from groupwise.reduction import NOBODY, Reduction
from groupwise.stream import CHUNK, Chunk, Outcome, Stream, job_count, rows_at_a_time
from tests.states import arrays_of, assert_same_arrays
from tests.streams import random_arrays

ROWS, GROUPS, WIDTH = 90, 5, 4
NAMES = [f"x{i}" for i in range(WIDTH)]


class Average:
    """A learner in Python: the mean label, and something of the row."""

    def __init__(self):
        self.total, self.count = 0.5, 1.0

    def advise(self, row, weight):
        return self.total / self.count + 0.01 * sum(row.mapping().values())

    def update(self, row, label, weight):
        self.total += weight * label
        self.count += weight


class InPython:
    """AdaNormalHedge without its kernel."""

    def __init__(self):
        inner = AdaNormalHedge()
        self.log_weights, self.bound, self.plays = inner.log_weights, inner.bound, inner.plays


PARTS: dict[str, Any] = {
    "compiled": ([Ridge(0.5), Ridge(2.0, forward=True)], AdaNormalHedge(), "sample"),
    "specialists": ([Ridge(0.5)], Specialists(), None),
    "prod": ([Ridge(0.5), Average()], Prod(), None),
    "objects": ([Average()], AdaNormalHedge(), "mean"),
    "both": ([Ridge(0.5), Average(), Ridge(3.0)], AdaNormalHedge(), "sample"),
    "aggregator": ([Ridge(0.5)], InPython(), "mean"),
    "everything": ([Average(), Ridge(0.5, forgetting=0.9)], InPython(), "sample"),
}


def rows():
    """Features, labels and membership; some rows are in no group."""
    x, y, membership = random_arrays(4, ROWS, GROUPS, WIDTH, fractional=True, zeros=0.4)
    membership[[7, 8, 55, ROWS - 1]] = 0.0
    return x, y, membership


def reduction_of(parts):
    learners, aggregator, play = PARTS[parts]
    reduction = Reduction(learners, aggregator, gw.losses.Square(), play, seed=6)
    everybody = np.arange(GROUPS)
    reduction.reserve(everybody, WIDTH, everybody, np.arange(1.0, GROUPS + 1))
    return reduction


def looped(parts, number):
    """Round by round: predictions, expected and realised losses, advice and weights."""
    reduction = reduction_of(parts)
    found = []
    for t, (x, y, members) in enumerate(zip(*rows(), strict=True)):
        groups = np.flatnonzero(members)
        if groups.size == 0:
            lost = reduction.loss_of(NOBODY, y)
            found.append((NOBODY, lost, lost, np.empty((0, reduction.experts)), None))
            continue
        awake = Awake(groups, members[groups])
        row = Row(np.flatnonzero(x), x[np.flatnonzero(x)], NAMES)
        play = reduction.predict(number + t, awake, row)
        settled = reduction.score(play, y)
        said = play.prediction, settled.charged, settled.realised, play.advice, play.probabilities
        found.append(said)
        reduction.learn(number + t, awake, row, y)
    return found, reduction


def chunks(sizes):
    x, y, membership = rows()
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        cells = Cells(*of_matrix(np.ascontiguousarray(x[part])))
        indptr, groups, weights = compress(np.ascontiguousarray(membership[part]))
        yield Chunk(cells, indptr, groups, weights, y[part], NAMES)
        start += size


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("sizes", [[ROWS], [1] * ROWS, [37, 0, 52, 1], [30, 30, 30]], ids=str)
@pytest.mark.parametrize("parts", PARTS)
def test_any_chunks_and_threads_give_the_loop_s_numbers(parts, sizes, jobs):
    number = 1_000
    wanted, twin = looped(parts, number)
    reduction = reduction_of(parts)
    stream = Stream(reduction, -1, number, jobs)
    outcomes: list[Outcome] = []
    stream.run(chunks(sizes), outcomes.append)
    assert stream.number == number + ROWS
    assert [len(one.prediction) for one in outcomes] == sizes
    for column, name in enumerate(("prediction", "expected", "realised")):
        found = np.concatenate([getattr(one, name) for one in outcomes])
        assert found.tolist() == [said[column] for said in wanted], name
    awake = [said for said in wanted if said[4] is not None]
    for column, name in ((3, "advice"), (4, "probabilities")):
        found = np.concatenate([getattr(one, name) for one in outcomes])
        assert np.array_equal(found, np.concatenate([said[column] for said in awake])), name
    assert_same_arrays(*(arrays_of(one, GROUPS, WIDTH) for one in (reduction, twin)))


@pytest.mark.parametrize("parts", ["compiled", "everything"])
def test_a_second_stream_goes_on_where_the_first_ended(parts):
    _, twin = looped(parts, 0)
    reduction = reduction_of(parts)
    parts_of = list(chunks([20, 30, 40]))
    Stream(reduction, -1, 0, 2).run(parts_of[:1], lambda outcome: None)
    Stream(reduction, -1, 20, 1).run(parts_of[1:], lambda outcome: None)
    assert_same_arrays(*(arrays_of(one, GROUPS, WIDTH) for one in (reduction, twin)))


@pytest.mark.parametrize("parts", PARTS)
def test_the_single_model_is_the_baseline_s_first_learner(parts):
    x, y, membership = rows()
    everyone = np.column_stack([membership, np.ones(ROWS)])
    learners, aggregator, play = PARTS[parts]
    result = gw.replay(x, y, everyone, learner=learners, aggregator=aggregator, play=play)
    alone = gw.replay(x, y, np.ones((ROWS, 1)), learner=learners[0])
    for row, members in zip(result.regret(), everyone.T, strict=True):
        baseline = row["baseline_regret"] + row["best_loss"]
        assert baseline == pytest.approx(float(members @ alone.loss), rel=1e-9)


def test_learners_in_python_run_in_one_thread_only():
    threads = set()

    class Watched(Average):
        def update(self, row, label, weight):
            threads.add(threading.get_ident())
            super().update(row, label, weight)

    x, y, membership = rows()
    gw.replay(x, y, membership, learner=[Ridge(), Watched()], jobs=4)
    assert threads == {threading.get_ident()}


def test_an_error_of_a_learner_comes_through():
    class Broken(Average):
        def update(self, row, label, weight):
            raise RuntimeError("not today")

    x, y, membership = rows()
    for jobs in (1, 3):
        with pytest.raises(RuntimeError, match="not today"):
            gw.replay(x, y, membership, learner=[Ridge(), Broken()], jobs=jobs)


def test_chunks_are_longer_where_there_are_many_groups():
    plain = Reduction([Ridge()], Specialists(), gw.losses.Square())
    sizes = [rows_at_a_time(plain, 10**power, 5_000) for power in range(8)]
    assert sizes == sorted(sizes)
    assert sizes[0] == CHUNK
    assert sizes[-1] == 8 * CHUNK


def test_chunks_are_shorter_where_wide_rows_are_remembered():
    leaning = Reduction([Ridge(everybody=True)], Specialists(), gw.losses.Square())
    assert rows_at_a_time(leaning, 1, 25) == CHUNK
    assert rows_at_a_time(leaning, 1, 8_192) == 1_024
    assert rows_at_a_time(leaning, 1, 10**9) == 1


def test_jobs_are_threads():
    assert job_count(3) == 3
    assert job_count(None) >= 1
    for wrong in (0, -1, 1.0, True, "2"):
        with pytest.raises(ConfigurationError, match="jobs must be a positive whole number"):
            job_count(wrong)  # type: ignore[arg-type]
