"""Compiled code is kept in a folder of the user's, by versions and sources."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

import fastbandit
from fastbandit.compiler import cache_folder as module
from fastbandit.compiler.cache_folder import cache_folder, is_writable, key


@pytest.mark.parametrize(
    ("environment", "system", "folder"),
    [
        ({"HOME": "/home/ann"}, "linux", "/home/ann/.cache/fastbandit"),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/c"}, "linux", "/var/c/fastbandit"),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "c"}, "linux", "/home/ann/.cache/fastbandit"),
        ({"HOME": "/Users/ann"}, "darwin", "/Users/ann/Library/Caches/fastbandit"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/fastbandit/Cache"),
        ({"HOME": "/home/ann", "FASTBANDIT_CACHE_DIR": "/mine"}, "linux", "/mine"),
    ],
)
def test_the_folder_follows_the_system(
    environment: dict[str, str], system: str, folder: str
) -> None:
    assert cache_folder(environment, system=system) == Path(folder) / key()


def test_a_folder_that_the_user_gave_numba_is_left_alone() -> None:
    assert cache_folder({"NUMBA_CACHE_DIR": "/theirs", "FASTBANDIT_CACHE_DIR": "/mine"}) is None


def test_the_key_names_the_versions() -> None:
    assert key().startswith(f"{fastbandit.__version__}-numba{numba.__version__}-")


def test_another_text_of_any_compiled_file_is_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    (tmp_path / "one.py").write_text("@compiled()\ndef f(): ...\n")
    (tmp_path / "two.py").write_text("@compiled()\ndef g(): ...\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    before = key()

    (tmp_path / "plain.py").write_text("x = 2\n")
    assert key() == before
    (tmp_path / "two.py").write_text("@compiled()\ndef h(): ...\n")
    assert key() != before


def test_a_folder_below_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert is_writable(tmp_path / "there" / "below")
    assert not is_writable(tmp_path / "file" / "below")
