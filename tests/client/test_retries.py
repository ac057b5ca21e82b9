"""How long to wait before a request is sent again."""

from __future__ import annotations

from email.utils import formatdate
from time import time
from typing import Any

import pytest

from fastbandit.client.retries import Retries, seconds_until
from fastbandit.errors import SettingError


def test_a_date_says_how_long_to_wait() -> None:
    assert 50 < seconds_until(formatdate(time() + 60, usegmt=True)) <= 60
    assert seconds_until(formatdate(time() - 60, usegmt=True)) == 0.0


@pytest.mark.parametrize("said", ["", "soon", "-3", "nan"])
def test_a_wait_that_says_nothing_is_none(said: str) -> None:
    assert seconds_until(said) == 0.0


@pytest.mark.parametrize(
    "settings", [{"tries": 0}, {"first_seconds": 2.0}, {"first_seconds": -1.0}, {"share": 0.0}]
)
def test_retries_that_make_no_sense_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="need"):
        Retries(**settings)
