"""After every label, however late, regret is at most the certificate, as the service says both."""

import random

import pytest

from tests.serve.running import PATH, SETTINGS, asynchronous, inside, label, made, row

PROBABILITY = """
task = "probability"
features = { age = [18.0, 64.0], bmi = [15.0, 50.0] }
groups = [{ by = "sex" }, { by = "smoker" }]
"""


@pytest.mark.parametrize("settings", [SETTINGS, PROBABILITY], ids=["number", "probability"])
@asynchronous
async def test_regret_is_at_most_the_certificate(file, settings):
    draw = random.Random(11)
    waiting: list[tuple[int, str, float]] = []
    settled = 0
    async with inside(file) as (app, client):
        await made(client, settings)
        for now in range(45):
            one = row(draw)
            await client.post(f"{PATH}/predict", json={"id": str(now), "row": one})
            value = label(one)
            if settings is PROBABILITY:
                value = float(value > 12.0)
            delay = draw.choice([0, 0, 1, 5, 40])
            waiting.append((now + delay, str(now), value if draw.random() < 0.8 else 0.0))
            due = [item for item in waiting if item[0] <= now]
            draw.shuffle(due)
            for item in due:
                waiting.remove(item)
                given = {"id": item[1], "label": item[2]}
                found = (await client.post(f"{PATH}/labels", json=given)).json()
                assert found["outcome"] == "settled"
                settled += 1
                table = (await client.get(f"{PATH}/regret")).json()
                assert table["settled"] == settled
                for line in table["rows"]:
                    rounding = 1e-9 * table["unit"] * line["rounds"]
                    assert line["regret"] <= line["certificate"] + rounding, line
            if now == 25:
                await app.service.engines["costs"].snapshot()
    assert settled > 20
