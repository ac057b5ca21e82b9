"""What is wrong with an answer over HTTP: each must be as /openapi.json describes it.

A refusal must say which field was wrong, what came where anything did, and what to do.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from fastbandit.serving import schemas
from fastbandit.serving.openapi import openapi
from fastbandit.serving.schemas import Problem, Status
from lab.faults.odd_requests import Answer, Asked

_NOTHING_CAME = {"missing", "neither", "both", "either"}
"""Words of a refusal that has no one value to show."""

_SHAPES: dict[str, type[msgspec.Struct]] = {
    name: getattr(schemas, name)
    for name in (
        "SelectAnswer",
        "SelectAnswers",
        "RewardAnswer",
        "RewardAnswers",
        "UpsertArmsAnswer",
        "DiscardArmsAnswer",
        "Readiness",
    )
} | {"Status": Status}


def fault_of(asked: Asked, answer: Answer) -> str:
    """Say what is wrong with an answer; nothing where all is well."""
    if answer.status >= 500 and answer.status != 503:
        return "a server error"
    if answer.headers.get("content-length") != str(len(answer.body)):
        return "another length than declared"
    method = asked.method.lower() if asked.method.isupper() else ""
    operation = _described().get(asked.path, {}).get(method)
    if asked.path == "/openapi.json" and answer.status == 200:
        return ""
    if operation is None:
        return _fault_of_problem(answer)
    described = operation["responses"].get(str(answer.status))
    if described is None:
        return "a status that is not described"
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind not in described["content"]:
        return "a content type that is not described"
    if kind == "application/problem+json":
        return _fault_of_problem(answer)
    return _fault_of_shape(answer, described["content"][kind]["schema"])


@cache
def _described() -> dict[str, Any]:
    """Return the routes as they are described, which takes a while to put together."""
    paths: dict[str, Any] = openapi()["paths"]
    return paths


def _fault_of_problem(answer: Answer) -> str:
    """Say what a refusal fails to say: the field, the value where there is one, and the fix."""
    if answer.headers.get("content-type") != "application/problem+json":
        return "a refusal that is no problem+json"
    problem = msgspec.json.decode(answer.body, type=Problem)
    if problem.status != answer.status or not (problem.detail and problem.fix and problem.type):
        return "a refusal without detail or fix"
    if answer.status == 503:
        return "" if answer.headers.get("retry-after") else "a 503 without Retry-After"
    if not problem.field:
        return "a refusal that names no field"
    has_none = bool(_NOTHING_CAME & set(problem.detail.replace("`", " ").replace(":", " ").split()))
    if problem.value is None and answer.status in (400, 409, 422) and not has_none:
        return "a refusal that does not show the value"
    return ""


def _fault_of_shape(answer: Answer, schema: dict[str, Any]) -> str:
    """Say where an answer does not have any of the shapes that are described."""
    names = [
        one["$ref"].rsplit("/", 1)[1] for one in schema.get("anyOf", [schema]) if "$ref" in one
    ]
    said = ""
    for name in names:
        try:
            msgspec.json.decode(answer.body, type=_SHAPES[name])
            return ""
        except msgspec.MsgspecError as error:
            said = f"another shape than {name}: {error}"
    return said
