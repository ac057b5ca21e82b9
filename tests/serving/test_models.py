"""What the learner left in its files."""

from __future__ import annotations

import json

import pytest

from fastbandit.serving.console.answer import Comparison
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from tests.serving.little_console import BEGIN, LoggedService


def publish(service: LoggedService, version: int, notes: dict[str, object]) -> None:
    store = SnapshotStore(service.folder / "snapshots")
    with store.drafting() as draft:
        for part in ("bandit", "frozen"):
            (draft / part).mkdir()
            (draft / part / "arrays").write_bytes(b"")
            told = {"arrays": {"file": "arrays", "bytes": 0, "sha256": ""}}
            (draft / part / "manifest.json").write_text(json.dumps(told))
        cut = Cut(seq=5, at=BEGIN, interactions=40)
        store.publish(draft, notes, version=version, parent=store.current(), cut=cut)


def test_versions_and_rejections_are_shown_with_their_checks(service: LoggedService) -> None:
    checks = {"finite": True, "quality": 0.95, "recall": 0.99, "loss": 0.4, "worse": -0.1}
    curve = [[step, 1 / (step + 1)] for step in range(500)]
    publish(service, 0, {"arms": 3})
    publish(service, 1, {"arms": 4, "checks": checks, "curve": curve})
    store = SnapshotStore(service.folder / "snapshots")
    store.refuse(
        2, {"reason": "Its recall is low.", "checks": {"recall": 0.2}, "cut": {"pairs": 60}}
    )

    rejected, current, first = service.show().candidates

    assert (rejected.version, rejected.rejected, rejected.recall) == (2, "Its recall is low.", 0.2)
    assert (current.version, current.is_current, current.interactions) == (1, True, 40)
    assert (current.quality, current.loss, current.in_service) == (0.95, 0.4, Comparison(0.5, -0.1))
    assert 60 <= len(current.curve) <= 120
    assert current.curve[-1][0] == 499
    assert (first.version, first.is_current, first.quality) == (0, False, None)


def test_a_rejection_that_comes_later_is_seen(service: LoggedService) -> None:
    publish(service, 0, {})
    assert len(service.show().candidates) == 1

    SnapshotStore(service.folder / "snapshots").refuse(1, {"reason": "No."})

    assert [one.rejected for one in service.show().candidates] == ["No.", None]


def test_the_learner_and_its_audit_are_shown(service: LoggedService) -> None:
    told = {"state": "waiting", "error": "", "seconds": 2.5, "fresh": 12, "needed": 500}
    (service.folder / "learner.json").write_text(json.dumps(told))
    audit = {"version": 3, "quality": 0.97, "count": 64, "lowest": 0.8}
    (service.folder / "audits.json").write_text(json.dumps(audit))

    answer = service.show()

    assert answer.learner is not None
    assert (answer.learner.state, answer.learner.fresh, answer.learner.needed) == (
        "waiting",
        12,
        500,
    )
    assert answer.audit is not None
    assert (answer.summary.quality, answer.audit.lowest) == (0.97, 0.8)
    assert "12 of 500 fresh interactions" in answer.notes["models"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"quality": "x"}', '{"quality": NaN}'])
def test_files_that_cannot_be_read_are_as_good_as_missing(
    service: LoggedService, text: str
) -> None:
    for name in ("learner.json", "audits.json"):
        (service.folder / name).write_text(text)

    assert service.show().audit is None
