"""Writes docs/command_line.md from the commands' own help: python docs/generate_cli.py."""

from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from groupwise.cli import COMMANDS, app

PAGE = Path(__file__).resolve().with_name("command_line.md")
WIDTH = 80
INTRODUCTION = """\
# Command line

`groupwise COMMAND --help` prints what stands here; this page is generated from it. The command
comes with `pip install '.[cli]'`, and `reproduce` needs `pip install '.[cli,paper]'`, on a Ray
cluster `'.[cli,paper,ray]'`.

A first run, from a file to a page in the browser:

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
