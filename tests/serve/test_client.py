"""The client: the same answers, whatever is lost on the way, and nothing twice."""

import asyncio
import random

import httpx
import pytest

import groupwise as gw
from groupwise import client as clients
from groupwise.client import AsyncClient, Client, ClientError
from tests.serve.running import SETTINGS, asynchronous, inside, label, row


class Lossy(httpx.AsyncBaseTransport):
    """Loses requests before they arrive, and answers after they were given."""

    def __init__(self, inner, seed=0):
        self.inner = inner
        self.draw = random.Random(seed)
        self.lost = 0

    async def handle_async_request(self, request):
        fate = self.draw.random()
        if fate < 0.2:
            self.lost += 1
            raise httpx.ConnectError("lost on the way there")
        response = await self.inner.handle_async_request(request)
        if fate < 0.5:
            self.lost += 1
            raise httpx.ReadError("lost on the way back")
        return response


@asynchronous
async def test_what_is_lost_is_asked_again_and_counts_once(file, monkeypatch, tmp_path):
    monkeypatch.setattr(clients, "PAUSE", 0.0)
    draw = random.Random(1)
    async with inside(file) as (app, http):
        transport = Lossy(httpx.ASGITransport(app))
        async with AsyncClient("http://127.0.0.1", model="costs", transport=transport) as client:
            await client.create(SETTINGS)
            rows = [row(draw) for _ in range(60)]
            found = [await client.predict(one) for one in rows[:30]]
            found += await client.predict_many(rows[30:])
            assert [one.ticket for one in found] == [*range(60)]
            labels = {one.id: label(row) for one, row in zip(found, rows, strict=True)}
            some = dict([*labels.items()][:20])
            for name, value in some.items():
                assert await client.label(name, value) in ("settled", "already")
            assert {*(await client.label_many(labels)).values()} <= {"settled", "already"}
            assert (await client.regret())["settled"] == 60
            assert (await client.ticket(found[0].id))["label"] == labels[found[0].id]
            late = await client.predict(rows[0], id="a/b ?")
            assert await client.forget(late.id) in ("forgotten", "already")
            assert (await client.ticket("a/b ?"))["outcome"] == "forgotten"
            with pytest.raises(ClientError, match="another label") as caught:
                await client.label(found[0].id, 59.5)
            assert (caught.value.status, caught.value.problem["status"]) == (409, 409)
            with pytest.raises(ClientError, match="'age'"):
                await client.predict_many([{**rows[0], "age": "old"}])
            place = tmp_path / "costs.gw"
            place.write_bytes(await client.snapshot())
            assert gw.load(place).regret().settled == 60
        about = (await http.get("/v1/models/costs")).json()
        assert (about["predictions"], about["events"]) == (61, 122)
        assert transport.lost > 20


def test_a_client_that_waits(monkeypatch):
    """The same requests, and patience as the service asks for it."""
    waited: list[float] = []
    monkeypatch.setattr("groupwise.client.time.sleep", waited.append)
    seen = []

    def answer(request):
        seen.append((request.method, request.url.raw_path.decode(), request.headers))
        if len(seen) < 3:
            return httpx.Response(503, headers={"Retry-After": "2"})
        if request.url.path.endswith("/predict"):
            found = {"id": "a", "ticket": 0, "prediction": 1.5, "groups": {}, "version": 0}
            return httpx.Response(200, json=found)
        return httpx.Response(404, json={"title": "There is no such thing", "detail": "no"})

    transport = httpx.MockTransport(answer)
    with Client("http://x/", "secret", "costs", transport=transport) as client:
        assert client.predict({"a": 1}, id="a").prediction == 1.5
        assert waited == [2.0, 2.0]
        assert seen[0][:2] == ("POST", "/v1/models/costs/predict")
        assert seen[0][2]["authorization"] == "Bearer secret"
        assert seen[0][2]["content-type"] == "application/json"
        with pytest.raises(ClientError, match="no such thing"):
            client.ticket("b/c")
        assert seen[-1][1] == "/v1/models/costs/tickets/b%2Fc"

    def refuse(request):
        raise httpx.ConnectError("nobody there")

    with Client("http://x", transport=httpx.MockTransport(refuse)) as client:
        with pytest.raises(ClientError, match="Which model"):
            client.predict({})
        client.model = "m"
        waited.clear()
        with pytest.raises(ClientError, match="cannot be reached"):
            client.predict({})
        assert len(waited) == clients.TRIES - 1
        with pytest.raises(ClientError, match="cannot be reached"):
            client.snapshot()
    asyncio.run(_never_reached())


async def _never_reached():
    def refuse(request):
        raise httpx.ConnectError("nobody there")

    transport = httpx.MockTransport(refuse)
    async with AsyncClient("http://x", model="m", transport=transport) as client:
        tries = clients.TRIES
        clients.TRIES = 2
        try:
            with pytest.raises(ClientError, match="cannot be reached"):
                await client.predict({})
        finally:
            clients.TRIES = tries


@asynchronous
async def test_wide_rows_are_sent_in_more_requests(file):
    draw = random.Random(1)
    settings = SETTINGS.replace("features = {", 'features = { note = "hashed",')
    async with inside(file) as (app, _):
        transport = httpx.ASGITransport(app)
        async with AsyncClient("http://127.0.0.1", model="costs", transport=transport) as client:
            await client.create(settings)
            rows = [{**row(draw), "note": "ü" * 40_000} for _ in range(30)]
            found = await client.predict_many(rows, ids=[f"w{number}" for number in range(30)])
            assert [one.ticket for one in found] == [*range(30)]
            with pytest.raises(ClientError, match="cannot be sent"):
                await client.predict_many([{**rows[0], "age": float("nan")}])
            for name in (".", "..", "a/../b"):
                await client.predict(rows[0], id=name)
                assert (await client.ticket(name))["answer"]["id"] == name


def test_what_is_not_the_service_is_said_so():
    page = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>a proxy</html>"))
    with (
        Client("http://127.0.0.1", model="costs", transport=page) as client,
        pytest.raises(ClientError, match="no JSON"),
    ):
        client.regret()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("token", ["gw_…", "", "gw_1 2", "gw_1\n"])
def test_what_cannot_be_a_token_is_refused_at_once(kind, token):
    with pytest.raises(ClientError, match="groupwise token create printed") as caught:
        kind("http://127.0.0.1:8088", token=token, model="costs")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), "\ud800"])
def test_what_is_no_json_is_said_at_once(value):
    with Client("http://127.0.0.1:1", model="costs") as client:
        for ask in (
            lambda: client.predict({"age": value}),
            lambda: client.predict_many([{"age": value}]),
            lambda: client.label("a", value),
            lambda: client.label_many({"a": value}),
        ):
            with pytest.raises(ClientError, match="cannot be sent"):
                ask()


@asynchronous
async def test_what_is_no_json_is_said_at_once_with_an_event_loop_too():
    async with AsyncClient("http://127.0.0.1:1", model="costs") as client:
        with pytest.raises(ClientError, match="cannot be sent"):
            await client.predict({"age": float("nan")})
        with pytest.raises(ClientError, match="cannot be sent"):
            await client.label("a", object())


@pytest.mark.parametrize("url", ["127.0.0.1:8088", "ftp://127.0.0.1"])
def test_what_is_no_address_is_not_tried_again(monkeypatch, url):
    monkeypatch.setattr("groupwise.client.time.sleep", lambda seconds: pytest.fail("it waits"))
    with (
        Client(url, model="costs") as client,
        pytest.raises(ClientError, match="protocol"),
    ):
        client.predict({})


def test_json_is_sent_as_it_is_counted():
    """Some versions of httpx write é in six bytes: what had room in a request was too long."""
    seen = []

    def answer(request):
        seen.append(request.content)
        return httpx.Response(200, json={"outcome": "settled"})

    with Client("http://x", model="m", transport=httpx.MockTransport(answer)) as client:
        client.label("é", 1.5)
        client.forget("é")
        client.regret()
    assert seen == ['{"id":"é","label":1.5}'.encode(), '{"id":"é"}'.encode(), b""]
    assert clients._size({"id": "é", "label": 1.5}) == len(seen[0]) + 1
