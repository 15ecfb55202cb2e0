"""Running commands of the command line in this process, and files to run them on."""

import csv
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from groupwise.cli import app

OUTPUTS = {"predictions.csv", "regret.json", "model.gw", "report.html"}


def invoke(*arguments):
    """The result of a command: exit_code, stdout, stderr."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    """The result of a command that must go well."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr or result.exception
    return result


def refused(*arguments):
    """What a command says that must be refused: one line, with exit code 2."""
    result = invoke(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.exception)
    lines = [line for line in result.stderr.splitlines() if "compiling its kernels" not in line]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("groupwise: ")
    return lines[0]


def write_rows(path: Path, header, rows) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def people(rows=300, seed=0):
    """Rows of (sex, city, age, pay): pay depends on age differently in each city."""
    generator = np.random.default_rng(seed)
    cities = ["north", "south", "west"]
    found = []
    for _ in range(rows):
        city = int(generator.integers(3))
        age = int(generator.integers(18, 65))
        pay = round(10 + (city - 1) * age + float(generator.normal()), 3)
        found.append(("fm"[int(generator.integers(2))], cities[city], age, pay))
    return found


def people_file(path: Path, rows=300, seed=0) -> Path:
    """Those rows as CSV."""
    return write_rows(path, ("sex", "city", "age", "pay"), people(rows, seed))


def regret_of(folder: Path):
    """The rows of regret.json by group."""
    record = json.loads((folder / "regret.json").read_text("utf-8"))
    return {row["group"]: row for row in record["rows"]}


def predictions_of(path: Path):
    """The rows of predictions.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
