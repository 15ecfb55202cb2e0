"""The command ``token``: who may ask a service for what."""

from typing import Annotated

import typer

from groupwise.cli.options import Stored, warn
from groupwise.errors import ConfigurationError

ACTIONS = ("create", "list", "revoke")


def command(
    action: Annotated[
        str, typer.Argument(metavar="create|list|revoke", help="What to do.", show_default=False)
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A name for a new token; the number of one to revoke."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="predict, learn, read or admin. Again for another.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL", help="For this model only. Again for another.", show_default=False
        ),
    ] = None,
    store: Stored = "groupwise.db",
) -> None:
    """Make, list and revoke the tokens of a store, also while it is served.

    A new token is printed once; the store keeps a digest of it. A service learns of the change
    within a second.
    """
    from groupwise.serve.access import new_token
    from groupwise.serve.run import existing_store, open_store

    if action not in ACTIONS:
        raise ConfigurationError(f"There is no {action!r}: {', '.join(ACTIONS)}.")
    if action != "list" and not name:
        raise ConfigurationError(f"groupwise token {action} needs a name or a number.")
    kept = open_store(store, writer=False) if action == "create" else existing_store(store)
    try:
        if action == "create":
            text, token = new_token(name or "", scope or (), model or ())
            kept.put_token(token)
            warn(f"token {token.token} ({', '.join(token.scopes)}); it is shown this once:")
            typer.echo(text)
        elif action == "revoke":
            if not kept.drop_token(name or ""):
                raise ConfigurationError(f"There is no token {name!r}: see groupwise token list.")
            warn(f"token {name} is revoked")
            if not kept.tokens():
                warn("There are no tokens now: a service that runs answers nobody until there are.")
        else:
            known = kept.tokens()
            if not known:
                warn(f"{kept.place} has no tokens: a service of it answers this machine alone.")
            for one in known:
                models = ", ".join(one.models) or "all models"
                typer.echo(f"{one.token}  {one.name}: {', '.join(one.scopes)}; {models}")
    finally:
        kept.close()
