"""Each decider brings its file in line with what the database says of who decides."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import DataError, LogUnavailableError
from fastbandit.serving.promotion import Promotion, read_promotion
from fastbandit.serving.shared_promotion import PromotionFollower, SharedPromotion

PROMOTED = Promotion("bandit", 12.5, 3)


def follow(folder: Path, found: Any, monkeypatch: pytest.MonkeyPatch) -> PromotionFollower:
    """Follow a database once that answers, or raises, what is given."""

    def read(shared: SharedPromotion) -> Promotion:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(SharedPromotion, "read", read)
    follower = PromotionFollower("postgresql://nowhere.invalid/x", folder)
    asyncio.run(follower.follow())
    return follower


def test_the_file_says_what_the_database_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = follow(tmp_path, PROMOTED, monkeypatch)

    assert read_promotion(tmp_path) == PROMOTED
    assert follower.problem is None


def test_while_the_database_is_unavailable_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(tmp_path, PROMOTED, monkeypatch)

    follower = follow(tmp_path, LogUnavailableError("It is gone. Wait."), monkeypatch)

    assert read_promotion(tmp_path) == PROMOTED
    assert follower.problem is None


def test_any_other_error_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(tmp_path, DataError("It is damaged. Restore it."), monkeypatch)

    assert follower.problem == "It is damaged. Restore it."
    assert read_promotion(tmp_path) is None
