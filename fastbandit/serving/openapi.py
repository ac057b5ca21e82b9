"""The description of the HTTP interface (OpenAPI 3.1), made from the shapes themselves."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import msgspec

from fastbandit.features.schema import Schema
from fastbandit.serving import schemas

API_VERSION = "1.0.0"
_SHAPES = (
    schemas.SelectRequest,
    schemas.SelectAnswer,
    schemas.SelectAnswers,
    schemas.RewardRequest,
    schemas.RewardAnswer,
    schemas.RewardAnswers,
    schemas.UpsertArmsRequest,
    schemas.UpsertArmsAnswer,
    schemas.DiscardArmsRequest,
    schemas.DiscardArmsAnswer,
    schemas.ExplanationAnswer,
    schemas.Problem,
    schemas.Readiness,
    schemas.Status,
)
_REJECTIONS = {
    "400": "The body is not JSON, or a key or header stands there twice.",
    "401": "No key, or one that is not known.",
    "403": "The key lacks the scope; or, without keys, another site's page asks.",
    "408": "The headers or the body came too slowly.",
    "413": "The body is too large.",
    "415": "Without keys, the header Content-Type: application/json is needed.",
    "422": "A field cannot be used; the answer names it.",
    "429": "The quota of the key is used up; Retry-After says until when.",
    "431": "The headers are too large.",
    "503": "Not ready, overloaded, or the log cannot be written to; nothing was acknowledged.",
}
_OF_HEADERS = ("400", "401", "403", "408", "413", "429", "431")


def openapi(context: Schema | None = None, arms: Schema | None = None) -> dict[str, Any]:
    """Describe every route; with schemas, what contexts and features of arms hold by name."""
    found = deepcopy(_every_route())
    shapes = found["components"]["schemas"]
    if context is not None:
        shapes["Context"] = context.shape()
        asked = shapes["SelectRequest"]["properties"]
        asked["context"] = asked["contexts"]["items"] = _shape(["Context"])["schema"]
    if arms is not None:
        shapes["ArmFeatures"] = arms.shape()
        shapes["ArmUpsert"]["properties"]["features"] = _shape(["ArmFeatures"])["schema"]
    return found


@cache
def _every_route() -> dict[str, Any]:
    _, components = msgspec.json.schema_components(
        _SHAPES, ref_template="#/components/schemas/{name}"
    )
    plain = msgspec.json.encode(components).replace(rb"\\Z", b"$")  # JSON Schema's $ is the end
    components = msgspec.json.decode(plain)
    select = {
        "200": ("The arms chosen.", ["SelectAnswer", "SelectAnswers"]),
        "409": ("The id stands for the decision of another request.", ["Problem"]),
    }
    reward = {
        "200": ("Counted, or a duplicate; many at once.", ["RewardAnswer", "RewardAnswers"]),
        "202": ("Late: logged, and not learned from.", ["RewardAnswer"]),
        "404": ("Unknown decision or arm: logged, and not learned from.", ["RewardAnswer"]),
        "409": ("Another value was counted before: logged, not learned from.", ["RewardAnswer"]),
    }
    upsert = {"200": ("They can be chosen from now on.", ["UpsertArmsAnswer"])}
    discard = {"200": ("They are never chosen again.", ["DiscardArmsAnswer"])}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fastbandit",
            "version": API_VERSION,
            "description": "Chooses among very many arms, remembers, and learns.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/v1/select": {"post": _operation("select", "Choose arms", "SelectRequest", select)},
            "/v1/reward": {"post": _operation("reward", "Send a reward", "RewardRequest", reward)},
            "/v1/arms": {
                "put": _operation("upsertArms", "Add or change arms", "UpsertArmsRequest", upsert),
                "delete": _operation("discardArms", "Remove arms", "DiscardArmsRequest", discard),
            },
            "/v1/decisions/{id}/explanation": {
                "get": _explaining("explainDecision", "Why a decision took its arm", "arm")
            },
            "/v1/arms/{id}/explanation": {
                "get": _explaining("explainArm", "What an arm is worth, and why")
            },
            "/v1/status": {"get": _reading("status", "What serves now, and its health", "Status")},
            "/live": {"get": _reading("live", "Whether the process answers", None)},
            "/ready": {
                "get": _reading("ready", "Whether it can decide and remember", "Readiness", "503")
            },
            "/metrics": {"get": _metrics()},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(
    name: str, said: str, request: str, answers: dict[str, tuple[str, list[str]]]
) -> dict[str, Any]:
    rejections = {status: (text, ["Problem"]) for status, text in _REJECTIONS.items()}
    responses = {status: _answer(*one) for status, one in sorted((rejections | answers).items())}
    return {
        "operationId": name,
        "summary": said,
        "requestBody": {"required": True, "content": {"application/json": _shape([request])}},
        "responses": responses,
    }


def _reading(name: str, said: str, shape: str | None, *others: str) -> dict[str, Any]:
    answers = {"200": _answer(said, [shape] if shape else [])}
    answers |= {status: _answer("The reasons.", [shape] if shape else []) for status in others}
    answers |= {status: _answer(_REJECTIONS[status], ["Problem"]) for status in _OF_HEADERS}
    return {"operationId": name, "summary": said, "responses": answers}


def _explaining(name: str, said: str, *queries: str) -> dict[str, Any]:
    missing = {"404": _answer("No such decision or arm.", ["Problem"])}
    missing |= {status: _answer(_REJECTIONS[status], ["Problem"]) for status in ("422", "503")}
    found = _reading(name, said, "ExplanationAnswer")
    places = [("id", "path"), *((query, "query") for query in queries)]
    text = {"schema": {"type": "string"}}
    parameters = [{"name": n, "in": at, "required": at == "path", **text} for n, at in places]
    return {**found, "parameters": parameters, "responses": {**found["responses"], **missing}}


def _metrics() -> dict[str, Any]:
    text = {"text/plain": {"schema": {"type": "string"}}}
    answers = {"200": {"description": "Counts and times for Prometheus.", "content": text}}
    answers |= {status: _answer(_REJECTIONS[status], ["Problem"]) for status in _OF_HEADERS}
    return {"operationId": "metrics", "summary": "For Prometheus", "responses": answers}


def _answer(said: str, shapes: list[str]) -> dict[str, Any]:
    kind = "application/problem+json" if shapes == ["Problem"] else "application/json"
    return {"description": said, "content": {kind: _shape(shapes)}}


def _shape(shapes: list[str]) -> dict[str, Any]:
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in shapes]
    return {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs} if refs else {}}
