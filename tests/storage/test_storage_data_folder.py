"""The folder of data: the one that is named, or one of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.storage.data_folder import data_folder


def test_a_folder_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTBANDIT_DATA", "/elsewhere")

    assert data_folder(Path("/here")) == Path("/here")


def test_else_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTBANDIT_DATA", "/elsewhere")

    assert data_folder(None) == Path("/elsewhere")


def test_else_it_is_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTBANDIT_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")

    assert data_folder(None) == Path("/cache/fastbandit")
