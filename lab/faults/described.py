"""Requests that schemathesis makes from the description of the interface, and its checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastbandit.errors import MissingExtraError
from lab.faults.odd_requests import Answer, Asked

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


def ask_as_described(
    description: dict[str, Any],
    count: int,
    *,
    seed: int,
    send: Callable[[Asked], Answer],
    record: Callable[[str, Answer], None],
) -> None:
    """Send about so many requests, fitting and not; record where an answer fails a check."""
    try:
        import schemathesis
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded
    except ImportError as error:
        raise MissingExtraError(
            "Requests made from the description need schemathesis, which is not installed. Run: "
            "pip install 'fastbandit[dev]'"
        ) from error
    schema = schemathesis.openapi.from_dict(description)
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    posting = [one for one in operations if one.method.lower() != "get"]
    calmly = settings(
        max_examples=max(1, count // (2 * len(posting))),
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def try_case(case: Any) -> None:
        _try(case, send, record)

    for operation in operations:
        for mode in schemathesis.GenerationMode:
            if operation in posting or mode is schemathesis.GenerationMode.POSITIVE:
                drawn = given(case=operation.as_strategy(generation_mode=mode))
                seeded(seed)(calmly(drawn(try_case)))()


def _try(case: Any, send: Callable[[Asked], Answer], record: Callable[[str, Answer], None]) -> None:
    """Send one request, and let schemathesis check the answer."""
    import schemathesis
    from requests import Request

    body = _written(case.body)
    answer = send(Asked("from the description", case.method, case.path, body))
    headers = {name: [value] for name, value in answer.headers.items()}
    request = Request(case.method, f"http://127.0.0.1{case.path}", data=body).prepare()
    response = schemathesis.Response(answer.status, headers, answer.body, request, 0.0, False)
    checks: Any = schemathesis.checks.CHECKS.get_by_names(_CHECKS)
    try:
        case.validate_response(response, checks=checks)
    except (Exception, BaseExceptionGroup) as error:
        record(f"schemathesis: {str(error)[:300]}: {body[:300]!r}", answer)


def _written(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    try:
        return json.dumps(body).encode()
    except TypeError:  # no body at all
        return b""
