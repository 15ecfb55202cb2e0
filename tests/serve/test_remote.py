"""``groupwise predict`` and ``learn --url``: the numbers of a loop, and nothing twice."""

import csv
import json
import re
import shlex
import time
from pathlib import Path

import httpx
import pytest

from tests.cli.commands import invoke, people, refused, succeed, write_rows
from tests.serve.running import Running, free_port

SETTINGS = """
target = "pay"
range = [-10000.0, 10000.0]
features = { age = [18.0, 70.0] }
groups = [{ by = "city" }, { by = "sex" }]
"""
CLASSES = SETTINGS.replace("range = [-10000.0, 10000.0]", 'classes = ["low", "high"]')


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Running(str(tmp_path_factory.mktemp("remote") / "groupwise.db")) as running:
        for name, settings in (("pay", SETTINGS), ("rich", CLASSES)):
            url = f"{running.url}/v1/models/{name}"
            httpx.put(url, content=settings, timeout=120).raise_for_status()
        yield running


def test_files_are_predicted_and_learned(service, tmp_path):
    found = [(f"p{i}", *row) for i, row in enumerate(people(1_200))]
    data = write_rows(tmp_path / "people.csv", ["name", "sex", "city", "age", "pay"], found)
    there = "--url", service.url, "--id", "name"
    out = tmp_path / "predicted.csv"
    succeed("predict", "pay", data, *there, "--out", out)
    with out.open(newline="") as file:
        predicted = list(csv.DictReader(file))
    assert len(predicted) == 1_200
    assert "city=" in predicted[0]["groups"]
    said = succeed("learn", "pay", data, *there).stdout
    assert "1,200 labels sent: 1,200 settled" in said
    assert "1,200 already" in succeed("learn", "pay", data, *there).stdout
    about = httpx.get(f"{service.url}/v1/models/pay", timeout=60).json()
    assert (about["predictions"], about["events"]) == (1_200, 2_400)
    other = [(*row[:-1], 9999.5) for row in found]
    changed = write_rows(tmp_path / "other.csv", ["name", "sex", "city", "age", "pay"], other)
    result = invoke("learn", "pay", changed, *there)
    assert result.exit_code == 1
    assert "1,200 conflict" in result.stdout
    unnamed = refused("learn", "pay", data, "--url", service.url, "--id", "nobody")
    assert "no column 'nobody'" in unnamed
    assert "There is no model" in refused("predict", "none", data, *there)
    assert "for snapshots" in refused("learn", "pay", data, *there, "--no-wait")


def test_the_readme_shows_what_is_answered(service):
    """Its lines of curl, in their order, answer what stands there."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    asked = [
        one
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for one in re.findall(r"^curl .*?(?=^curl|\Z)", block, re.DOTALL | re.MULTILINE)
    ]
    answers = []
    for line in asked:
        words = shlex.split(line.replace("\\\n", ""))
        (url,) = (word for word in words if word.startswith("http"))
        place = service.url + url.removeprefix("http://127.0.0.1:8088")
        method = "PUT" if "PUT" in words else "POST"
        headers = {} if method == "PUT" else {"Content-Type": "application/json"}
        found = httpx.request(method, place, content=words[-1], headers=headers, timeout=120)
        found.raise_for_status()
        answers.append(found.text)
    assert len(asked) == 3
    assert re.findall(r"```json\n(.*?)```", text, re.DOTALL) == answers[1:]


def test_a_label_that_nobody_names_is_said_to_be_sent(service, tmp_path):
    """As a field, which it would be to a model that takes every field."""
    url = f"{service.url}/v1/models/unnamed"
    settings = SETTINGS.replace('target = "pay"\n', "")
    httpx.put(url, content=settings, timeout=120).raise_for_status()
    header = ["name", "sex", "city", "age", "pay"]
    data = write_rows(tmp_path / "a.csv", header, [(f"p{i}", *r) for i, r in enumerate(people(5))])
    here = "unnamed", data, "--url", service.url, "--id", "name"
    said = succeed("predict", *here).stderr
    assert said == (
        "groupwise: the model's settings name no target: every column but 'name' is sent as a "
        "field. Where one is the label, name it with --target.\n"
    )
    assert "differs in 'pay'. Send the fields" in refused("learn", *here, "--target", "pay")
    other = write_rows(tmp_path / "b.csv", header, [(f"q{i}", *r) for i, r in enumerate(people(5))])
    named = "unnamed", other, *here[2:], "--target", "pay"
    assert succeed("predict", *named).stderr == ""
    assert "5 labels sent: 5 settled" in succeed("learn", *named).stdout


def test_where_nobody_listens_is_said_at_once(tmp_path):
    data = write_rows(tmp_path / "people.csv", ["sex", "city", "age", "pay"], people(3))
    url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    said = refused("predict", "pay", data, "--url", url)
    assert time.monotonic() - began < 5
    assert said == (
        f"groupwise: {url} cannot be reached: the connection is refused. Is groupwise serve "
        "running there?"
    )


@pytest.mark.slow
def test_probabilities_have_their_columns(service, tmp_path):
    rows = [(sex, city, age, "high" if age > 40 else "low") for sex, city, age, _ in people(60)]
    data = write_rows(tmp_path / "people.csv", ["sex", "city", "age", "pay"], rows)
    assert "60 settled" in succeed("learn", "rich", data, "--url", service.url).stdout
    out = tmp_path / "predicted.csv"
    succeed("predict", "rich", data, "--url", service.url, "--out", out)
    with out.open(newline="") as file:
        chances = [float(line["probability:high"]) for line in csv.DictReader(file)]
    assert len(chances) == 60
    assert all(0.0 < chance < 1.0 for chance in chances)
    table = httpx.get(f"{service.url}/v1/models/rich/regret", timeout=60).json()
    assert table["settled"] == 60
    assert json.dumps(table)


def status(url, token, until):
    """What a request with a new token is answered, when the service knows of it."""
    found, ends = 0, time.monotonic() + 30
    while found != until and time.monotonic() < ends:
        time.sleep(0.05)
        if httpx.get(url).status_code == 401:  # it knows that there are tokens
            found = httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code
    return found


def test_a_token_that_may_predict_and_learn_is_enough(tmp_path):
    store = tmp_path / "groupwise.db"
    with Running(str(store)) as service:
        url = f"{service.url}/v1/models/pay"
        httpx.put(url, content=SETTINGS, timeout=120).raise_for_status()
        scopes = "--scope", "predict", "--scope", "learn", "--store", store
        token = succeed("token", "create", "shop", *scopes, "--model", "pay").stdout.strip()
        here = {"Authorization": f"Bearer {token}"}
        assert status(url, token, until=200) == 200
        found = httpx.get(url, headers=here).json()
        assert set(found) == {"name", "target", "settings"}
        assert found["settings"] == SETTINGS
        assert httpx.get(f"{url}/regret", headers=here).status_code == 403
        header = ["sex", "city", "age", "pay"]
        data = write_rows(tmp_path / "people.csv", header, people(30))
        there = data, "--url", service.url, "--token", token
        assert "30 labels sent: 30 settled" in succeed("learn", "pay", *there).stdout
        assert len(succeed("predict", "pay", *there).stdout.splitlines()) == 31
        other = succeed("token", "create", "other", *scopes, "--model", "rich").stdout.strip()
        assert status(url, other, until=403) == 403
        assert "is not for model pay" in refused("learn", "pay", *there[:-1], other)
