"""The lock of a model: one thread at a time, in order, again where one has it, whatever happens."""

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from groupwise.turns import LAST, Turn


@pytest.fixture(autouse=True)
def _restless():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Counter:
    """Counts in steps that other threads could get between."""

    def __init__(self):
        self.lock = Turn()
        self.count = 0

    def _step(self, then):
        count = self.count
        if then is not None:
            then()
        sum(range(20))
        self.count = count + 1

    def quickly(self, then=None):
        lock = self.lock
        try:
            del lock.free[LAST]
            mine = True
        except IndexError:
            mine = lock.wait()
        try:
            self._step(then)
        finally:
            if mine:
                lock.free.append(True)
                if lock.waiting:
                    mine = False
                    lock.pass_on()

    def plainly(self, then=None):
        with self.lock:
            self._step(then)

    def look(self):
        with self.lock:
            return self.count


def is_free(turn):
    return len(turn.free) == LAST + 1 and not turn.waiting


def in_another_thread(task):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(task).result(timeout=30)


@pytest.mark.parametrize("threads", [2, 8])
def test_nothing_is_lost_between_threads(threads):
    counter = Counter()

    def count(number):
        for i in range(2_000):
            counter.quickly() if (i + number) % 3 else counter.plainly()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(count, range(threads)))
    assert counter.count == 2_000 * threads
    assert is_free(counter.lock)


def test_a_thread_may_take_it_again_however_it_took_it():
    counter = Counter()
    for outer in (counter.quickly, counter.plainly):
        for inner in (counter.quickly, counter.plainly):
            for innermost in (counter.quickly, counter.plainly, counter.look):
                before = counter.count
                outer(lambda inner=inner, innermost=innermost: inner(innermost))
                assert counter.count == before + 1  # the outer one has not seen the others' steps
                assert is_free(counter.lock)
    assert in_another_thread(counter.look) == counter.count


@pytest.mark.parametrize("hold", ["quickly", "plainly"])
def test_others_wait_while_one_has_it_and_come_in_order(hold):
    counter, order = Counter(), []

    def come(number):
        counter.quickly(lambda: order.append(number))

    threads = [threading.Thread(target=come, args=(n,)) for n in range(5)]

    def meanwhile():
        for number, thread in enumerate(threads):
            thread.start()
            while len(counter.lock.waiting) <= number:
                time.sleep(0.001)
        order.append("first")

    getattr(counter, hold)(meanwhile)
    for thread in threads:
        thread.join(timeout=30)
    assert order == ["first", 0, 1, 2, 3, 4]
    assert is_free(counter.lock)


def test_an_error_gives_it_back():
    counter = Counter()
    for call in (counter.quickly, counter.plainly):
        with pytest.raises(ZeroDivisionError):
            call(lambda: 1 / 0)
        assert is_free(counter.lock)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_who_is_interrupted_while_waiting_leaves_the_queue():
    counter, go, held = Counter(), threading.Event(), threading.Event()

    def meanwhile():
        held.set()
        go.wait(30)

    def interrupt(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    holder = threading.Thread(target=counter.quickly, args=(meanwhile,))
    holder.start()
    held.wait(30)
    try:
        for call in (counter.quickly, counter.plainly):
            signal.setitimer(signal.ITIMER_REAL, 0.12)
            with pytest.raises(InterruptedError):
                call()
            assert not counter.lock.waiting
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        go.set()
        holder.join(30)
    assert is_free(counter.lock)
    assert counter.count == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_interrupts_at_any_moment_leave_it_usable():
    """Ctrl-C again and again, in the middle of calls that nobody else disturbs."""
    counter, caught = Counter(), 0

    def interrupt(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 3e-4)
                while True:
                    counter.quickly()
            except InterruptedError:
                caught += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert is_free(counter.lock)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught == 300
    assert in_another_thread(counter.look) == counter.count
