"""Several threads on one model: no crash, no lost update, and every look finds it between rounds.

The interpreter is made to change threads as often as it can.
"""

import copy
import itertools
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import polars
import pytest

import groupwise as gw
from tests.plain import PLAIN

THREADS = 4
ROUNDS = 150


@pytest.fixture(autouse=True)
def _restless():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(*tasks):
    """Run all tasks at once; their results, or the first error."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [task.result(timeout=120) for task in [pool.submit(task) for task in tasks]]


def rows(thread, count=ROUNDS):
    """Rows that bring new groups and features all the time."""
    generator = np.random.default_rng(thread)
    for t in range(count):
        row = {"sex": "mf"[t % 2], "place": f"{thread}-{t // 20}", "u": float(generator.random())}
        yield row | ({f"x{thread}": float(t)} if t % 30 > 20 else {}), float(generator.random())


def a_model(**options):
    return gw.Groupwise([gw.by("sex"), gw.by("place")], **options)


def is_whole(table, rounds=None):
    """Are these the figures of a moment between two rounds?"""
    sexes = sum(line["rounds"] for line in table if line["group"].startswith("sex="))
    everybody = table["always_on"]["rounds"] if len(table) else 0
    finite = all(np.isfinite(line[key]) for line in table for key in ("loss", "certificate"))
    return finite and sexes == everybody == table.settled == (rounds or table.settled)


@pytest.mark.parametrize("learner", [None, gw.learners.Ridge(forgetting=0.95)])
def test_no_label_is_lost_and_no_ticket_issued_twice(learner):
    model = a_model(learner=learner)

    def learn(thread):
        numbers = []
        for row, y in rows(thread):
            ticket = model.predict(row)
            model.learn(ticket, y)
            numbers.append(ticket.number)
        return numbers

    found = together(*(lambda n=n: learn(n) for n in range(THREADS)))
    assert sorted(itertools.chain(*found)) == list(range(THREADS * ROUNDS))
    assert is_whole(model.regret(), THREADS * ROUNDS)


def test_threads_whose_groups_are_apart_find_what_they_would_alone():
    def run(parts):
        settings: dict[str, Any] = {"always_on": False, "features": ["u"], "indicators": False}
        model = gw.Groupwise([gw.by("who")], **settings, **PLAIN)

        def learn(thread):
            for row, y in rows(thread):
                model.learn(model.predict({"who": str(thread), "u": row["u"]}), y)

        parts(*(lambda n=n: learn(n) for n in range(THREADS)))
        keys = ("group", "rounds", "loss", "best_loss", "delay")
        return sorted(tuple(line[key] for key in keys) for line in model.regret())

    assert run(together) == run(lambda *tasks: [task() for task in tasks])


def test_the_outcome_is_that_of_some_order():
    model, order = a_model(), []

    def learn(thread):
        for row, y in rows(thread):
            with model.lock:
                model.learn_one(row, y)
                order.append((row, y))

    together(*(lambda n=n: learn(n) for n in range(THREADS)))
    again = a_model()
    for row, y in order:
        again.learn_one(row, y)
    assert model.regret().rows == again.regret().rows
    assert {line["delay"] for line in model.regret()} == {0.0}
    assert len({row["place"][0] for row, _ in order[: THREADS * ROUNDS // 2]}) > 1


@pytest.mark.slow
def test_whoever_looks_finds_whole_rounds(tmp_path):
    model = a_model()
    learning = [True]

    def learn():
        for row, y in rows(0, 4 * ROUNDS):
            model.learn(model.predict(row), y)
        learning[0] = False

    def look(thread, task):
        count = 0
        while learning[0]:
            assert is_whole(task(thread)), task
            assert model.issued - len(model.group_names) < 4 * ROUNDS
            count += 1
        return count

    def read(_):
        model.predict_one({"sex": "m", "place": "new", "v": 1.0})
        return model.regret()

    def save(thread):
        model.save(tmp_path / f"{thread}.gw")
        return gw.load(tmp_path / f"{thread}.gw").regret()

    looks = [
        read,
        save,
        lambda _: copy.deepcopy(model).regret(),
        lambda _: pickle.loads(pickle.dumps(model)).regret(),
    ]
    counts = together(learn, *(lambda n=n, x=x: look(n, x) for n, x in enumerate(looks)))[1:]
    assert min(counts) > 0
    assert is_whole(model.regret(), 4 * ROUNDS)


def test_a_replay_and_a_loop_on_one_model():
    model = a_model()
    frame = polars.DataFrame([{**row, "y": y} for row, y in rows(0)], infer_schema_length=None)
    frame = frame.fill_null(0.0)

    def learn():
        for row, y in rows(1):
            model.learn(model.predict(row), y)

    together(lambda: [model.replay(frame, "y") for _ in range(3)], learn, learn)
    assert is_whole(model.regret(), 5 * ROUNDS)
    assert model.issued == 5 * ROUNDS


def test_what_is_undone_takes_nothing_of_others_with_it():
    model = a_model()

    def undo():
        for row, y in itertools.islice(rows(0), 40):
            with suppress(KeyError), model.all_or_nothing():
                model.learn_one(row, y)
                raise KeyError

    def learn():
        for row, y in rows(1):
            model.learn(model.predict(row), y)

    together(undo, learn, learn)
    assert is_whole(model.regret(), 2 * ROUNDS)
    assert not any(name.startswith("place=0-") for name in model.group_names)


def test_tickets_that_are_forgotten_and_settled_by_others():
    model = a_model()
    tickets = [(model.predict(row), y) for row, y in rows(0, 2 * ROUNDS)]

    def settle(part):
        for ticket, y in part:
            with suppress(gw.errors.TicketError):
                model.learn(ticket, y)

    def forget(part):
        for ticket, _ in part:
            with suppress(gw.errors.TicketError):
                model.forget(ticket)

    own = tickets[::2], tickets[1::2]
    together(lambda: settle(own[0]), lambda: settle(own[0]), lambda: forget(own[1]))
    assert is_whole(model.regret(), ROUNDS)
    for ticket, _ in tickets:
        with pytest.raises(gw.errors.TicketError, match="settled already"):
            model.check(ticket)


@pytest.mark.slow
def test_a_learner_may_ask_the_model():
    class Curious:
        def advise(self, row, weight):
            return 0.5 if model is None else 1.0 / (1 + len(model.regret()))

        def update(self, row, label, weight):
            assert model.issued

        def __deepcopy__(self, memo):
            return self

    model: Any = None
    model = a_model(learner=Curious())

    def learn(thread):
        for row, y in rows(thread, 20):
            model.learn(model.predict(row), y)

    together(*(lambda n=n: learn(n) for n in range(2)))
    assert is_whole(model.regret(), 40)


class Drawing:
    """Advises what it has drawn."""

    randomised = True
    drawn = 0.0

    def draw(self, key):
        self.drawn = (key[0] % 7) / 10.0

    def advise(self, row, weight):
        drawn = self.drawn
        time.sleep(1e-5)  # time for another thread
        assert self.drawn == drawn
        return drawn

    def update(self, row, label, weight):
        pass


def test_models_that_were_given_the_same_learner_and_groups():
    learner, groups = Drawing(), [gw.by("sex"), gw.by("place")]

    def run(thread):
        model = gw.Groupwise(groups, learner, seed=thread)
        found = set()
        for row, _ in rows(thread):
            found.add(round(float(model.predict(row).prediction), 6))
        return found

    assert together(*(lambda n=n: run(n) for n in range(3))) == [{0.0}, {0.1}, {0.2}]


def test_models_made_at_once():
    def make(thread):
        model = a_model(learner=[gw.learners.Ridge(), gw.learners.Ridge(forward=True)])
        for row, y in rows(thread, 30):
            model.learn(model.predict(row), y)
        return model.regret().rows

    found = together(*(lambda: make(0) for _ in range(THREADS)))
    assert all(table == found[0] for table in found)


def test_a_copy_has_a_lock_of_its_own():
    model = a_model()
    model.learn_one({"sex": "m", "place": "p", "u": 1.0}, 0.5)
    with model.lock:
        copies = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for twin in copies:
            together(lambda twin=twin: twin.learn_one({"sex": "f", "place": "p", "u": 1.0}, 0.5))
    assert [twin.regret().settled for twin in copies] == [2, 2, 2]
    assert model.regret().settled == 1


def test_partial_feedback():
    model = gw.PayForFeedback(a_model(), horizon=1_000)

    def run(thread):
        seen = []
        for row, y in rows(thread):
            ticket = model.predict(row)
            if ticket.wants_label:
                model.learn(ticket, y)
            seen.append((ticket.number, ticket.wants_label))
            if thread == 0 and len(seen) % 30 == 0:
                pickle.dumps(model)
        return seen

    seen = list(itertools.chain(*together(*(lambda n=n: run(n) for n in range(THREADS)))))
    assert sorted(number for number, _ in seen) == list(range(THREADS * ROUNDS))
    explored = sum(wanted for _, wanted in seen)
    assert explored == THREADS * ROUNDS // 10
    assert model.regret()["always_on"]["rounds"] == pytest.approx(10.0 * explored, abs=10.0)
