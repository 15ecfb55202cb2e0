"""The page: whole without scripts, safe with any text, and live in a browser."""

import os
import random
import re
import shutil
import subprocess
import time
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from groupwise.serve.access import new_token
from groupwise.serve.page import leads, svg
from groupwise.serve.store import Token
from tests.serve.running import (
    PATH,
    SETTINGS,
    Running,
    asynchronous,
    inside,
    is_problem,
    label,
    made,
    row,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = "<script>document.title='taken over'</script>"


async def rounds(app, client, count):
    """Rounds with their labels, and a line of history after each of two halves."""
    draw = random.Random(1)
    for number in range(count):
        one = {**row(draw), "sex": SCRIPT if number % 5 == 0 else "f"}
        await client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
        await client.post(f"{PATH}/labels", json={"id": str(number), "label": label(one)})
        if number in (count // 2, count - 1):
            await app.looks.sample(app.service.engines["costs"])


@asynchronous
async def test_the_page_needs_no_script_and_escapes_what_rows_hold(file):
    async with inside(file) as (app, client):
        empty = await client.get("/")
        assert "There is no model yet" in empty.text
        await made(client)
        assert (await client.get("/models/costs")).status_code == 200
        await rounds(app, client, 20)
        text = (await client.get("/models/costs")).text
        assert SCRIPT not in text
        assert f"sex={SCRIPT}".replace("<", "&lt;").replace(">", "&gt;") in text.replace(
            "&#39;", "'"
        )
        assert text.count("<polyline") == 3
        for word in ("Worst groups", "20 settled rounds", "certificate, label²", "always_on"):
            assert word in text
        known = {one["status"] for one in (await client.get(f"{PATH}/regret")).json()["rows"]}
        assert known
        assert set(re.findall(r"<b>([a-z ]+)</b>: ", text)) == known  # what each of them says
        assert "over settled rounds of the model" in text
        of_one = (await client.get("/models/costs", params={"group": f"sex={SCRIPT}"})).text
        assert of_one.count("<polyline") == 3
        assert (await client.get("/models/costs?group=nobody")).text.count("<polyline") == 0
        assert (await client.get("/models/none")).status_code == 404
        addresses = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert addresses
        assert all(one.startswith(("/", "?", "data:")) for one in addresses)
        for page in ("/", "/models/costs", "/login", "/static/page.js"):
            policy = (await client.get(page)).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
        assert (await client.get("/static/../app.py")).status_code == 404
        assert (await client.get("/static/nothing.js")).status_code == 404
        assert "MIT" in (await client.get("/static/uPlot.LICENSE")).text


@asynchronous
async def test_long_names_are_cut(file):
    """A row may hold a megabyte of text, and every page would."""
    async with inside(file) as (_, client):
        await made(client)
        one = {**row(random.Random(1)), "sex": "x" * 5_000}
        for number in range(2):
            await client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
            await client.post(f"{PATH}/labels", json={"id": str(number), "label": 1.0})
        text = (await client.get("/models/costs")).text
        assert ">sex=" + "x" * 115 + "…</a>" in text
        assert "?group=sex%3D" + "x" * 5_000 in text
        assert len(re.findall("x{200,}", text)) == 1  # in the address only
        text = (await client.get("/models/costs", params={"group": "sex=" + "x" * 5_000})).text
        assert "<h2>sex=" + "x" * 115 + "…</h2>" in text


@asynchronous
async def test_alerts(file):
    async with inside(file) as (app, client):
        await made(client)
        await rounds(app, client, 4)
        engine = app.service.engines["costs"]
        await client.post(f"{PATH}/predict", json={"id": "late", "row": row(random.Random(1))})

        async def none():
            """No snapshot, though it is late."""

        engine.snapshot = none
        engine.state.find("late", None).at -= 30 * 86_400
        engine.snapshots[0] = engine.snapshots[0]._replace(at=time.time() - 4_000)
        text = (await client.get("/")).text + (await client.get("/models/costs")).text
        assert "Labels are late: one is awaited for 30 d" in text
        assert "The last snapshot is 67 min old" in text


def test_the_single_model_is_ahead_by_more_than_a_little():
    row = {"group": "sex=f", "regret": 5.0, "loss": 300.0, "baseline_regret": None}
    assert leads([row, {**row, "baseline_regret": 9.0}, {**row, "baseline_regret": 2.1}]) == []
    said = leads([{**row, "baseline_regret": 1.5}, {**row, "loss": 0.0, "baseline_regret": 4.0}])
    assert said == [
        "The single model is ahead on sex=f, by 3.5.",
        "The single model is ahead on sex=f, by 1.",
    ]


@asynchronous
async def test_a_cookie_lets_people_look(file):
    async with inside(file) as (app, client):
        await made(client)
        texts = {}
        for scope in ("read", "learn"):
            texts[scope], token = new_token(scope, [scope], ["costs"])
            app.service.store.put_token(token)
        app.service.tokens = app.service.store.tokens()
        for page in ("/", "/models/costs"):
            sent = await client.get(page)
            assert (sent.status_code, sent.headers["location"]) == (303, "/login")
        for wrong in ("", "gw_nonsense", texts["learn"]):
            refused = await client.post("/login", data={"token": wrong})
            assert refused.status_code == 401
            assert "set-cookie" not in refused.headers
        long = await client.post("/login", data={"token": "x" * 5_000})
        assert "at most 4,096 bytes" in is_problem(long, 413, "too-long")
        sent = await client.post("/login", data={"token": texts["read"]})
        assert sent.status_code == 303
        cookie = sent.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" not in cookie
        behind = {"X-Forwarded-Proto": "https"}  # a proxy that browsers speak HTTPS to
        sent = await client.post("/login", data={"token": texts["read"]}, headers=behind)
        assert "Secure" in sent.headers["set-cookie"]
        client.cookies.clear()
        await client.post("/login", data={"token": texts["read"]})
        assert "costs" in (await client.get("/")).text
        assert (await client.get("/models/costs")).status_code == 200
        assert (await client.get("/v1/models")).json()["models"][0]["name"] == "costs"
        assert (await client.post(f"{PATH}/predict", json={"row": {}})).status_code == 401


def test_a_drawing_of_what_there_is():
    assert "<polyline" not in svg([])
    assert "<polyline" not in svg([(1, 1.0, 2.0, 3.0, 4.0)])
    drawn = svg([(1, 1.0, 2.0, 3.0, None), (2, 2.0, 2.0, 3.0, None), (3, 3.0, 0.0, 0.0, 1.0)])
    assert drawn.count("<polyline") == 3
    assert "nan" not in drawn
    assert "<polyline" in svg([(1, 1.0, 0.0, 0.0, 0.0)] * 2)
    far = svg([(1, 1.0, 1.0, 2.0, 900.0), (2, 2.0, 1.0, 2.0, 900.0)])
    assert ">4<" in far  # the axis: a single model that is far off does not flatten the others
    assert ">900<" not in far
    assert far.count('class="axis"') == 2  # 0 is the lowest of it, and written once


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page is not looked at")
def test_in_a_browser(file, tmp_path):
    """Scripts run under the policy: the chart is drawn, figures follow, nothing takes over."""
    service = Running(file, "--sample", "0.2").start()
    try:
        with httpx.Client(base_url=service.url, timeout=60) as client:
            client.put(PATH, content=SETTINGS).raise_for_status()
            draw = random.Random(1)
            for number in range(60):
                one = {**row(draw), "sex": SCRIPT if number % 5 == 0 else "f"}
                client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
                client.post(f"{PATH}/labels", json={"id": str(number), "label": label(one)})
                time.sleep(0.03)
            while len(client.get(f"{PATH}/history").json()["points"]) < 2:
                time.sleep(0.1)
                number += 1
                client.post(f"{PATH}/predict", json={"id": str(number), "row": row(draw)})
                client.post(f"{PATH}/labels", json={"id": str(number), "label": 1.0})
            dom = subprocess.run(
                [
                    str(CHROMIUM),
                    *("--headless", "--disable-gpu", "--no-first-run", "--timeout=6000"),
                    f"--user-data-dir={tmp_path / 'profile'}",
                    *(["--no-sandbox"] if os.geteuid() == 0 else []),
                    *("--dump-dom", f"{service.url}/models/costs"),
                ],
                capture_output=True,
                timeout=120,
                check=True,
            ).stdout.decode()
        assert "<canvas" in dom  # uPlot's
        assert "taken over" not in re.search(r"<title>(.*?)</title>", dom)[1]  # type: ignore[index]
        assert "Worst groups" in dom
    finally:
        service.end()


@asynchronous
async def test_a_stream_ends_with_its_token(file):
    async with inside(file) as (app, client):
        await made(client)
        request = Request({"type": "http", "method": "GET", "headers": []})
        request.scope["path_params"] = {"model": "costs"}
        one, other = (Token(name, name, b"", ("read",), (), 0.0) for name in ("one", "other"))
        app.service.tokens = [one, other]
        stream: Any = (await app._stream(request, one)).body_iterator
        assert b"figures" in await anext(stream)
        app.service.tokens = [other]
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
