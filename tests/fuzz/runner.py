"""Runs a program's cases one after another, in processes of their own, and says what was found.

A program is a module with a function ``case(draw, found)``: it draws what to try from the generator
``draw`` and tells ``found``. Case k under seed s is the same wherever and whenever it is run.
"""

import argparse
import multiprocessing
import queue
import sys
import time
import traceback
from collections import Counter
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

SHOWN = 20
"""So many violations of a kind are printed; all are counted."""
PATIENCE = 300.0
"""A case that takes more seconds than this hangs."""


class Violation(NamedTuple):
    """What must not be."""

    kind: str
    text: str


class Found:
    """What one case has found: counts by name, and violations."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.largest: dict[str, float] = {}
        self.violations: list[Violation] = []
        self.about = ""
        """What the case is about, in a few words."""

    def count(self, name: str, times: int = 1) -> None:
        """Something happened."""
        self.counts[name] += times

    def measure(self, name: str, value: float) -> None:
        """The largest of these is reported."""
        self.largest[name] = max(value, self.largest.get(name, value))

    def require(self, holds: Any, kind: str, *about: Any) -> bool:
        """Note a violation, at most one of each kind in a case, unless the condition holds."""
        if not holds and all(kind != one.kind for one in self.violations):
            self.violations.append(Violation(kind, " ".join(map(str, about))))
        return bool(holds)


def try_case(case, seed, number):
    """What a case finds; an error that it lets through is a violation too."""
    found = Found()
    try:
        case(np.random.default_rng([seed, number]), found)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
        found.require(False, f"error {type(error).__name__}", text)
    return found


def work(program, seed, numbers, deadline, current, results):
    """A process: cases until the time is over."""
    case = import_module(program).case
    for number in numbers:
        if time.time() > deadline:
            break
        current.value = number
        found = try_case(case, seed, number)
        results.put((number, found.counts, found.largest, found.violations))
    current.value = -1


class Worker:
    """A process at work; where it dies or hangs, its case is to blame and another goes on."""

    def __init__(self, program, seed, first, step, last, deadline):
        self.program, self.seed, self.step, self.last = program, seed, step, last
        self.deadline = deadline
        self.start(first)

    def start(self, first):
        context = multiprocessing.get_context("spawn")
        self.current = context.Value("q", first, lock=False)
        self.results = context.Queue()
        stop = self.last if self.last is not None else sys.maxsize
        numbers = range(first, stop, self.step)
        what = (self.program, self.seed, numbers, self.deadline, self.current, self.results)
        self.process = context.Process(target=work, args=what, daemon=False)
        self.process.start()
        self.at, self.since = first, time.time()

    def collect(self):
        """The results that are there, and whether the work is over."""
        results = []
        alive = self.process.is_alive()
        try:
            while True:
                results.append(self.results.get(timeout=0.05 if alive else 0.5))
        except (queue.Empty, EOFError):
            pass
        number = self.current.value
        if number != self.at:
            self.at, self.since = number, time.time()
        if number == -1:
            self.process.join()
            return results, True
        hangs = time.time() - self.since > PATIENCE
        if alive and not hangs:
            return results, False
        if hangs:
            self.process.kill()
            self.process.join()
        text = f"more than {PATIENCE:g} s" if hangs else f"exit code {self.process.exitcode}"
        results.append((number, Counter(), {}, [Violation("hang" if hangs else "crash", text)]))
        following = number + self.step
        over = time.time() > self.deadline or (self.last is not None and following >= self.last)
        if not over:
            self.start(following)
        return results, over


def run(program, seed=0, seconds=None, cases=None, first=0, jobs=1, say=print):
    """Run cases of a program; returns how many cases there were, counts and violations."""
    begin = time.time()
    deadline = begin + (1e9 if seconds is None else seconds)
    last = None if cases is None else first + cases
    workers = [Worker(program, seed, first + j, jobs, last, deadline) for j in range(jobs)]
    name = program.rsplit(".", 1)[-1]
    done, counts, kinds = 0, Counter[str](), Counter[str]()
    largest: dict[str, float] = {}
    while workers:
        for worker in list(workers):
            results, over = worker.collect()
            for number, counted, measured, violations in results:
                done += 1
                counts.update(counted)
                for key, value in measured.items():
                    largest[key] = max(value, largest.get(key, value))
                for kind, text in violations:
                    kinds[kind] += 1
                    if kinds[kind] <= SHOWN:
                        say(f"{name} --case {seed}:{number}  {kind}: {text}")
            if over:
                workers.remove(worker)
    spent = time.time() - begin
    told = [f"{key} {value:,}" for key, value in sorted(counts.items())]
    told += [f"largest {key} {value:.2g}" for key, value in sorted(largest.items())]
    bad = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items()))
    say(
        f"{name}: {done:,} cases in {spent:.0f} s ({done / spent:.1f}/s), seed {seed}; "
        f"{', '.join(told)}; violations: {kinds.total():,}{f' ({bad})' if bad else ''}"
    )
    return done, counts, kinds


def main(program):
    """The command line of a program."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cases", type=int, help="so many cases, however long they take")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", metavar="SEED:NUMBER", help="one case again, in this process")
    options = parser.parse_args()
    if options.case:
        seed, number = map(int, options.case.split(":"))
        found = try_case(import_module(program).case, seed, number)
        print(dict(found.counts), found.largest)
        print(*(f"{kind}: {text}" for kind, text in found.violations), sep="\n")
        sys.exit(bool(found.violations))
    seconds = None if options.cases is not None else options.seconds
    kinds = run(
        program, options.seed, seconds, options.cases, options.first, options.jobs, flushed
    )[2]
    sys.exit(bool(kinds))


def flushed(line):
    """Print a line at once."""
    print(line, flush=True)
