"""Retries, duplicates and reorderings settle each ticket once; and no request makes it fail."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import hypothesis.strategies as st
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from tests.serve.running import SETTINGS, STORES, Running, label, place_of, row

ROWS = [row(random.Random(number)) for number in range(6)]
CHECKS = [
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]
LABELS = [0.0, 12.5, 60]
OUTCOMES = {200: "settled", 404: "unknown", 409: "conflict"}


@schemathesis.serializer("application/toml")
def toml(context, value):
    del context
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.fixture(scope="module", params=STORES)
def service(request, tmp_path_factory):
    """One running service, for all examples."""
    place = place_of(request.param, tmp_path_factory.mktemp("machine"))
    with Running(place, "--snapshot-seconds", "0.3") as running:
        yield running


def machine_of(service: Running) -> type:
    """The state machine whose every example has a model of its own in the service."""
    client = httpx.Client(base_url=service.url, timeout=60)
    made = iter(range(10**9))

    class Machine(RuleBasedStateMachine):
        ids = Bundle("ids")

        @initialize()
        def make(self):
            self.path = f"/v1/models/m{next(made)}"
            client.put(self.path, content=SETTINGS).raise_for_status()
            self.rows: dict[str, int] = {}
            self.answers: dict[str, dict] = {}
            self.settled: dict[str, object] = {}

        @rule(target=ids, number=st.integers(0, 9))
        def name(self, number):
            return f"id {number}"

        def post(self, path, body):
            return client.post(f"{self.path}/{path}", json=body)

        @rule(name=ids, which=st.integers(0, len(ROWS) - 1), times=st.integers(1, 3))
        def predict(self, name, which, times):
            """Once or several times at once."""
            body = {"id": name, "row": ROWS[which]}
            with ThreadPoolExecutor(times) as pool:
                found = list(pool.map(lambda _: self.post("predict", body), range(times)))
            if self.rows.setdefault(name, which) != which:
                assert {one.status_code for one in found} == {409}
                return
            assert {one.status_code for one in found} == {200}
            for one in found:
                assert self.answers.setdefault(name, one.json()) == one.json()

        @rule(names=st.lists(ids, max_size=6), which=st.integers(0, len(ROWS) - 1))
        def batch(self, names, which):
            rows = [{"id": name, "row": ROWS[which]} for name in names]
            found = self.post("predict/batch", {"rows": rows}).json()["predictions"]
            for name, one in zip(names, found, strict=True):
                if self.rows.setdefault(name, which) != which:
                    assert one["problem"]["status"] == 409
                else:
                    assert self.answers.setdefault(name, one) == one

        def expected(self, name, value):
            if name not in self.answers:
                return "unknown"
            if name not in self.settled:
                self.settled[name] = value
                return "settled"
            return "already" if self.settled[name] == value else "conflict"

        @rule(name=ids, value=st.sampled_from(LABELS), by_number=st.booleans())
        def label(self, name, value, by_number):
            key = {"id": name}
            if by_number and name in self.answers:
                key = {"ticket": self.answers[name]["ticket"]}
            found = self.post("labels", {**key, "label": value})
            expected = self.expected(name, value)
            if found.status_code == 200:
                assert found.json() == {"id": name, "outcome": expected}
            else:
                assert OUTCOMES[found.status_code] == expected

        @rule(items=st.lists(st.tuples(ids, st.sampled_from(LABELS)), max_size=6))
        def labels(self, items):
            body = [{"id": name, "label": value} for name, value in items]
            found = self.post("labels", body).json()["labels"]
            assert [one["outcome"] for one in found] == [self.expected(*item) for item in items]

        @rule(name=ids, values=st.lists(st.sampled_from(LABELS), min_size=2, max_size=4))
        def race(self, name, values):
            """Labels at once, in whatever order they arrive: one of them is learned from."""
            with ThreadPoolExecutor(len(values)) as pool:
                bodies = [{"id": name, "label": value} for value in values]
                found = list(pool.map(lambda body: self.post("labels", body), bodies))
            said = [one.json().get("outcome", OUTCOMES.get(one.status_code)) for one in found]
            if name not in self.answers:
                assert {*said} == {"unknown"}
                return
            if name not in self.settled:
                assert said.count("settled") == 1
                self.settled[name] = values[said.index("settled")]
            else:
                assert "settled" not in said
            for value, one in zip(values, said, strict=True):
                assert (one == "conflict") == (value != self.settled[name])

        @rule(name=ids)
        def forget(self, name):
            found = self.post("forget", {"id": name})
            expected = self.expected(name, "forgotten")
            if expected == "settled":
                assert found.json()["outcome"] == "forgotten"
            else:
                assert found.json().get("outcome", OUTCOMES.get(found.status_code)) == expected

        @rule(name=ids)
        def look(self, name):
            found = client.get(f"{self.path}/tickets/{name}")
            if name not in self.answers:
                assert found.status_code == 404
                return
            known = found.json()
            assert known["answer"] == self.answers[name]
            value = self.settled.get(name)
            outcome = (
                "open" if value is None else "forgotten" if value == "forgotten" else "settled"
            )
            assert known["outcome"] == outcome
            assert known["label"] == (None if value == "forgotten" else value)

        @invariant()
        def nothing_twice(self):
            if hasattr(self, "path"):
                about = client.get(self.path).json()
                assert about["predictions"] == len(self.answers)
                assert about["events"] == len(self.answers) + len(self.settled)
                assert about["outstanding"] == len(self.answers) - len(self.settled)

        def teardown(self):
            if hasattr(self, "path"):
                assert client.delete(self.path).status_code == 204

    return Machine


def run(service: Running, examples: int) -> None:
    test = machine_of(service).TestCase  # type: ignore[attr-defined]
    test.settings = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[*HealthCheck],
        database=None,
    )
    test().runTest()


def test_any_pattern_settles_each_ticket_once(service):
    run(service, 6)


@pytest.mark.slow
def test_any_pattern_settles_each_ticket_once_in_many_examples(service):
    run(service, 150)


def everything(service: Running, examples: int) -> None:
    """Requests that the OpenAPI document allows, and some that it does not."""
    url = f"{service.url}/v1/models/costs"
    httpx.put(url, content=SETTINGS, timeout=60).raise_for_status()
    for number, one in enumerate(ROWS):
        body = {"id": f"order-{number}", "row": one}
        httpx.post(f"{url}/predict", json=body, timeout=60).raise_for_status()
        given_label = {"id": f"order-{number}", "label": label(one)}
        httpx.post(f"{url}/labels", json=given_label, timeout=60).raise_for_status()
    document = httpx.get(f"{service.url}/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    statuses = set()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path.endswith("/stream"):
            continue
        for mode in schemathesis.GenerationMode:

            @settings(
                max_examples=examples,
                deadline=None,
                suppress_health_check=[*HealthCheck],
                database=None,
            )
            @given(case=operation.as_strategy(generation_mode=mode), ours=st.booleans())
            def asked(case, ours):
                if ours and "model" in (case.path_parameters or {}) and case.method != "DELETE":
                    case.path_parameters["model"] = "costs"
                response = case.call(base_url=service.url)
                statuses.add(response.status_code)
                assert response.status_code != 500, response.text
                if response.status_code >= 400:
                    assert json.loads(response.content)["status"] == response.status_code
                case.validate_response(response, checks=CHECKS)

            with suppress(Unsatisfiable):  # where no request can be wrong
                asked()
    assert {200, 400, 404} <= statuses


def test_nothing_in_the_document_makes_it_fail(service):
    everything(service, 4)


@pytest.mark.slow
def test_nothing_in_the_document_makes_it_fail_in_many_examples(service):
    everything(service, 100)
