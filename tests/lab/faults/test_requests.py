"""Generated requests are judged, and a service answers each of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lab.faults import requests as campaign
from lab.faults.judging import fault_of
from lab.faults.odd_requests import Answer, Asked, OddRequests, replaced
from lab.faults.requests import RequestsReport, generated_requests, requests_command

SELECT = Asked("valid", "POST", "/v1/select", b"{}")
PROBLEM = {
    "type": "urn:fastbandit:wrong-field",
    "title": "wrong field",
    "status": 422,
    "detail": "A context needs 3 numbers: got 2.",
    "fix": "Send 3.",
    "field": "context",
    "value": "[1, 2]",
}
CHOSEN = {
    "decision": "d",
    "arms": ["a0"],
    "scores": [0.5],
    "version": 1,
    "catalogue": 0,
    "degraded": False,
    "propensities": None,
}


def answer(status: int, content: object, **headers: str) -> Answer:
    kind = "application/json" if status == 200 else "application/problem+json"
    body = json.dumps(content).encode()
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"content-type": kind, "content-length": str(len(body))} | more, body)


@pytest.mark.slow
def test_a_service_answers_all_that_is_generated() -> None:
    report = generated_requests(300, described=30, garbage=22, seed=3)
    assert report.failures == []
    assert report.is_sound
    assert report.requests >= 300
    assert len(report.by_kind) >= 10
    assert {200, 400, 404, 405, 409, 413, 422} <= set(report.by_status)
    assert report.events > 0


def test_good_answers_and_good_refusals_have_no_fault() -> None:
    assert fault_of(SELECT, answer(200, CHOSEN)) == ""
    assert fault_of(SELECT, answer(422, PROBLEM)) == ""
    assert fault_of(SELECT, answer(503, PROBLEM | {"status": 503}, retry_after="1")) == ""


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (answer(500, PROBLEM), "a server error"),
        (answer(200, CHOSEN, content_length="1"), "another length"),
        (answer(200, CHOSEN | {"scores": [None]}), "another shape"),
        (answer(200, CHOSEN, content_type="text/html"), "a content type"),
        (answer(418, PROBLEM), "a status"),
        (answer(422, PROBLEM | {"field": None}), "names no field"),
        (answer(422, PROBLEM | {"value": None}), "does not show the value"),
        (answer(422, PROBLEM | {"fix": ""}), "without detail or fix"),
        (answer(503, PROBLEM | {"status": 503}), "without Retry-After"),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_is_noticed(answer: Answer, fault: str) -> None:
    assert fault in fault_of(SELECT, answer)


def test_what_is_not_described_is_refused_with_a_problem() -> None:
    nowhere = Asked("a wrong route", "GET", "/nowhere")
    problem = PROBLEM | {"status": 404, "field": "path", "value": "/nowhere"}
    assert fault_of(nowhere, answer(404, problem)) == ""
    assert "problem" in fault_of(nowhere, answer(200, CHOSEN))


def test_the_same_seed_draws_the_same_requests() -> None:
    def draw() -> list[Asked]:
        odd = OddRequests(features=3, arms=9, most_bytes=100, rng=np.random.default_rng(5))
        return [odd.draw() for _ in range(200)]

    assert draw() == draw()
    assert len({asked.kind for asked in draw()}) >= 12


def test_one_value_anywhere_is_replaced(numbers: np.random.Generator) -> None:
    fields = {"a": [1, {"b": 2}], "c": 3}
    found = [json.dumps(replaced(fields, "odd", rng=numbers)) for _ in range(100)]
    assert all(text.count('"odd"') == 1 for text in found)
    assert len(set(found)) == 5
    assert fields == {"a": [1, {"b": 2}], "c": 3}


@pytest.mark.parametrize(("unfit", "status"), [(0, 0), (1, 1)])
def test_the_command_ends_with_1_where_an_answer_does_not_fit(
    unfit: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = RequestsReport(requests=5, unfit=unfit)
    monkeypatch.setattr(campaign, "generated_requests", lambda *_, **__: found)
    shown = CliRunner().invoke(requests_command, ["--json"])
    assert (shown.exit_code, json.loads(shown.output)["unfit"]) == (status, unfit)
    assert "5 requests" in CliRunner().invoke(requests_command, []).output


def test_a_report_is_json_with_its_counts() -> None:
    report = RequestsReport(requests=2)
    report.by_kind["valid"], report.by_status[200] = 2, 2

    notes = json.loads(json.dumps(report.notes()))

    assert (notes["by_kind"], notes["by_status"]) == ({"valid": 2}, {"200": 2})
