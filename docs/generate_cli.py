"""Writes docs/command_line.md from the commands' own help: python docs/generate_cli.py."""

from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from groupwise.cli import COMMANDS, app

PAGE = Path(__file__).resolve().with_name("command_line.md")
WIDTH = 80
INTRODUCTION = """\
# Command line

`groupwise COMMAND --help` prints what stands here, in lines as wide as your terminal has room for;
this page is generated from it. The command comes with `pip install '.[cli]'`, and `reproduce` needs
`pip install '.[cli,paper]'`, on a Ray cluster `'.[cli,paper,ray]'`.

A first run, from a file (with yours in the place of these) to a page in the browser:

```sh
groupwise run insurance.csv --target charges --groups "sex, age:35|50, smoker, region & smoker"
```

and then, with the snapshot that it leaves:

```sh
groupwise regret groupwise-run/model.gw
groupwise predict groupwise-run/model.gw new_rows.csv --out predicted.csv
groupwise learn groupwise-run/model.gw next_month.csv
```

To audit a model that you have already, log its predictions in a column and compare:

```sh
groupwise compare logged.csv --target charges --prediction my_model --groups "sex, smoker"
```

To have it take part instead, so that no group gets anything much worse than its predictions, make
it [an expert](experts.md):

```sh
groupwise run logged.csv --target charges --expert my_model
```

## Files as they are

CSV (commas, semicolons, tabs or bars; decimal commas and signs between thousands too), Parquet,
Arrow and Feather, Excel (`pip install '.[excel]'`), SQLite, JSON Lines and arrays of objects are
read, also packed as .gz, .zip, .xz, .zst or .bz2. `--table` names the table of a database, or the
sheet of a workbook, where there are several. The same rows are the same in all of them: `True`,
`TRUE` and `true` are one value, dates are read as such, and what is empty is missing, in a column
of numbers also NA, null, None, `?`, `-` and the like.

- **Missing values** of a feature count as 0, with a feature beside it that says so, such as
  `bmi missing`. `--missing error` stops instead, `--missing drop` leaves the row out. A row is in
  no group of a column that is missing. In Python most are errors unless the model has
  `missing="indicator"`: [Features](features.md#missing-values) says which.
- **Missing labels**: the row is predicted in its place, and nothing is learned from it.
- **Left out, with a word**: columns of one value, row numbers, identifiers, text that is new in
  nearly every row, and what is neither number nor text: nested columns, bytes. Of more than 256
  columns those are features that go best with the label.
- **Pointed out**: a feature that nearly is the label, columns that sum to it, columns that make the
  same groups (which are proposed once), and dates, by which `--order` could sort the rows. Ages are
  proposed in bands.
- **Bad rows**: text in a column of numbers, too many or too few cells, a label outside its range,
  a date that is missing or none where rows are sorted by it. A run names one by its number and
  stops; with `--skip-bad` it names them and goes on.

Next month's file may hold labels that the first did not foresee. `groupwise learn --widen` makes
the range wide enough and keeps all that was learned. Losses and certificates stay in the units of
the first range. Certificates hold on with `prod` and `specialists`; with `adanormalhedge` they are
void from then on, and say so.

```sh
groupwise learn groupwise-run/model.gw next_month.csv --widen --skip-bad
```

## Yes or no, and classes

What the label is, is found out from its column, and printed:

- 0 and 1, or two texts such as no and yes, false and true, <=50K and >50K: what is predicted is
  the probability of one of the two, the *positive* value. That is the second in order (1, true,
  yes, >50K), or what `--positive` says.
- Three to 20 texts: a probability for each of these classes.
- Other numbers, however few: a number.

`--task probability`, `--task classes` and `--task number` say it instead: a column of 0 and 1 may
be run as a number, one of 1, 2 and 3 as classes, and one of numbers from 0 to 1 as probabilities,
which are labels too. `--classes "red, green, blue"` names the classes beforehand, also those that
have yet to come. A range says that the label is a number.

```sh
groupwise run adult.csv --target income
groupwise compare logged.csv --target income --prediction my_model
```

Predictions have a column `probability:>50K` for the positive value of two, or one such column for
each of several classes, in `run` as in `predict`. Losses are log losses, in nats, and the best in
hindsight is a logistic model with |x·θ| within a bound (`bound = 8.0` in the settings); beside
regret and certificate the report shows calibration, with the error that chance alone would explain.

`compare` takes the logged probability of the positive value, in a column called as the model or
`my_model:>50K`. Of three classes and more it takes one column each, `my_model:red`,
`my_model:green` and so on (or `my_model_red`), which add up to 1 within 0.02 and are divided by
their sum. A probability below 1e-15 of what then came counts as 1e-15, and the report says how
often: the loss would be infinite.

Texts such as NA among the classes stand for a missing label, unless `--classes` names them. A class
that is in one row only, or classes that differ in capitals alone, are pointed out. A file with one
class of two works, if the other is known (0 and 1, no and yes, or named in `--classes`), and the
report says so.

A command that cannot be carried out says why in one line on standard error, and exits with 2.
"""


def page() -> str:
    """The whole page."""
    assert get_command(app) is not None
    parts = [INTRODUCTION, _section("groupwise", [])]
    parts.extend(_section(f"groupwise {name}", [name]) for name in COMMANDS)
    return "\n".join(parts)


def _section(title: str, arguments: list[str]) -> str:
    terminal = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [*arguments, "--help"], prog_name="groupwise", env=terminal)
    lines = [line.rstrip() for line in result.output.strip().splitlines()]
    return f"## {title}\n\n" + "\n".join(["```text", *lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
