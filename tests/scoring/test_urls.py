"""Folders and files by path or URL: written whole, fetched once."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from fastbandit.cluster.urls import (
    Folder,
    absolute,
    fetch_frozen,
    find_frozen,
    find_tables,
    is_local,
    open_url,
    plain,
)
from fastbandit.errors import DataError, SettingError, SnapshotError


def test_a_path_and_its_url_are_the_same(tmp_path: Path) -> None:
    assert absolute(f"file://{tmp_path}/") == absolute(str(tmp_path)) == str(tmp_path)
    assert plain(f"file://{tmp_path}") == str(tmp_path)
    assert is_local(str(tmp_path))
    assert not is_local("memory://somewhere")


def test_a_url_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(SettingError, match="got 'nfs9://x'"):
        open_url("nfs9://x")


def test_files_that_are_hidden_or_of_another_kind_are_no_contexts(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "_SUCCESS.parquet", ".c.parquet", "d.json"):
        (tmp_path / name).touch()

    assert [Path(url).name for url, _ in find_tables(str(tmp_path))] == ["a.parquet", "b.parquet"]


def test_a_folder_without_parquet_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found none at"):
        find_tables(str(tmp_path))


@pytest.mark.parametrize("kind", ["disk", "memory"])
def test_a_folder_holds_what_was_written(kind: str, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "out") if kind == "disk" else f"memory://{tmp_path.name}/out")
    assert folder.names() == set()
    folder.make()

    folder.write("a", b"first")
    folder.write("a", b"second")
    folder.write_json("b.json", {"rows": 3})

    system, path = open_url(folder.url)
    assert system.cat_file(f"{path}/a") == b"second"
    assert folder.read_json("b.json") == {"rows": 3}
    assert folder.read_json("c.json") is None
    assert folder.names() == {"a", "b.json"}
    assert folder.has("a")
    assert not folder.has("c.json")


def test_a_file_that_was_started_and_not_written_is_swept(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    for name in ("done", "begun"):
        folder.start(name)
    folder.write("done", b"")

    assert folder.sweep() == {"begun"}
    assert folder.names() == {"done"}


def test_a_folder_that_is_a_file_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SettingError, match="--out"):
        Folder(str(tmp_path / "file")).make()


def test_json_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[")

    with pytest.raises(DataError, match=r"a\.json needs to be the JSON"):
        Folder(str(tmp_path)).read_json("a.json")


def test_a_remote_bandit_is_fetched_once(tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    url = f"memory://{tmp_path.name}"
    manifest = {"arrays": {"file": "arrays"}, "sha256": "abc"}
    system.pipe({f"{url}/manifest.json": json.dumps(manifest).encode(), f"{url}/arrays": b"12"})

    folder = fetch_frozen(url, cache=tmp_path)
    system.rm(f"{url}/arrays")

    assert fetch_frozen(url, cache=tmp_path) == folder == tmp_path / "frozen" / "abc"
    assert sorted(path.name for path in folder.iterdir()) == ["arrays", "manifest.json"]
    assert (folder / "arrays").read_bytes() == b"12"


def test_a_url_without_a_bandit_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot be read"):
        fetch_frozen("memory://nothing", cache=tmp_path)


def test_a_bandit_that_was_not_frozen_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1}))

    with pytest.raises(SnapshotError, match="Run `fastbandit freeze"):
        find_frozen(str(tmp_path))


def test_the_frozen_part_of_a_version_is_found(tmp_path: Path) -> None:
    (tmp_path / "snapshot.json").touch()

    assert find_frozen(str(tmp_path)) == str(tmp_path / "frozen")
