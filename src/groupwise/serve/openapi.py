"""The OpenAPI document: what can be asked, and what is answered."""

from typing import Any

import msgspec

from groupwise.serve import bodies
from groupwise.serve.problems import PROBLEM

REFERENCE = "#/components/schemas/{name}"
PROBLEMS = {
    "400": "The request cannot be read.",
    "401": "A token is needed.",
    "403": "The token is not for this.",
    "404": "There is no such model or ticket.",
    "405": "The method is not for this page.",
    "408": "The request was not all there in time.",
    "409": "It was said otherwise before.",
    "413": "The request is too long.",
    "415": "The body is of another kind.",
    "422": "The model refuses it.",
    "503": "Not now: try again after as many seconds as Retry-After says.",
    "507": "It could not be written, and did not happen.",
}
MODEL = {
    "name": "model",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
}
LARGEST = {
    "name": "largest",
    "in": "query",
    "description": "So many groups only: those with most rounds.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
}
ANSWER = {
    "type": "object",
    "required": ["id", "ticket", "prediction", "groups", "version"],
    "properties": {
        "id": {"type": "string"},
        "ticket": {"type": "integer"},
        "prediction": {"description": "A number, or the most probable class."},
        "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        "interval": {
            "description": "Low and high, where the model has intervals and this one is not empty.",
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
        },
        "groups": {"type": "object", "additionalProperties": {"type": "number"}},
        "version": {"type": "integer", "description": "Labels learned from before."},
    },
}
OUTCOME = {
    "type": "object",
    "required": ["id", "outcome"],
    "properties": {
        "id": {"type": "string"},
        "outcome": {"enum": ["settled", "already", "conflict", "unknown", "invalid", "forgotten"]},
        "detail": {"type": "string"},
    },
}


def document() -> dict[str, Any]:
    """The whole of it."""
    from groupwise import __version__

    kinds = (bodies.Prediction, bodies.Predictions, bodies.Labels, bodies.Droppeds)
    (prediction, predictions, labels, dropped), schemas = msgspec.json.schema_components(
        kinds, ref_template=REFERENCE
    )
    of = "/v1/models/{model}"
    answer = _ref("Answer")
    paths: dict[str, Any] = {
        f"{of}/predict": {"post": _asked("Issue a ticket for a row", prediction, answer)},
        f"{of}/predict/batch": {
            "post": _asked("Issue tickets for rows", predictions, _list("predictions", {}))
        },
        f"{of}/labels": {
            "post": _asked("Settle tickets with their labels", labels, _ref("Outcomes"))
        },
        f"{of}/forget": {
            "post": _asked("Drop tickets whose label will not come", dropped, _ref("Outcomes"))
        },
        f"{of}/tickets/{{id}}": {"get": _got("What is known of a ticket", parameters=[_id()])},
        f"{of}/regret": {"get": _got("Regret and certificate of every group", [LARGEST])},
        f"{of}/calibration": {"get": _got("Calibration of every group", [LARGEST])},
        f"{of}/coverage": {"get": _got("How often labels were in their intervals", [LARGEST])},
        f"{of}/history": {"get": _got("How regret came to be", [_group()])},
        f"{of}/snapshot": {
            "get": _got("The model, as groupwise.load opens it", kind="application/octet-stream")
        },
        of: {
            "get": _got("A model and its settings"),
            "put": _put(),
            "delete": {
                "summary": "Remove a model, and all that is known of it",
                "responses": {"204": {"description": "It is gone."}, **_problems()},
            },
        },
        "/v1/models": {"get": _got("The models")},
    }
    for path, methods in paths.items():
        if "{model}" in path:
            methods["parameters"] = [MODEL]
    paths[f"{of}/stream"] = {
        "parameters": [MODEL],
        "get": _got(
            "Figures as they change, as server-sent events", [_last()], kind="text/event-stream"
        ),
    }
    paths |= {
        "/metrics": {"get": _got("Figures for Prometheus", kind="text/plain")},
        "/live": _open("Is the process there?", {"200": "It is."}),
        "/ready": _open(
            "Is all replayed, and can the store be written?",
            {"200": "It is.", "503": "Not yet, or not now, and why."},
        ),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "groupwise",
            "version": __version__,
            "description": "Predictions with a regret guarantee for every group.",
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **schemas,
                "Answer": ANSWER,
                "Outcome": OUTCOME,
                "Outcomes": {
                    "anyOf": [
                        _ref("Outcome"),
                        _list("labels", _ref("Outcome")),
                        _list("forgotten", _ref("Outcome")),
                    ]
                },
                "Problem": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                },
            },
        },
    }


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": REFERENCE.format(name=name)}


def _list(name: str, item: dict[str, Any]) -> dict[str, Any]:
    items = {"type": "array", "items": item}
    return {"type": "object", "required": [name], "properties": {name: items}}


def _problems() -> dict[str, Any]:
    content = {PROBLEM: {"schema": _ref("Problem")}}
    return {status: {"description": text, "content": content} for status, text in PROBLEMS.items()}


def _asked(summary: str, asked: Any, answered: Any) -> dict[str, Any]:
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {bodies.JSON: {"schema": asked}}},
        "responses": {
            "200": {"description": "Done.", "content": {bodies.JSON: {"schema": answered}}},
            **_problems(),
        },
    }


def _got(
    summary: str, parameters: list[dict[str, Any]] | None = None, kind: str = bodies.JSON
) -> dict[str, Any]:
    schema = {"type": "object"} if kind == bodies.JSON else {}
    return {
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        "responses": {
            "200": {"description": "Here it is.", "content": {kind: {"schema": schema}}},
            **_problems(),
        },
    }


def _open(summary: str, answers: dict[str, str]) -> dict[str, Any]:
    """What everybody may ask."""
    content = {bodies.JSON: {"schema": {"type": "object"}}}
    said = {status: {"description": text, "content": content} for status, text in answers.items()}
    return {"get": {"summary": summary, "security": [{}], "responses": said}}


def _put() -> dict[str, Any]:
    said = {"content": {bodies.JSON: {"schema": {"type": "object"}}}}
    return {
        "summary": "Make a model from settings, as groupwise init writes them",
        "requestBody": {
            "required": True,
            "content": {bodies.TOML: {"schema": {"type": "string"}}},
        },
        "responses": {
            "200": {"description": "It is there already.", **said},
            "201": {"description": "It is made.", **said},
            **_problems(),
        },
    }


def _id() -> dict[str, Any]:
    return {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _group() -> dict[str, Any]:
    return {"name": "group", "in": "query", "schema": {"type": "string"}}


def _last() -> dict[str, Any]:
    return {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "Where a stream broke off: first comes the history that was written since.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    }
