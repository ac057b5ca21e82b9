"""An exchange ends in time, whatever the service sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_service import (
    FakeService,
    dribble,
    hang,
)

from fastbandit.client import Retries
from fastbandit.errors import (
    ServiceUnavailable,
)

Connect = Callable[..., Any]


def test_the_key_is_sent_as_a_bearer(service: FakeService, connect: Connect) -> None:
    connect(service.url, key="fb_secret").status()

    assert service.headers[0]["Authorization"] == "Bearer fb_secret"


@pytest.mark.parametrize("failure", [hang, dribble], ids=["hang", "dribble"])
def test_a_try_that_hangs_leaves_time_for_another(
    failure: Any, service: FakeService, connect: Connect
) -> None:
    service.failures = [failure]
    share = 0.005  # of 20 seconds

    selected = connect(service.url, retries=Retries(share=share, seed=7)).select([0.1])

    assert not selected.is_fallback


@pytest.mark.parametrize("failure", [hang, dribble], ids=["hang", "dribble"])
def test_a_call_ends_at_its_deadline(failure: Any, service: FakeService, connect: Connect) -> None:
    service.failures = [failure] * 9

    with pytest.raises(ServiceUnavailable, match="needs to answer in time"):
        connect(service.url, deadline_seconds=0.1).select([0.1])
