"""Settings make the model that ``groupwise run`` would make of them, and it survives restarts."""

import random

import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.files.plan import planned
from groupwise.serve.declared import declared_model, target_of
from tests.cli.commands import people, write_rows
from tests.serve.running import PATH, asynchronous, inside, label, made, row

MADE = """
target = "costs"
range = [0.0, 60.0]
hinges = true
learner = "{learner}"
groups = [{{ by = "sex" }}, {{ by = "day weekday" }}]

[features]
age = [18.0, 64.0]
bmi = [15.0, 50.0]
smoker = "encoded"
ward = "hashed"
day = {{ date = ["weekday", "month"] }}

[[past]]
lags = [1, 2]
mean = [0.9]
by = ["sex"]
"""


@pytest.mark.parametrize("learner", ["ridge", "portfolio"])
@asynchronous
async def test_makers_are_what_they_were_after_a_restart(place, learner):
    """The past of labels is state too: open tickets hold what was made, replays make it again."""
    draw = random.Random(2)
    rows = [
        {**row(draw), "day": f"2024-05-{1 + i % 28:02d}", "ward": f"w{draw.randrange(9)}"}
        for i in range(60)
    ]
    async with inside(place) as (app, client):
        await made(client, MADE.format(learner=learner))
        engine = app.service.engines["costs"]
        for number, one in enumerate(rows):
            body = {"id": str(number), "row": one}
            assert (await client.post(f"{PATH}/predict", json=body)).is_success
            if number % 2:
                late = {"id": str(number - draw.choice([0, 1])), "label": label(one)}
                assert (await client.post(f"{PATH}/labels", json=late)).is_success
            if number == 30:
                await engine.snapshot()
        assert engine.outstanding == 30
        replayed = engine.load().freeze().to_bytes()[1]
        assert replayed == engine.state.freeze().to_bytes()[1]
    async with inside(place) as (app, client):
        engine = app.service.engines["costs"]
        assert engine.state.freeze().to_bytes()[1] == replayed
        for number in range(60):
            given = {"id": str(number), "label": label(rows[number])}
            await client.post(f"{PATH}/labels", json=given)
        assert engine.outstanding == 0
        assert engine.load().freeze().to_bytes()[1] == engine.state.freeze().to_bytes()[1]


def test_what_init_writes_is_the_model_that_it_planned(tmp_path):
    data = write_rows(tmp_path / "people.csv", ["sex", "city", "age", "pay"], people(200))
    with planned(str(data), target="pay") as (_, plan):
        text, wanted = plan.toml(), plan.model()
    made_of_text = declared_model(text, "people")
    assert target_of(text) == "pay"
    found, expected = (one.contents()[0]["model"] for one in (made_of_text, wanted))
    assert found == expected


def test_without_features_every_field_is_one():
    settings = 'range = [0, 1]\nlearner = "ridge"\naggregator = "prod"\ngroups = [{ by = "a" }]'
    model = declared_model(settings, "m")
    assert model.features is None
    ticket = model.predict({"a": "x", "b": 2.0})
    model.learn(ticket, 0.5)
    assert "b" in " ".join(model.feature_names)
    assert isinstance(model.loss, gw.losses.Square)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("range = [0, 1]", "no groups"),
        ('groups = [{ by = "a" }]', "what the label is"),
        ('task = "number"\ngroups = [{ by = "a" }]', "range"),
        ('task = "classes"\ngroups = [{ by = "a" }]', "Name the classes"),
        ('target = "a"\nrange = [0, 1]\nfeatures = ["a"]\ngroups = [{ by = "b" }]', "is the label"),
        ('range = [0, 1]\ngroups = [{ by = "b" }]\n[[past]]\nlags = [1]', "The past is that of"),
        ('range = [0, 1]\ngroups = [{ by = "b" }]\nfeatures = { d = { day = 1 } }', "date, aside"),
    ],
)
def test_what_settings_must_say(settings, said):
    with pytest.raises(ConfigurationError, match=said):
        declared_model(settings, "m")
