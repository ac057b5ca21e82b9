"""The limits of a service can be set, and zero is a limit only where it says so."""

from __future__ import annotations

import pytest

from fastbandit.errors import SettingError
from fastbandit.settings.service_files import read_config


def test_limits_are_read_like_other_settings() -> None:
    environ = {"FASTBANDIT_LIMITS_HEADER_BYTES": "1000", "FASTBANDIT_LIMITS_BODY_SECONDS": "2.5"}
    limits = read_config(None, environ=environ, overrides={"limits.eligible": 7}).limits

    assert (limits.header_bytes, limits.body_seconds, limits.eligible) == (1000, 2.5, 7)
    assert limits.requests_per_second == 0.0


@pytest.mark.parametrize("name", ["header_bytes", "connections", "eligible", "body_seconds"])
def test_nothing_can_be_asked_of_a_service_whose_limits_are_zero(name: str) -> None:
    with pytest.raises(SettingError, match=f"limits.{name} needs"):
        read_config(None, environ={}, overrides={f"limits.{name}": 0})
