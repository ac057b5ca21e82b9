"""Folders and files by path or URL, on this disk or in an object store (what fsspec knows)."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError, SettingError, SnapshotError
from fastbandit.files.atomic import making_folder, raising, rename, write_synced
from fastbandit.files.manifest import BANDIT, MANIFEST, kind_in
from fastbandit.packages import needed
from fastbandit.runtime.folder import KIND
from fastbandit.storage.shared_files import locate
from fastbandit.storage.snapshot_store import SnapshotStore

_BESIDE = ".part"
_KINDS = (".parquet", (".csv", ".csv.gz"))
_STAMPS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")


def open_url(url: str) -> tuple[Any, str]:
    return locate(url, what="Scoring files", extra="score")


def is_local(url: str) -> bool:
    """Return whether a path or URL is of this machine's disks."""
    local = needed("fsspec.implementations.local", what="Scoring files", extra="score")
    return isinstance(open_url(url)[0], local.LocalFileSystem)


def plain(url: str) -> str:
    """Return a URL for people: a plain path where it is of a disk."""
    return url.removeprefix("file://")


def absolute(url: str) -> str:
    """Return a path or URL that means the same to every worker."""
    system, path = open_url(url)
    return plain(system.unstrip_protocol(path)).rstrip("/")


def stamp_of(info: dict[str, Any]) -> str:
    """Return what changes whenever a file does."""
    return str(next((info[name] for name in _STAMPS if info.get(name) is not None), ""))


def find_tables(url: str) -> list[tuple[str, dict[str, Any]]]:
    """List files, by URL and with what is known of each: one, a folder's, or a glob's.

    Those of a folder are its Parquet files, or those in CSV where it has none.
    """
    system, path = open_url(url)
    if system.isfile(path):
        return [(system.unstrip_protocol(path), system.info(path))]
    is_folder = system.isdir(path)
    listed = system.find if is_folder else system.glob
    found: dict[str, dict[str, Any]] = listed(path, detail=True)
    files = {
        name: info
        for name, info in found.items()
        if info["type"] == "file" and not name.rpartition("/")[2].startswith(("_", "."))
    }
    if is_folder:
        of_kinds = ({n: files[n] for n in files if n.endswith(kinds)} for kinds in _KINDS)
        files = next(filter(None, of_kinds), {})
    if not files:
        raise DataError(
            f"Contexts need Parquet or CSV files: found none at {url}. Name a file, a folder that "
            f"holds some (*.parquet, *.csv), or a pattern in quotes."
        )
    return [(system.unstrip_protocol(name), files[name]) for name in sorted(files)]


@dataclass(frozen=True)
class Folder:
    """A folder whose files are written whole or not at all.

    On a disk, what was started and not finished leaves a file `NAME.….part` beside.
    """

    url: str

    def names(self) -> set[str]:
        system, path = self._location
        with suppress(FileNotFoundError):
            return {name.rpartition("/")[2] for name in system.ls(path, detail=False, refresh=True)}
        return set()

    def has(self, name: str) -> bool:
        system, path = self._location
        return bool(system.exists(f"{path}/{name}"))

    def make(self) -> None:
        system, path = self._location
        needs = f"Scores need a folder that can be written to: got {self.url!r}"
        with raising(SettingError, needs, fix="Choose another with --out."):
            system.makedirs(path, exist_ok=True)
            if self._is_local and not os.access(path, os.W_OK):
                raise PermissionError("no right to write")

    def start(self, name: str) -> None:
        """Note on disk that a file was started: one that ends by `write` leaves no note."""
        if self._is_local:
            self._beside(name).touch()

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write a file whole, in place of the one of that name."""
        system, path = self._location
        if self._is_local:
            write_synced(self._beside(name), [content])
            rename(self._beside(name), Path(path) / name)
        else:
            system.pipe_file(f"{path}/{name}", bytes(content))

    def read_json(self, name: str) -> dict[str, Any] | None:
        system, path = self._location
        try:
            return dict(json.loads(system.cat_file(f"{path}/{name}")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{self.url}/{name} needs to be the JSON that was written there: {error}. Score "
                f"into another folder, or empty this one."
            ) from error

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        self.write(name, json.dumps(content, indent=1, allow_nan=False).encode())

    def sweep(self) -> set[str]:
        """Remove what was started and not finished; return the names of these files."""
        started = {name for name in self.names() if name.endswith(_BESIDE)}
        for name in started:
            (Path(self._location[1]) / name).unlink(missing_ok=True)
        return {name.rsplit(".", 2)[0] for name in started}

    def _beside(self, name: str) -> Path:
        return Path(self._location[1]) / f"{name}.{self._token}{_BESIDE}"

    @cached_property
    def _token(self) -> str:
        return secrets.token_hex(4)

    @cached_property
    def _location(self) -> tuple[Any, str]:
        system, path = open_url(self.url)
        return system, path.rstrip("/")

    @cached_property
    def _is_local(self) -> bool:
        return is_local(self.url)


def find_frozen(url: str) -> str:
    """Return the folder for `FrozenBandit.load` that a folder or URL stands for.

    That is the folder itself, one version of a service's snapshots, or the current of them.
    """
    if not is_local(url):
        return url
    folder = Path(open_url(url)[1])
    for store in (folder / "snapshots", folder):
        if (store / "current.json").exists():
            current = SnapshotStore(store).current()
            return url if current is None else str(current.frozen)
    folder = folder / "frozen" if (folder / "snapshot.json").exists() else folder
    if kind_in(folder) == BANDIT:  # its loader notices all else
        raise SnapshotError(
            f"Scoring needs a {KIND}: {folder} holds one that still learns. Run `fastbandit "
            f"freeze {folder}`, and give the folder it writes."
        )
    return str(folder)


def fetch_frozen(url: str, *, cache: Path | None = None) -> Path:
    """Return a folder on this disk; a remote one is fetched once, and known by its hash."""
    system, path = open_url(url)
    if is_local(url):
        return Path(path)
    try:
        manifest = json.loads(system.cat_file(f"{path}/{MANIFEST}"))
        names, digest = [MANIFEST, manifest["arrays"]["file"]], str(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SnapshotError(
            f"Scoring needs a {KIND}: {url} cannot be read ({type(error).__name__}: {error}). Give "
            f"the folder that `fastbandit freeze` wrote."
        ) from error
    home = cache or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "fastbandit"
    folder = home / "frozen" / digest
    if not folder.exists():
        try:
            with making_folder(folder) as beside:
                for name in names:
                    system.get_file(f"{path}/{name}", str(beside / name))
        except OSError:
            if not folder.exists():  # else another worker was faster
                raise
    return folder
