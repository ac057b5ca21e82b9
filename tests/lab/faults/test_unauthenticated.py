"""What has no key is thrown at a service, and who has one is answered meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.faults.report import CAMPAIGNS
from lab.faults.unauthenticated import Attack, UnauthenticatedReport, unauthenticated

QUIET = Attack("nothing", 0, 0, 0, asked=10, failed=0, p99_ms=70.0, longest_ms=90.0, grown_bytes=0)
SLOW = replace(QUIET, name="slow", connections=10_000, p99_ms=2.0, longest_ms=40.0)


@pytest.mark.parametrize(
    "other", [{"longest_ms": 51.0}, {"failed": 1}, {"grown_bytes": 65 * 2**20}]
)
def test_each_bar_counts_and_the_quiet_time_has_none(other: dict[str, float]) -> None:
    assert UnauthenticatedReport((QUIET, SLOW)).is_bearable
    assert not UnauthenticatedReport((QUIET, replace(SLOW, **other))).is_bearable


def test_the_report_asks_for_enough_connections() -> None:
    _, rows = CAMPAIGNS["unauthenticated"]
    for count, is_met in ((10_000, True), (9_999, False)):
        attacks = [vars(QUIET), vars(replace(SLOW, connections=count))]
        assert [row.is_met for row in rows({"attacks": attacks})] == [is_met]


@pytest.mark.slow
def test_a_service_bears_what_has_no_key() -> None:
    report = unauthenticated(headers=2, bodies=4, unread=8, slow=60)

    names = ["nothing", "headers", "bodies", "unread", "slow"]
    assert [one.name for one in report.attacks] == names
    assert all(one.failed == 0 and one.asked > 0 for one in report.attacks)
    assert [one.ended for one in report.attacks] == [0, 2, 4, 8, 60]
    assert all(one.grown_bytes < 64 * 2**20 for one in report.attacks)
