"""The command ``groupwise``: one file for each of its commands.

A command's file imports nothing but typer and the standard library at its top, and the rest inside
the function, so that ``groupwise --help`` answers at once. To add one, write the file and its line
in ``COMMANDS``.
"""

import sys
from collections.abc import Sequence

import typer

from groupwise.cli import reproduce
from groupwise.errors import GroupwiseError

COMMANDS = {
    "reproduce": reproduce.command,
}

FAILED = 2
"""The exit code of a command that could not be carried out."""
INTERRUPTED = 130
"""As shells have it: 128 + SIGINT."""

app = typer.Typer(
    help="Online prediction with a regret guarantee for every group at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


@app.callback()
def _version_option(
    version: bool = typer.Option(False, "--version", help="Show the version.", is_eager=True),
) -> None:
    if version:
        from groupwise import __version__

        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; what goes wrong is one line on standard error."""
    try:
        code = app(arguments, standalone_mode=False)
    except GroupwiseError as error:
        code = _fail(" ".join(str(error).splitlines()), FAILED)
    except KeyboardInterrupt:
        code = _fail("interrupted", INTERRUPTED)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    print(f"groupwise: {message}", file=sys.stderr)
    return code
