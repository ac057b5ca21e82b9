"""The largest requests are as large as is permitted, and others are answered beside them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from fastbandit.serving.request_limits import check_size
from fastbandit.serving.schemas import RewardRequest, SelectRequest
from fastbandit.settings.limits import LimitsConfig
from lab.faults.report import CAMPAIGNS
from lab.faults.worst_request import Beside, WorstReport, largest, worst_request

WELL = Beside("a long list", 1, {"200": 3}, steady_p99_ms=2.0, p99_ms=6.0, failed=0, grown_bytes=0)


@pytest.mark.parametrize("arms", [40, 100_000])
def test_the_largest_requests_are_within_the_limits(arms: int) -> None:
    limits = LimitsConfig()
    for _, path, content in largest(arms, limits):
        body = msgspec.json.encode(content)
        assert len(body) <= limits.body_bytes
        if path == "/v1/select":
            check_size(msgspec.json.decode(body, type=SelectRequest), limits, len(body))
        else:
            msgspec.json.decode(body, type=RewardRequest)


@pytest.mark.parametrize(
    "other",
    [{"p99_ms": 6.1}, {"failed": 1}, {"grown_bytes": 101 * 2**20}, {"answers": {"422": 1}}],
)
def test_each_bar_counts(other: dict[str, object]) -> None:
    _, rows = CAMPAIGNS["worst-request"]
    for one, is_met in ((WELL, True), (replace(WELL, **other), False)):
        assert WorstReport(40, 1.0, (one,)).is_bearable is is_met
        assert [row.is_met for row in rows({"kinds": [vars(one)]})] == [is_met]


@pytest.mark.slow
def test_a_service_answers_others_beside_the_largest_requests() -> None:
    report = worst_request(40, seconds=0.3, rounds=1, rate=50.0, settings={})

    assert [set(one.answers) for one in report.kinds] == [{"200"}] * 6
    assert all(one.failed == 0 and one.p99_ms > 0 for one in report.kinds)
