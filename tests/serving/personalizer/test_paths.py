"""A path stands for one operation, whatever its version, and may have an id."""

from __future__ import annotations

import pytest

from fastbandit.serving.personalizer.paths import operation_of


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/personalizer/v1.0/rank", ("/rank", b"")),
        ("/personalizer/v1.1-preview.3/rank", ("/rank", b"")),
        ("/personalizer/rank", ("/rank", b"")),
        ("/personalizer/v1.0/events/a b/reward", ("/events/{id}/reward", b"id=a%20b&")),
        ("/personalizer/v1.0/evaluations/7", ("/evaluations/{id}", b"id=7&")),
        ("/personalizer/v1.0/events/7", ("/events/7", b"")),
        ("/personalizers/rank", None),
        ("/v1/select", None),
    ],
)
def test_an_operation_is_found(path: str, found: tuple[str, bytes] | None) -> None:
    assert operation_of(path, "/personalizer") == found
