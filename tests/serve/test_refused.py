"""What is too long, malformed or of the wrong kind is refused with a clear problem document."""

import asyncio
import random
import sqlite3
from contextlib import closing

import pytest
from starlette.requests import Request

from groupwise.serve import app as served
from groupwise.serve.access import new_token
from groupwise.serve.bodies import BODY
from groupwise.serve.errors import StoreError
from tests.serve.running import PATH, SETTINGS, asynchronous, inside, is_problem, made, row


async def _chunks(content: bytes):
    for start in range(0, len(content), 1 << 16):
        yield content[start : start + (1 << 16)]


@asynchronous
async def test_what_is_too_long(place):
    async with inside(place) as (_, client):
        await made(client)
        long = b'{"row": {"a": "%s"}}' % (b"x" * BODY)
        json = {"Content-Type": "application/json"}
        path = f"{PATH}/predict"
        detail = is_problem(await client.post(path, content=long, headers=json), 413, "too-long")
        assert "1,048,576 bytes" in detail
        chunked = await client.post(path, content=_chunks(long), headers=json)
        is_problem(chunked, 413, "too-long")
        is_problem(await client.put(PATH, content=long), 413, "too-long")
        many: dict = {"rows": [{"row": {}}] * 1001}
        is_problem(await client.post(f"{path}/batch", json=many), 413, "too-long")
        labels = [{"id": "a", "label": 1.0}] * 1001
        is_problem(await client.post(f"{PATH}/labels", json=labels), 413, "too-long")
        forgotten = [{"id": "a"}] * 1001
        is_problem(await client.post(f"{PATH}/forget", json=forgotten), 413, "too-long")
        assert (await client.get(PATH)).json()["events"] == 0


@asynchronous
async def test_what_cannot_be_read(place):
    async with inside(place) as (_, client):
        await made(client)
        json = {"Content-Type": "application/json"}
        for path, bad in (
            ("predict", b""),
            ("predict", b"{"),
            ("predict", b"[]"),
            ("predict", b'{"row": 1}'),
            ("predict", b'{"row": {"a": [1]}}'),
            ("predict", b'{"row": {"a": {"b": 1}}}'),
            ("predict", b'{"row": {"a": NaN}}'),
            ("predict", b'{"row": {"a": 1e999}}'),
            ("predict", b'{"row": {"a": 9223372036854775808}}'),
            ("predict", b'{"row": {"a": %s}}' % (b"9" * 5000)),
            ("predict", b'{"row": {"a": "\xff"}}'),
            ("predict", b'{"row": {"a": "\\ud800"}}'),
            ("predict", b'{"row": {}, "id": ""}'),
            ("predict", b'{"row": {}, "id": "~1"}'),
            ("predict", b'{"row": {}, "id": "a\\u0000"}'),
            ("predict", b'{"row": {}, "id": "%s"}' % (b"x" * 201)),
            ("predict", b'{"row": {}, "unheard": 1}'),
            ("predict", b'{"row": %s' % (b'{"a":' * 100_000)),
            ("predict/batch", b'{"rows": [{"row": {"a": []}}]}'),
            ("labels", b'{"label": 1.0}'),
            ("labels", b'{"label": 1.0, "id": "a", "ticket": 1}'),
            ("labels", b'{"label": null, "id": "a"}'),
            ("labels", b'{"label": [1], "id": "a"}'),
            ("labels", b'{"label": 1.0, "ticket": -1}'),
            ("labels", b'{"label": 1.0, "ticket": 9223372036854775808}'),
            ("labels", b'{"label": 1.0, "ticket": 1.5}'),
            ("labels", b'[{"id": "a"}]'),
            ("forget", b"{}"),
            ("forget", b'{"id": 5}'),
        ):
            response = await client.post(f"{PATH}/{path}", content=bad, headers=json)
            is_problem(response, 400, "malformed")
        is_problem(await client.get(f"{PATH}/regret?largest=-1"), 400, "malformed")
        is_problem(await client.get(f"{PATH}/regret?largest=many"), 400, "malformed")
        assert (await client.get(PATH)).json()["events"] == 0


@asynchronous
async def test_what_the_model_refuses(place):
    async with inside(place) as (_, client):
        await made(client)
        good = row(random.Random(1))
        for bad, said in (
            ({**good, "age": "old"}, "'age'"),
            ({**good, "age": None}, "'age'"),
            ({name: good[name] for name in ("sex", "smoker", "age")}, "'bmi'"),
            ({}, "'sex'"),
        ):
            response = await client.post(f"{PATH}/predict", json={"row": bad})
            assert said in is_problem(response, 422, "invalid")
        assert (await client.post(f"{PATH}/predict", json={"row": good})).json()["ticket"] == 0
        for wrong in (61.0, "high", True, -1):
            given = {"ticket": 0, "label": wrong}
            is_problem(await client.post(f"{PATH}/labels", json=given), 422, "invalid")
        response = await client.post(f"{PATH}/labels", json={"ticket": 0, "label": 750})
        assert "range = [low, high]" in is_problem(response, 422, "invalid")
        given = {"ticket": 0, "label": 60}
        assert (await client.post(f"{PATH}/labels", json=given)).json()["outcome"] == "settled"


@asynchronous
async def test_other_kinds_pages_and_methods(place):
    async with inside(place) as (_, client):
        await made(client)
        text = b'{"row": {}}'
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            response = await client.post(
                f"{PATH}/predict", content=text, headers={"Content-Type": kind}
            )
            is_problem(response, 415, "media-type")
        zipped = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        refused = await client.post(f"{PATH}/predict", content=text, headers=zipped)
        is_problem(refused, 415, "media-type")
        is_problem(await client.get("/v1/nothing"), 404, "unknown")
        is_problem(await client.get("/v1/models/none/regret"), 404, "unknown")
        is_problem(await client.get(f"{PATH}/predict"), 405, "method")
        is_problem(await client.post(f"{PATH}/calibration"), 405, "method")
        is_problem(await client.get(f"{PATH}/calibration"), 422, "invalid")


@asynchronous
async def test_more_requests_than_are_taken(place, monkeypatch):
    async with inside(place) as (_, client):
        await made(client)
        monkeypatch.setattr(served, "AT_ONCE", 0)
        response = await client.get(PATH)
        is_problem(response, 503, "busy")
        assert response.headers["retry-after"] == "1"
        assert (await client.get("/live")).status_code == 200


@asynchronous
async def test_what_nobody_thought_of_is_a_problem_document_too(place, monkeypatch):
    async with inside(place) as (app, client):
        await made(client)
        monkeypatch.setattr(app.looks, "about", lambda engine: 1 / 0)
        is_problem(await client.get("/v1/models"), 500, "internal")


@pytest.mark.parametrize("kind", ["predict", "settle"])
@asynchronous
async def test_a_model_that_fails_midway_goes_back_to_what_is_durable(place, monkeypatch, kind):
    """Whatever a failure inside the model has done to it, the log says what happened."""
    async with inside(place) as (app, client):
        await made(client)
        good = row(random.Random(1))
        await client.post(f"{PATH}/predict", json={"id": "a", "row": good})
        engine = app.service.engines["costs"]

        def fails(*arguments):
            engine.state.model.predict(good)  # an effect that no event tells of
            raise RuntimeError("as if by accident")

        monkeypatch.setattr(engine.state, kind, fails)
        body = {"id": "b", "row": good} if kind == "predict" else {"id": "a", "label": 1.0}
        path = f"{PATH}/{'predict' if kind == 'predict' else 'labels'}"
        is_problem(await client.post(path, json=body), 500, "internal")
        while (found := await client.post(path, json=body)).status_code == 503:
            await asyncio.sleep(0.01)
        assert found.status_code == 200
        body = {"id": "c", "row": good}
        found = (await client.post(f"{PATH}/predict", json=body)).json()
        assert found["ticket"] == (2 if kind == "predict" else 1)


@asynchronous
async def test_odd_ids_and_long_texts(place):
    async with inside(place) as (_, client):
        await made(client)
        good = row(random.Random(1))
        for name in ("a\n", "\n", "a\x7f"):
            body = {"id": name, "row": good}
            is_problem(await client.post(f"{PATH}/predict", json=body), 400, "malformed")
            given = {"id": name, "label": 1.0}
            is_problem(await client.post(f"{PATH}/labels", json=given), 400, "malformed")
        is_problem(await client.get(f"{PATH}/tickets/%00"), 400, "malformed")
        await client.post(f"{PATH}/predict", json={"id": "a", "row": good})
        long = "x" * 500_000
        wrong = [{"id": "a", "label": long}]
        found = (await client.post(f"{PATH}/labels", json=wrong)).json()["labels"]
        assert found[0]["outcome"] == "invalid"
        assert len(found[0]["detail"]) < 5_000
        refused = await client.post(f"{PATH}/predict", json={"row": {**good, "age": long}})
        assert len(is_problem(refused, 422, "invalid")) < 5_000


@asynchronous
async def test_the_head_of_a_stream_ends(place):
    async with inside(place) as (_, client):
        await made(client)
        found = await client.head(f"{PATH}/stream")
        assert found.headers["content-type"].startswith("text/event-stream")


@asynchronous
async def test_settings_that_would_take_for_ever(place):
    async with inside(place) as (_, client):
        for text in (".".join(["a"] * 50_000) + " = 1", "x = " + "[" * 100_000):
            refused = await client.put(PATH, content=text)
            assert "nested too deeply" in is_problem(refused, 422, "invalid")
        groups = ", ".join(f'{{ by = "c{one}" }}' for one in range(501))
        refused = await client.put(PATH, content=f"range = [0, 1]\ngroups = [{groups}]")
        assert "at most 500" in is_problem(refused, 422, "invalid")
        edges = ", ".join(f"{one}.5" for one in range(300))
        await made(client, SETTINGS.replace("35.0, 50.0", edges))


@asynchronous
async def test_settings_that_are_misspelt(file):
    async with inside(file) as (_, client):
        unknown = is_problem(await client.put(PATH, content="group = []"), 422, "invalid")
        assert "The settings of costs: unknown key 'group'. Did you mean 'groups'?" in unknown
        assert "more" not in unknown
        broken = is_problem(await client.put(PATH, content="range = ["), 422, "invalid")
        assert broken.startswith("The settings of costs: this is not valid TOML")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("row", "text"),
        ("answer", None),
        ("answer", b"{"),
        ("answer", b'"\xb2"'),
        ("outcome", "sett"),
        ("label", 7),
    ],
)
@asynchronous
async def test_what_a_disk_has_changed_of_remembered_tickets(file, column, value):
    """What a flipped bit makes of a value: another type, or something that cannot be read."""
    async with inside(file) as (app, client):
        await made(client)
        asked = {"id": "a", "row": row(random.Random(1))}
        await client.post(f"{PATH}/predict", json=asked)
        await client.post(f"{PATH}/labels", json={"id": "a", "label": 5})
        await app.service.engines["costs"].snapshot()
        with sqlite3.connect(file) as other:
            text = other.execute("SELECT sql FROM sqlite_master WHERE name = 'answers'").fetchone()
            other.execute("PRAGMA writable_schema = 1")
            lax = "UPDATE sqlite_master SET sql = ? WHERE name = 'answers'"
            other.execute(lax, (text[0].replace(" NOT NULL", ""),))
        with sqlite3.connect(file) as other:
            other.execute(f"UPDATE answers SET {column} = ?", (value,))
        other.close()
        for page, body in (("predict", asked), ("labels", {"id": "a", "label": 5})):
            response = await client.post(f"{PATH}/{page}", json=body)
            assert "Restore the store from a copy" in is_problem(response, 500, "internal")


@asynchronous
async def test_ids_that_a_disk_has_changed_refuse_a_start(file):
    async with inside(file) as (app, client):
        await made(client)
        await client.post(f"{PATH}/predict", json={"id": "a", "row": row(random.Random(1))})
        await client.post(f"{PATH}/labels", json={"id": "a", "label": 5})
        await app.service.engines["costs"].snapshot()
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE answers SET key = x'61'")
    with pytest.raises(StoreError, match="Restore the store from a copy"):
        async with inside(file):
            pass


@asynchronous
async def test_no_error_depends_on_the_address_that_a_host_header_makes(file, monkeypatch):
    """A host of "[" makes it none; how starlette reads it depends on its version."""
    text, token = new_token("look", ["read"])

    def broken(request):
        raise ValueError("Invalid IPv6 URL")

    monkeypatch.setattr(Request, "url", property(broken))
    async with inside(file) as (app, client):
        host = {"Host": "["}
        is_problem(await client.get("/nothing", headers=host), 404, "unknown")
        is_problem(await client.post("/live", headers=host), 405, "method")
        app.service.store.put_token(token)
        app.service.tokens = app.service.store.tokens()
        sent = await client.post("/login", data={"token": text}, headers=host)
        assert sent.status_code == 303
        monkeypatch.setattr(app, "_under_way", None)
        is_problem(await client.get("/live", headers=host), 500, "internal")
