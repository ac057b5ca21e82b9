"""Rejections in the shape of Personalizer's errors."""

from __future__ import annotations

import re

import msgspec

from fastbandit.serving.personalizer.schemas import Error, ErrorResponse, InnerError
from fastbandit.serving.problems import Rejection

_JSON = b"application/json"
_STATUS = {422: 400}  # the reference has no other for what is wrong with a body
_OLD = {400: "BadRequest", 409: "BadRequest", 404: "ResourceNotFound"}  # codes of 1.0
_NEW = {
    401: "401",
    403: "403",
    404: "ResourceNotFound",
    413: "PayloadSizeExceeded",
    429: "429",
    501: "OperationNotAllowed",
}
_OF_OPERATION = {
    "/rank": "InvalidRankRequest",
    "/multislot/rank": "InvalidRankRequest",
    "/events/{id}/reward": "InvalidRewardRequest",
    "/multislot/events/{id}/reward": "InvalidRewardRequest",
    "/events/{id}/activate": "InvalidEventIdToActivate",
    "/multislot/events/{id}/activate": "InvalidEventIdToActivate",
    "/configurations/service": "InvalidServiceConfiguration",
    "/configurations/policy": "InvalidPolicyContract",
    "/configurations/applyFromEvaluation": "InvalidPolicyConfiguration",
    "/evaluations": "InvalidEvaluationContract",
    "/model": "InvalidModelImportFormat",
}
_OF_PROBLEM = {  # codes that are more exact than those of an operation
    "no logs": "NoLogsExistInDateRange",
    "too many decisions": "LogsSizeExceedAllowedLimit",
    "mode and terms": "InvalidLearningModeServiceConfiguration",
    "short retention": "InvalidLogRetentionDays",
}
_FIELD = re.compile(r"(contexts?|arms)(?=[.\[]|\Z)")  # of a select
_MISSING = {"/evaluations/{id}": "EvaluationNotFound", "/logs/properties": "LogsPropertiesNotFound"}


def not_carried_over(said: str, *, fix: str) -> Rejection:
    """Say that what Personalizer did here is not done."""
    return Rejection(501, "not carried over", said, fix=fix)


def as_error(rejection: Rejection, operation: str, *, is_old: bool) -> Rejection:
    """Return a rejection as Personalizer would have said it; 1.0 has few codes."""
    status = _STATUS.get(rejection.status, rejection.status)
    problem = rejection.problem
    code = _code(status, operation, problem.title)
    target = _target(problem.field, operation, problem.title)
    message = f"{problem.detail} {problem.fix}"
    if is_old and status in _OLD:
        error = Error(_OLD[status], message, target, inner_error=InnerError(code))
    else:
        inner = InnerError(problem.type.rpartition(":")[2])
        error = Error(code, message, target, inner_error=inner)
    headers, detail = rejection.headers, problem.detail  # the one that came may be of others, too
    found = Rejection(status, problem.title, detail, fix=problem.fix, headers=headers)
    found.kind, found.written = _JSON, msgspec.json.encode(ErrorResponse(error))
    return found


def _target(field: str | None, operation: str, title: str) -> str | None:
    """Return a field by the name that the request has for it: a rank is decided as a select."""
    found = _FIELD.match(field or "") if operation.endswith("/rank") else None
    if title == "id taken":
        return "eventId"
    if field is None or found is None:
        return field
    return ("actions" if found[1] == "arms" else "contextFeatures") + field[found.end() :]


def _code(status: int, operation: str, title: str) -> str:
    if status in (400, 409):
        return _OF_PROBLEM.get(title) or _OF_OPERATION.get(operation, "BadRequest")
    if status == 404:
        return _MISSING.get(operation, _NEW[404])
    return _NEW.get(status, "InternalServerError" if status >= 500 else "BadRequest")
