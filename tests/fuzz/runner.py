"""Runs a program's cases one after another, in processes of their own, and says what was found.

A program is a module with a function ``case(draw, found)``: it draws what to try from the generator
``draw`` and tells ``found``. Case k under seed s is the same wherever and whenever it is run.
"""

import argparse
import multiprocessing
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


def work(program, seed, numbers, deadline, pipe):
    """A process: cases until the time is over. Says which one it begins, then what it found."""
    case = import_module(program).case
    for number in numbers:
        if time.time() > deadline:
            break
        pipe.send(number)
        found = try_case(case, seed, number)
        pipe.send((number, found.counts, found.largest, found.violations))


class Worker:
    """A process at work; where it dies or hangs, its case is to blame and another goes on."""

    def __init__(self, program, seed, first, step, last, deadline):
        self.program, self.seed, self.step, self.deadline = program, seed, step, deadline
        self.last = sys.maxsize if last is None else last
        self.start(first)

    def start(self, first):
        """A new process, from a case on."""
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe(duplex=False)
        numbers = range(first, self.last, self.step)
        settings = self.program, self.seed, numbers, self.deadline, end
        self.process = context.Process(target=work, args=settings)
        self.process.start()
        end.close()
        self.at, self.since = None, time.time()

    def collect(self):
        """The results that are there, and whether the work is over."""
        results, ended = [], False
        try:
            while self.pipe.poll(0.05):
                told = self.pipe.recv()
                if isinstance(told, int):
                    self.at, self.since = told, time.time()
                else:
                    self.at = None
                    results.append(told)
        except (EOFError, OSError):
            ended = True
        hangs = not ended and self.at is not None and time.time() - self.since > PATIENCE
        if not ended and not hangs:
            return results, False
        if hangs:
            self.process.kill()
        self.process.join()
        number, self.at = self.at, None
        if number is None:
            return results, True
        text = f"more than {PATIENCE:g} s" if hangs else f"exit code {self.process.exitcode}"
        results.append((number, Counter(), {}, [Violation("hang" if hangs else "crash", text)]))
        following = number + self.step
        over = time.time() > self.deadline or following >= self.last
        if not over:
            self.start(following)
        return results, over


class Report(NamedTuple):
    """What a run has found."""

    cases: int
    counts: Counter[str]
    violations: Counter[str]
    """How many cases had a violation of each kind."""


def run(program, seed=0, seconds=None, cases=None, first=0, jobs=1, say=print):
    """Run cases of a program: for so many seconds, or so many cases."""
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
    return Report(done, counts, kinds)


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
    settings = options.seed, seconds, options.cases, options.first, options.jobs
    sys.exit(bool(run(program, *settings, flushed).violations))


def flushed(line):
    """Print a line at once."""
    print(line, flush=True)
