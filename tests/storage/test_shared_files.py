"""Files in a shared store: errors name it without its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.errors import SettingError, SnapshotError
from fastbandit.storage.shared_files import fetch, locate, upload

pytest.importorskip("fsspec")
PLACE = "memory://me:hunter2@host/versions"


def test_a_place_of_no_known_kind_is_named_without_its_password() -> None:
    with pytest.raises(SettingError, match=r"me:…@host") as caught:
        locate("nosuch://me:hunter2@host/versions")

    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_another_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.txt").write_text("one")
    upload(tmp_path / "here", PLACE)

    with pytest.raises(SnapshotError, match=r"me:…@host/versions/a.txt") as caught:
        fetch(f"{PLACE}/a.txt", tmp_path / "there", size=3, digest="of another")

    assert "hunter2" not in str(caught.value)
