"""The command ``groupwise``: a function for each of its commands.

Their files import nothing but typer and the standard library at their top, and the rest inside the
functions, so that ``groupwise --help`` answers at once. To add one, write the function and its line
in ``COMMANDS`` and ``IN_SHORT``.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from groupwise.cli import data, reproduce, serve, snapshots, token
from groupwise.cli.options import warn
from groupwise.errors import GroupwiseError
from groupwise.extras import needed_by

COMMANDS: dict[str, Callable[..., None]] = {
    "run": data.run,
    "init": data.init,
    "regret": snapshots.regret,
    "predict": snapshots.predict,
    "learn": snapshots.learn,
    "compare": data.compare,
    "serve": serve.command,
    "token": token.command,
    "reproduce": reproduce.command,
}

IN_SHORT = {
    "run": "Predict a file row by row, learning; report regret by group.",
    "init": "Propose groups and features for a file, as TOML to edit.",
    "regret": "Show regret and certificate of every group of a snapshot.",
    "predict": "Predict rows with a snapshot, which stays as it is.",
    "learn": "Predict and learn further rows; write the snapshot anew.",
    "compare": "Audit logged predictions of other models, by group.",
    "serve": "Serve models over HTTP: predictions, labels, regret.",
    "token": "Make, list and revoke the tokens of a service.",
    "reproduce": "The paper's tables and figures, next to the published ones.",
}
"""What ``groupwise --help`` says of each: one line of 80 columns."""

FAILED = 2
"""The exit code of a command that could not be carried out."""
USAGE: Any = typer.BadParameter.__base__
"""What is raised where options or arguments are not those of a command."""
INTERRUPTED = 130
"""As shells have it: 128 + SIGINT."""


class Interrupted(SystemExit):
    """The end of a command that was interrupted, and has said so."""


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command; what goes wrong in it is one line on standard error, and an exit code."""

    @wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        try:
            with needed_by("This command"):
                command(*arguments, **options)
        except GroupwiseError as error:
            warn(" ".join(str(error).split("\n")))
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            warn(f"interrupted. {interrupt}".rstrip())
            raise Interrupted(INTERRUPTED) from None

    return guarded


def _show_version(wanted: bool) -> None:
    if wanted:
        from groupwise import __version__

        typer.echo(__version__)
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_show_version
    ),
) -> None:
    del version


class _Command(TyperCommand):
    """A command whose help calls its arguments by their names alone: MODEL, DATA..., [NAME]."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands in the line of usage."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        pieces = []
        for argument in arguments:
            name = f"{argument.metavar}{'...' * (argument.nargs != 1)}"
            pieces.append(name if argument.required else f"[{name}]")
        return ["[OPTIONS]", *pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """What arguments and options are."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for one in self.get_params(ctx):
            found = one.get_help_record(ctx)
            if found is not None:
                is_argument = one.param_type_name == "argument"
                name = str(one.metavar) if is_argument else found[0]
                records[one.param_type_name].append((name, found[1]))
        for kind, lines in records.items():
            if lines:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(lines)


class _Commands(TyperGroup):
    """The commands; what is wrong with their arguments is one line on standard error too."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except USAGE as error:
            said, path = error.format_message(), (error.ctx or ctx).command_path
            said = " ".join(said.split())
            said = said if said.endswith("?") else f"{said.rstrip('.')}."
            warn(f"{said} See {path} --help.")
            raise typer.Exit(FAILED) from None


app = typer.Typer(
    cls=_Commands,
    help="Online prediction with a regret guarantee for every group at once.",
    callback=_options,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, _command in COMMANDS.items():
    app.command(_name, cls=_Command, short_help=IN_SHORT[_name])(_guarded(_command))


def main() -> None:
    """Run the command that the arguments name, and exit."""
    try:
        try:
            app(prog_name="groupwise")
        finally:
            sys.stdout.flush()
    except Interrupted:
        raise
    except SystemExit as end:
        if end.code == INTERRUPTED:  # before the command began, where nobody says so
            warn("interrupted.")
        raise
    except OSError as error:
        # What is waiting to be written is let go, or the interpreter would try again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # whoever reads may stop, as head does
            what = f"use {error.filename}" if error.filename else "write to standard output"
            warn(f"Cannot {what}: {error.strerror or error}.")
        raise SystemExit(FAILED) from None
