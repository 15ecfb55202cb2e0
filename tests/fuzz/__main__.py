"""All programs, some at a time: python -m tests.fuzz --seconds 60 --seed 0 --jobs 2."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz.runner import flushed, run

PROGRAMS = {
    "adversary": 1_500,
    "advice": 1_300,
    "equality": 150,
    "expectation": 20,
    "hostile": 800,
    "probability": 150,
}
"""What a minute holds on a slow machine."""


def main():
    """Give every program its seconds."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--steady", action="store_true", help="the same cases on every machine")
    options = parser.parse_args()

    def found(program):
        most = PROGRAMS[program] if options.steady else None
        name = f"tests.fuzz.{program}"
        return run(name, options.seed, options.seconds, most, say=flushed).violations.total()

    with ThreadPoolExecutor(options.jobs) as pool:
        sys.exit(any(list(pool.map(found, PROGRAMS))))


if __name__ == "__main__":
    main()
