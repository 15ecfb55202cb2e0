"""The commands ``serve`` and ``token`` as they begin."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from groupwise.errors import ConfigurationError
from groupwise.losses import Log, Square
from groupwise.serve import run, warm
from groupwise.serve.app import App
from groupwise.serve.looks import Looks
from groupwise.serve.run import Settings, open_store
from groupwise.serve.service import Service
from tests.cli.commands import refused, succeed
from tests.serve.running import (
    PATH,
    Here,
    Running,
    asynchronous,
    free_port,
    inside,
    is_problem,
    made,
)

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@asynchronous
async def filled(place):
    async with inside(place) as (_, client):
        await made(client)


def test_what_first_models_need_is_compiled_before_they_are_made(file, monkeypatch):
    """Nobody waits for it, and a service that has models compiles what these need."""
    asked = []
    monkeypatch.setattr(run, "warm_usual", lambda ending: asked.append(ending()))
    monkeypatch.setattr(run, "tune", lambda: None)
    monkeypatch.setattr(run.Server, "run", lambda server, sockets: None)
    settings = Settings(file, port=free_port())
    run.serve(settings, lambda text: None)
    assert asked == [False]
    filled(file)
    run.serve(settings, lambda text: None)
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
    last = succeed("token", "revoke", some.stdout.split()[0], *here)
    assert "answers nobody until there are" in last.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_beyond_this_machine_a_service_needs_tokens(file, monkeypatch, host):
    """Also when those that it began with are revoked before it has read them."""
    began: list[run.Server] = []
    monkeypatch.setattr(run.Server, "run", lambda server, sockets: began.append(server))
    for name in ("tune", "warm_usual"):
        monkeypatch.setattr(run, name, lambda *about: None)
    settings = Settings(file, host=host)
    with pytest.raises(ConfigurationError, match="there are no tokens"):
        run.serve(settings, print)
    assert not began
    assert not Path(file).exists()
    monkeypatch.setattr(run, "_check_host", lambda settings: None)
    monkeypatch.setattr(run, "listening", lambda host, port: [])
    run.serve(settings, lambda said: None)
    run.serve(Settings(file), lambda said: None)
    guarded = [server.config.app.service.guarded for server in began]  # type: ignore[union-attr]
    assert guarded == [True, False]


def test_a_port_in_use_is_said_before_anything_is_made(file, monkeypatch):
    monkeypatch.setattr(run, "tune", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("serve", "--store", file, "--port", port)
    assert said == f"groupwise: Port {port} is in use: choose another with --port."
    assert not [*Path(file).parent.iterdir()]
    said = refused("serve", "--store", file, "--host", "localhost.invalid", "--port", port)
    assert "there are no tokens" in said
    assert not [*Path(file).parent.iterdir()]


def test_all_addresses_of_a_host_are_listened_at():
    port = free_port()
    sockets = run.listening("localhost", port)
    try:
        with pytest.raises(ConfigurationError, match=f"Port {port} is in use"):
            run.listening("localhost", port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    finally:
        for one in sockets:
            one.close()
    with pytest.raises(ConfigurationError, match="Cannot listen at 192"):
        run.listening("192.0.2.1", port)


@asynchronous
async def test_before_all_models_are_there_no_list_of_them_is_given(file, monkeypatch):
    """Or it would say that there are none."""
    async with inside(file) as (_, client):
        await made(client)
    opens, opened = asyncio.Event(), Service._open

    async def later(self, record):
        await opens.wait()
        await opened(self, record)

    monkeypatch.setattr(Service, "_open", later)
    service = Service(open_store(file))
    app = App(service, Looks(Here()), lambda error: None)
    async with app.starlette.router.lifespan_context(app.starlette):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for page in ("/", "/v1/models", PATH):
                found = await client.get(page)
                assert "replays its log" in is_problem(found, 503, "unavailable")
                assert found.headers["retry-after"]
            assert (await client.get("/ready")).status_code == 503
            assert (await client.get("/live")).status_code == 200
            opens.set()
            while not service.ready:
                await asyncio.sleep(0.005)
            assert (await client.get("/v1/models")).json()["models"][0]["name"] == "costs"
            assert "costs" in (await client.get("/")).text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here: its lines are not run")
@pytest.mark.parametrize("page", ["README.md", "docs/service.md"])
def test_what_pages_ask_with_curl_is_answered_as_they_say(tmp_path, monkeypatch, page):
    """By a service that is started in an empty folder."""
    monkeypatch.chdir(tmp_path)
    asked = compared = 0
    said: list[str] = []
    with Running("groupwise.db") as service:
        for kind, text in FENCE.findall((ROOT / page).read_text(encoding="utf-8")):
            if kind == "sh" and text.startswith("curl "):
                asked += text.count("curl ")
                lines = text.replace("curl ", "curl --silent --show-error --fail ")
                lines = lines.replace("http://127.0.0.1:8088", service.url)
                run = subprocess.run(["sh", "-euc", lines], capture_output=True, text=True)
                assert run.returncode == 0, run.stderr
                said = run.stdout.splitlines()
                assert all(isinstance(json.loads(line), dict) for line in said)
            elif kind == "json" and said:
                assert text == said[-1] + "\n"
                compared += 1
    assert (asked, compared) == ((3, 2) if page == "README.md" else (4, 0))
    assert (tmp_path / "groupwise.db").exists()
