"""The commands ``serve`` and ``token`` as they begin."""

import pytest

from groupwise.losses import Log, Square
from groupwise.serve import run, warm
from groupwise.serve.run import Settings
from tests.cli.commands import refused, succeed
from tests.serve.running import asynchronous, inside, made


@asynchronous
async def filled(place):
    async with inside(place) as (_, client):
        await made(client)


def test_what_first_models_need_is_compiled_before_they_are_made(file, monkeypatch):
    """Nobody waits for it, and a service that has models compiles what these need."""
    asked = []
    monkeypatch.setattr(run, "warm_usual", lambda ending: asked.append(ending()))
    monkeypatch.setattr(run, "tune", lambda: None)
    monkeypatch.setattr(run.Server, "run", lambda server: None)
    run.serve(Settings(file), lambda text: None)
    assert asked == [False]
    filled(file)
    run.serve(Settings(file), lambda text: None)
    assert asked == [False]


@pytest.mark.parametrize(("time_left", "kinds"), [(2, [Square, Log]), (1, [Square]), (0, [])])
def test_the_usual_models(monkeypatch, time_left, kinds):
    warmed = []
    monkeypatch.setattr(warm, "warm", lambda model: warmed.append(type(model.loss)))
    warm.warm_usual(lambda: len(warmed) >= time_left)
    assert warmed == kinds


def test_tokens_are_listed_also_where_there_are_none(file):
    here = "--store", file
    for action in (["list"], ["revoke", "0123456789ab"]):
        assert f"There is no store {file}" in refused("token", *action, *here)
    filled(file)
    none = succeed("token", "list", *here)
    assert none.stdout == ""
    assert none.stderr == (
        f"groupwise: {file} has no tokens: a service of it answers this machine alone.\n"
    )
    succeed("token", "create", "shop", "--scope", "predict", *here)
    some = succeed("token", "list", *here)
    assert "shop: predict; all models" in some.stdout
    assert some.stderr == ""
    assert "There is no token" in refused("token", "revoke", "0123456789ab", *here)
