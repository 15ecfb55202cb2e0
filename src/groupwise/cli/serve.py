"""The command ``serve``."""

from typing import Annotated

import typer

from groupwise.cli.options import Stored, warn


def command(
    store: Stored = "groupwise.db",
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine with tokens."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="The port.")] = 8088,
    snapshot_events: Annotated[
        int, typer.Option(metavar="EVENTS", min=1, help="Take a snapshot after so many events.")
    ] = 100_000,
    snapshot_seconds: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Take a snapshot after so many seconds."),
    ] = 60.0,
    keep_log: Annotated[
        bool, typer.Option("--keep-log", help="Keep all events, also those before the snapshots.")
    ] = False,
    remember: Annotated[
        float, typer.Option(min=0.0, metavar="DAYS", help="Know settled tickets for so long.")
    ] = 30.0,
    sample: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="Note regret every so often; 0 for never."),
    ] = 10.0,
    lease: Annotated[
        float,
        typer.Option(
            min=0.5,
            max=86_400.0,
            metavar="SECONDS",
            help="With PostgreSQL: a writer that says nothing for so long may be replaced.",
        ),
    ] = 10.0,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="With PostgreSQL: serve this model only, others elsewhere. Again for another.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Do not serve: verify that snapshots and log give the same state."
        ),
    ] = False,
) -> None:
    """Serve models over HTTP: predictions, labels when they come, regret at any time.

    An answer leaves when what it says is on the disk: nothing is lost, whatever happens to the
    process. SIGTERM ends it with a snapshot of every model.
    """
    import logging

    from groupwise.serve.engine import Ageing
    from groupwise.serve.run import Settings, serve
    from groupwise.serve.run import check as verify

    ageing = Ageing(snapshot_events, snapshot_seconds, keep_log, remember * 86_400.0)
    settings = Settings(store, host, port, ageing, sample, lease, tuple(model or ()))
    if check:
        if not verify(settings, typer.echo):
            raise typer.Exit(1)
        return
    logging.basicConfig(format="groupwise: %(message)s", level=logging.WARNING)
    logging.captureWarnings(True)
    serve(settings, warn)
