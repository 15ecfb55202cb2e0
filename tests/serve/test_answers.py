"""Every endpoint: what it answers, and what it says when it does not."""

import asyncio
import json
import logging
import random
from typing import Any

import pytest
from starlette.requests import Request

import groupwise as gw
from groupwise.serve.access import EVERYBODY, new_token
from groupwise.serve.engine import Ageing
from groupwise.serve.looks import Looks
from groupwise.serve.run import open_store
from groupwise.serve.state import State
from tests.serve.running import PATH, SETTINGS, asynchronous, inside, is_problem, label, made, row


@asynchronous
async def test_the_numbers_are_those_of_the_library(file):
    draw = random.Random(3)
    rows = [row(draw) for _ in range(120)]
    async with inside(file, looks=Looks()) as (_, client):
        await made(client)
        content = (await client.get(f"{PATH}/snapshot")).content
        model = State.thawed(content, "the first snapshot").model
        tickets: list[Any] = []
        for number, one in enumerate(rows):
            body = {"id": f"r{number}", "row": one}
            found = (await client.post(f"{PATH}/predict", json=body)).json()
            ticket = model.predict(one)
            tickets.append(ticket)
            assert found["prediction"] == ticket.prediction
            assert found["groups"] == ticket.groups
            assert (found["ticket"], found["version"]) == (ticket.number, ticket.version)
            if number % 3 == 2:
                late = draw.randrange(len(tickets))
                if tickets[late] is not None:
                    given = {"ticket": late, "label": label(rows[late])}
                    await client.post(f"{PATH}/labels", json=given)
                    model.learn(tickets[late], label(rows[late]))
                    tickets[late] = None
        table = (await client.get(f"{PATH}/regret")).json()
        assert table["rows"] == [dict(one) for one in model.regret().rows]
        assert table["settled"] == model.regret().settled
        named = (await client.get(f"{PATH}/regret?largest=2")).json()["rows"]
        assert [one["group"] for one in named] == [one["group"] for one in model.regret(2).rows]


@asynchronous
async def test_intervals_are_issued_and_counted(file):
    draw = random.Random(4)
    async with inside(file, looks=Looks()) as (_, client):
        await made(client, "interval = 0.8\n" + SETTINGS)
        outside = 0
        for number in range(150):
            one = row(draw)
            found = (await client.post(f"{PATH}/predict", json={"row": one})).json()
            low, high = found.get("interval", (1.0, 0.0))
            outside += not low <= label(one) <= high
            await client.post(f"{PATH}/labels", json={"ticket": number, "label": label(one)})
        table = (await client.get(f"{PATH}/coverage?largest=1")).json()
        assert (table["wanted"], table["settled"]) == (0.8, 150)
        assert [one["missed"] for one in table["rows"]] == [outside]
        assert 10 <= outside <= 50
        body = {"id": "last", "row": row(draw)}
        last = (await client.post(f"{PATH}/predict", json=body)).json()
        assert last["interval"][0] <= last["prediction"] <= last["interval"][1]
        waiting = [(row(draw), f"late {number}") for number in range(20)]
        for one, name in waiting:
            found = (await client.post(f"{PATH}/predict", json={"id": name, "row": one})).json()
            low, high = found.get("interval", (1.0, 0.0))
            outside += not low <= label(one) <= high
    draw.shuffle(waiting)
    async with inside(file, looks=Looks()) as (_, client):
        assert (await client.post(f"{PATH}/predict", json=body)).json() == last
        for one, name in waiting:
            await client.post(f"{PATH}/labels", json={"id": name, "label": label(one)})
        table = (await client.get(f"{PATH}/coverage?largest=1")).json()
        assert [(one["rounds"], one["missed"]) for one in table["rows"]] == [(170.0, outside)]


@asynchronous
async def test_without_intervals_there_is_no_coverage(file):
    async with inside(file, looks=Looks()) as (_, client):
        await made(client)
        assert "interval" not in (await client.post(f"{PATH}/predict", json={"row": {}})).json()
        is_problem(await client.get(f"{PATH}/coverage"), 422, "invalid")
        wrong = await client.put("/v1/models/other", content="interval = 9\n" + SETTINGS)
        is_problem(wrong, 422, "invalid")


@asynchronous
async def test_everything_may_be_repeated(file):
    async with inside(file) as (_, client):
        await made(client)
        one, other = row(random.Random(1)), row(random.Random(2))

        async def predict(body):
            return await client.post(f"{PATH}/predict", json=body)

        async def labels(body):
            return await client.post(f"{PATH}/labels", json=body)

        first = await predict({"id": "a", "row": one})
        assert (
            await predict({"id": "a", "row": dict(reversed(one.items()))})
        ).json() == first.json()
        said = is_problem(await predict({"id": "a", "row": other}), 409, "conflict")
        differing = ", ".join(f"'{name}'" for name in other if one[name] != other[name])
        assert f"for another row, which differs in {differing}. Send the fields" in said
        more = {"id": "a", "row": {**one, "costs": 5.0}}
        assert "differs in 'costs'" in is_problem(await predict(more), 409, "conflict")
        assert (await predict({"row": one})).json()["id"] == "~1"
        assert (await predict({"row": one})).json()["id"] == "~2"
        assert (await labels({"id": "a", "label": 5})).json() == {"id": "a", "outcome": "settled"}
        assert "for another row. " in is_problem(await predict(more), 409, "conflict")
        assert (await labels({"id": "a", "label": 5.0})).json()["outcome"] == "already"
        assert (await labels({"ticket": 0, "label": 5.0})).json()["outcome"] == "already"
        is_problem(await labels({"id": "a", "label": 6.0}), 409, "conflict")
        is_problem(await labels({"id": "b", "label": 6.0}), 404, "unknown")
        is_problem(await labels({"ticket": 17, "label": 6.0}), 404, "unknown")
        assert (await predict({"id": "a", "row": one})).json() == first.json()
        many = [
            {"id": "~1", "label": 1.0},
            {"ticket": 1, "label": 1},
            {"id": "~1", "label": 2.0},
            {"id": "~2", "label": 61.0},
            {"id": "~99", "label": 1.0},
            {"id": "~9999999999999999999999", "label": 1.0},
        ]
        found = (await labels(many)).json()["labels"]
        expected = ["settled", "already", "conflict", "invalid", "unknown", "unknown"]
        assert [one["outcome"] for one in found] == expected
        assert "outside" in found[3]["detail"]

        async def forget(body):
            return await client.post(f"{PATH}/forget", json=body)

        assert (await forget({"id": "~2"})).json()["outcome"] == "forgotten"
        assert (await forget({"ticket": 2})).json()["outcome"] == "already"
        is_problem(await forget({"id": "a"}), 409, "conflict")
        is_problem(await labels({"id": "~2", "label": 1.0}), 409, "conflict")
        found = (await forget([{"ticket": 2}, {"id": "nobody"}])).json()["forgotten"]
        assert [one["outcome"] for one in found] == ["already", "unknown"]
        ticket = (await client.get(f"{PATH}/tickets/~2")).json()
        assert (ticket["outcome"], ticket["label"]) == ("forgotten", None)
        ticket = (await client.get(f"{PATH}/tickets/a")).json()
        assert (ticket["outcome"], ticket["answer"]) == ("settled", first.json())
        is_problem(await client.get(f"{PATH}/tickets/nobody"), 404, "unknown")


@asynchronous
async def test_batches_answer_item_by_item(file):
    draw = random.Random(4)
    async with inside(file) as (_, client):
        await made(client)
        rows: list[Any] = [{"id": f"b{i}", "row": row(draw)} for i in range(120)]
        del rows[7]["row"]["age"]
        rows.append({"id": "b0", "row": rows[1]["row"]})
        rows.append(rows[3])
        path = f"{PATH}/predict/batch"
        found = (await client.post(path, json={"rows": rows})).json()["predictions"]
        assert found[7]["problem"]["status"] == 422
        assert "'age'" in found[7]["problem"]["detail"]
        assert found[120]["problem"]["status"] == 409
        assert found[121] == found[3]
        issued = [one["ticket"] for one in found if "ticket" in one]
        assert issued == [*range(119), 3]
        assert (await client.post(path, json={"rows": []})).json() == {"predictions": []}


@asynchronous
async def test_settled_tickets_are_known_after_snapshots_and_restarts(place):
    draw = random.Random(5)
    rows = {f"k {i}": row(draw) for i in range(60)}
    answers = {}
    async with inside(place) as (app, client):
        await made(client)
        for name, one in rows.items():
            body = {"id": name, "row": one}
            answers[name] = (await client.post(f"{PATH}/predict", json=body)).json()
        for name in [*rows][:40]:
            await client.post(f"{PATH}/labels", json={"id": name, "label": label(rows[name])})
        await app.service.engines["costs"].snapshot()
        assert not app.service.engines["costs"].state.recent
        await _all_known(client, rows, answers)
    async with inside(place) as (_, client):
        await _all_known(client, rows, answers)


async def _all_known(client, rows, answers):
    for place, name in enumerate(rows):
        body = {"id": name, "row": rows[name]}
        assert (await client.post(f"{PATH}/predict", json=body)).json() == answers[name]
        body = {"id": name, "row": {**rows[name], "age": 17.5}}
        is_problem(await client.post(f"{PATH}/predict", json=body), 409, "conflict")
        ticket = (await client.get(f"{PATH}/tickets/{name}")).json()
        assert ticket["outcome"] == ("settled" if place < 40 else "open")
        if place < 40:
            given = {"id": name, "label": label(rows[name])}
            found = (await client.post(f"{PATH}/labels", json=given)).json()
            assert found["outcome"] == "already"
            given = {"ticket": answers[name]["ticket"], "label": 59.0}
            is_problem(await client.post(f"{PATH}/labels", json=given), 409, "conflict")


@asynchronous
async def test_models_come_and_go(place):
    async with inside(place) as (_, client):
        assert (await client.get("/v1/models")).json() == {"models": []}
        is_problem(await client.get(PATH), 404, "unknown")
        await made(client)
        assert (await client.put(PATH, content=SETTINGS)).status_code == 200
        other = SETTINGS.replace("60.0", "70.0")
        assert (await client.put(PATH, content=other)).status_code == 200
        assert (await client.get(PATH)).json()["settings"] == other
        await client.post(f"{PATH}/predict", json={"row": row(random.Random(1))})
        is_problem(await client.put(PATH, content=SETTINGS), 409, "conflict")
        for wrong in ("nonsense", "range = [0, 1]", SETTINGS + "\nunheard = 1"):
            is_problem(await client.put("/v1/models/wrong", content=wrong), 422, "invalid")
        is_problem(await client.put("/v1/models/Wrong!", content=SETTINGS), 422, "invalid")
        is_problem(await client.put("/v1/models/x", content=b"\xff"), 400, "malformed")
        assert [one["name"] for one in (await client.get("/v1/models")).json()["models"]] == [
            "costs"
        ]
        assert (await client.delete(PATH)).status_code == 204
        is_problem(await client.delete(PATH), 404, "unknown")
        await made(client)
        assert (await client.get(PATH)).json()["events"] == 0


@asynchronous
async def test_a_model_that_is_deleted_during_its_snapshot_is_no_error(place, caplog):
    async with inside(place) as (app, client):
        await made(client)
        await client.post(f"{PATH}/predict", json={"row": row(random.Random(1))})
        engine = app.service.engines["costs"]
        frozen = engine.frozen

        async def deleted():
            found = await frozen()
            assert (await client.delete(PATH)).status_code == 204
            return found

        engine.frozen = deleted
        await app.service._snapshot(engine)
    assert not [one.message for one in caplog.records if one.levelno >= logging.ERROR]


@asynchronous
async def test_a_snapshot_is_a_file_that_the_library_opens(file, tmp_path):
    async with inside(file) as (_, client):
        await made(client)
        for number in range(5):
            one = row(random.Random(number))
            await client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
        await client.post(f"{PATH}/labels", json={"id": "3", "label": 9.0})
        (tmp_path / "model.gw").write_bytes((await client.get(f"{PATH}/snapshot")).content)
    model = gw.load(tmp_path / "model.gw")
    assert (model.issued, model.regret().settled) == (5, 1)


@pytest.mark.parametrize(
    ("settings", "given", "events"),
    [
        ('task = "probability"', 1, None),
        ('classes = ["red", "green", "blue"]', "green", {"red", "green", "blue"}),
        ('classes = ["no", "yes"]', "yes", {"no", "yes"}),
    ],
)
@asynchronous
async def test_probabilities(file, settings, given, events):
    settings = f'{settings}\nfeatures = {{ age = [0, 1] }}\ngroups = [{{ by = "sex" }}]'
    async with inside(file) as (_, client):
        await made(client, settings)
        body = {"id": "a", "row": {"sex": "x", "age": 0.3}}
        found = (await client.post(f"{PATH}/predict", json=body)).json()
        assert (await client.post(f"{PATH}/labels", json={"id": "a", "label": given})).json()
        if events is None:
            assert 0.0 < found["prediction"] < 1.0
        else:
            assert {*found["probabilities"]} == events
            assert sum(found["probabilities"].values()) == pytest.approx(1.0)
            assert found["prediction"] in events
        known = await client.get(f"{PATH}/calibration")
        assert known.status_code == 200, known.text
        assert known.json()["tables"]


@asynchronous
async def test_history_and_the_stream(file):
    async with inside(file, Ageing(keep_log=True)) as (app, client):
        await made(client)
        engine = app.service.engines["costs"]
        for number in range(3):
            one = row(random.Random(number))
            await client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
            await client.post(f"{PATH}/labels", json={"id": str(number), "label": label(one)})
            await app.looks.sample(engine)
        points = (await client.get(f"{PATH}/history")).json()["points"]
        assert [point["settled"] for point in points] == [1, 2, 3]
        assert points[-1]["groups"]["always_on"][0] == 3.0
        only = (await client.get(f"{PATH}/history?group=always_on")).json()["points"]
        assert [*only[-1]["groups"]] == ["always_on"]
        assert (await client.get(f"{PATH}/history?group=none")).json()["points"][0]["groups"] == {}
        asyncio.get_running_loop().call_later(0.3, app.looks.end)
        seen = await client.get(f"{PATH}/stream", headers={"Last-Event-ID": "2"})
        assert seen.headers["content-type"].startswith("text/event-stream")
        events = [part.split("\n") for part in seen.text.strip().split("\n\n")]
        assert [one[0] for one in events] == ["event: history"] * 2 + ["event: figures"]
        assert [one[1] for one in events] == ["id: 4", "id: 6", "id: 6"]
        assert json.loads(events[2][2].removeprefix("data: "))["predictions"] == 3
        wrong = await client.get(f"{PATH}/stream", headers={"Last-Event-ID": "no"})
        is_problem(wrong, 400, "malformed")


@asynchronous
async def test_the_service_says_how_it_is(file):
    async with inside(file) as (app, client):
        await made(client)
        await client.post(f"{PATH}/predict", json={"id": "a", "row": row(random.Random(1))})
        await client.post(f"{PATH}/labels", json={"id": "a", "label": 1.0})
        await client.get(f"{PATH}/regret")
        assert (await client.get("/live")).json() == {"live": True}
        assert (await client.get("/ready")).json() == {"ready": True}
        text = (await client.get("/metrics")).text
        for line in (
            'groupwise_predictions_total{model="costs"} 1.0',
            'groupwise_labels_total{model="costs",outcome="settled"} 1.0',
            'groupwise_outstanding{model="costs"} 0.0',
            'groupwise_label_lag_seconds_count{model="costs"} 1.0',
            'groupwise_rounds{group="always_on",model="costs"} 1.0',
        ):
            assert line in text
        assert "groupwise_commit_seconds_bucket" in text
        document = (await client.get("/openapi.json")).json()
        assert document["openapi"] == "3.1.0"
        served = {
            (route.path.replace(":path", ""), method.lower())
            for route in app.starlette.routes
            for method in route.methods - {"HEAD"}
        }
        said = {(path, method) for path, known in document["paths"].items() for method in known}
        (resumes,) = document["paths"]["/v1/models/{model}/stream"]["get"]["parameters"]
        assert (resumes["name"], resumes["in"]) == ("Last-Event-ID", "header")
        pages = {"/", "/models/{model}", "/static/{name}", "/login", "/openapi.json"}
        assert {one for one in said if one[1] != "parameters"} == {
            one for one in served if one[0] not in pages
        }


@asynchronous
async def test_tokens(place):
    async with inside(place) as (app, client):
        await made(client)
        beside = open_store(place, writer=False)
        made_tokens = {}
        for scope in ("predict", "learn", "read", "admin"):
            text, token = new_token(scope, [scope])
            beside.put_token(token)
            made_tokens[scope] = text
        text, token = new_token("other", ["predict"], ["elsewhere"])
        made_tokens["other"] = text
        beside.put_token(token)
        app.service.tokens = beside.tokens()
        body = {"row": row(random.Random(1))}

        async def asked(method, path, scope, **options):
            headers = {"Authorization": f"Bearer {made_tokens[scope]}"}
            return await client.request(method, path, headers=headers, **options)

        is_problem(await client.post(f"{PATH}/predict", json=body), 401, "unauthorised")
        shouted = {"Authorization": "BEARER " + made_tokens["read"]}  # case does not matter there
        assert (await client.get(PATH, headers=shouted)).status_code == 200
        wrong = {"Authorization": "Bearer " + made_tokens["predict"][:-1] + "."}
        is_problem(await client.get(PATH, headers=wrong), 401, "unauthorised")
        forged = made_tokens["read"][:16] + made_tokens["admin"][16:]
        forged_header = {"Authorization": f"Bearer {forged}"}
        is_problem(await client.get(PATH, headers=forged_header), 401, "unauthorised")
        for scope in ("predict", "admin"):
            assert (await asked("POST", f"{PATH}/predict", scope, json=body)).status_code == 200
        for scope in ("learn", "read", "other"):
            found = await asked("POST", f"{PATH}/predict", scope, json=body)
            is_problem(found, 403, "forbidden")
        settled = {"ticket": 0, "label": 1.0}
        is_problem(await asked("POST", f"{PATH}/labels", "predict", json=settled), 403, "forbidden")
        assert (await asked("POST", f"{PATH}/labels", "learn", json=settled)).status_code == 200
        assert (await asked("GET", f"{PATH}/tickets/~0", "read")).status_code == 200
        for scope in ("predict", "learn"):  # who sends rows may know what rows are, and no more
            known = (await asked("GET", PATH, scope)).json()
            assert known == {"name": "costs", "target": "costs", "settings": SETTINGS}
            is_problem(await asked("GET", f"{PATH}/regret", scope), 403, "forbidden")
        assert "events" in (await asked("GET", PATH, "read")).json()
        is_problem(await asked("GET", PATH, "other"), 403, "forbidden")
        for method, path in (("DELETE", PATH), ("PUT", PATH), ("GET", f"{PATH}/snapshot")):
            is_problem(await asked(method, path, "read"), 403, "forbidden")
        is_problem(await asked("GET", "/metrics", "other"), 403, "forbidden")
        cookie = {"Cookie": f"groupwise={made_tokens['admin']}"}
        assert (await client.get(PATH, headers=cookie)).status_code == 200
        refused = await client.post(f"{PATH}/predict", json=body, headers=cookie)
        is_problem(refused, 401, "unauthorised")
        for path in ("/live", "/ready"):
            assert (await client.get(path)).status_code == 200
        assert beside.drop_token(token.token)
        assert not beside.drop_token(token.token)
        beside.close()
        await asyncio.sleep(1.2)
        is_problem(await asked("POST", f"{PATH}/predict", "other", json=body), 401, "unauthorised")


@asynchronous
async def test_when_the_last_token_is_revoked_nobody_is_answered(file):
    """Not even who says that they ask as localhost: the service may listen to everybody."""
    async with inside(file) as (app, client):
        await made(client)
        _, token = new_token("only", ["admin"])
        app.service.tokens = [token]
        app.service.tokens = []
        body = {"row": row(random.Random(1))}
        is_problem(await client.post(f"{PATH}/predict", json=body), 401, "unauthorised")
        is_problem(await client.get("/v1/models"), 401, "unauthorised")
        assert (await client.get("/")).headers["location"] == "/login"
        request = Request({"type": "http", "method": "GET", "headers": []})
        request.scope["path_params"] = {"model": "costs"}
        stream: Any = (await app._stream(request, EVERYBODY)).body_iterator
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


@asynchronous
async def test_many_tickets_are_forgotten_in_few_commits(file):
    async with inside(file) as (app, client):
        await made(client)
        draw = random.Random(1)
        rows = [{"id": str(number), "row": row(draw)} for number in range(300)]
        await client.post(f"{PATH}/predict/batch", json={"rows": rows})
        commits: list[int] = []
        app.service.committer.observe = lambda seconds, events: commits.append(events)
        asked = [{"id": one["id"]} for one in rows] + [{"id": "0"}, {"ticket": 1}, {"id": "none"}]
        found = (await client.post(f"{PATH}/forget", json=asked)).json()["forgotten"]
        outcomes = [one["outcome"] for one in found]
        assert outcomes == ["forgotten"] * 300 + ["already"] * 2 + ["unknown"]
        assert sum(commits) == 300
        assert len(commits) < 30


@asynchronous
async def test_without_tokens_only_this_machine_is_answered(place):
    async with inside(place) as (_, client):
        for host in ("evil.example", "127.0.0.1.evil.example:80", ""):
            is_problem(await client.get("/v1/models", headers={"Host": host}), 403, "forbidden")
        for host in ("localhost:8088", "127.0.0.1", "[::1]:8088"):
            assert (await client.get("/v1/models", headers={"Host": host})).status_code == 200


@asynchronous
async def test_answers_end_their_line(file):
    """So that the shell's prompt stands in the next one."""
    async with inside(file) as (_, client):
        await made(client)
        for path in ("/live", "/v1/models", PATH, "/v1/nothing", "/openapi.json"):
            response = await client.get(path)
            assert response.text.endswith("}\n")
            assert int(response.headers["content-length"]) == len(response.content)
