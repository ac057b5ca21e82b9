"""The shape of the console's answer: what is not known is left open, and read as such."""

from __future__ import annotations

import msgspec
import pytest

from fastbandit.serving.console.answer import Audit, Learner, Mean


def test_a_learner_that_says_little_is_shown_all_the_same() -> None:
    learner = msgspec.json.decode(b'{"state": "training", "extra": 1}', type=Learner)

    assert (learner.state, learner.fresh, learner.seconds) == ("training", None, None)


def test_an_audit_needs_its_quality() -> None:
    with pytest.raises(msgspec.ValidationError, match="quality"):
        msgspec.json.decode(b'{"lowest": 0.5}', type=Audit)


def test_a_mean_of_one_value_has_no_band() -> None:
    sent = msgspec.json.decode(msgspec.json.encode(Mean(1, 0.5, None, None)))

    assert sent == {"count": 1, "mean": 0.5, "low": None, "high": None, "pending": 0.0}
