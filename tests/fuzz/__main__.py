"""All programs, some at a time: python -m tests.fuzz --seconds 60 --seed 0 --jobs 2."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz.runner import flushed, run

PROGRAMS = ("adversary", "advice", "equality", "expectation", "hostile")


def main():
    """Give every program its seconds."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    options = parser.parse_args()

    def found(program):
        name = f"tests.fuzz.{program}"
        return run(name, options.seed, options.seconds, say=flushed).violations.total()

    with ThreadPoolExecutor(options.jobs) as pool:
        sys.exit(any(list(pool.map(found, PROGRAMS))))


if __name__ == "__main__":
    main()
