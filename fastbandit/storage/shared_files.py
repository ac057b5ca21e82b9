"""Files in a store that many machines reach: any path or URL that fsspec knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastbandit.errors import MissingExtraError, SettingError, SnapshotError
from fastbandit.files.atomic import file_digest, sync_path
from fastbandit.packages import needed
from fastbandit.settings.passwords import hide_password


def locate(
    url: str, *, what: str = "A shared store of snapshots", extra: str | None = None
) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path there."""
    core = needed("fsspec.core", what=what, extra=extra)
    try:
        system, path = core.url_to_fs(os.path.expanduser(url))
    except ImportError as error:
        raise MissingExtraError(
            f"{hide_password(url)} needs a package that is not installed: {error}. Install it with "
            f"pip."
        ) from error
    except ValueError as error:
        raise SettingError(
            f"A place needs a path, or a URL such as s3://bucket/folder: got "
            f"{hide_password(f'{url!r} ({error})')}. Correct it."
        ) from error
    return system, path


def upload(folder: Path, url: str) -> dict[str, tuple[int, str]]:
    """Upload all files of a folder; return the size and SHA-256 of each, by name."""
    system, path = locate(url)
    uploaded: dict[str, tuple[int, str]] = {}
    for file in sorted(it for it in folder.rglob("*") if it.is_file()):
        name = file.relative_to(folder).as_posix()
        system.makedirs(f"{path}/{name}".rpartition("/")[0], exist_ok=True)
        system.put_file(str(file), f"{path}/{name}")
        size = file.stat().st_size
        found = system.info(f"{path}/{name}")["size"]
        if found != size:
            raise OSError(f"{url}/{name} has {found} bytes of {size} after the upload")
        uploaded[name] = (size, file_digest(file))
    if "file" in system.protocol:  # an upload to an object store outlives a power cut anyhow
        for found in (Path(path), *Path(path).rglob("*"), Path(path).parent):
            sync_path(found)
    return uploaded


def fetch(url: str, file: Path, *, size: int, digest: str) -> None:
    """Fetch a file, and check that it is the one that was uploaded."""
    system, path = locate(url)
    file.parent.mkdir(parents=True, exist_ok=True)
    system.get_file(path, str(file))
    sync_path(file)
    if file.stat().st_size != size or file_digest(file) != digest:
        raise SnapshotError(
            f"A snapshot needs to be fetched as it was uploaded: {hide_password(url)} has another "
            f"SHA-256 or size. Roll back to an older version, or upload it again."
        )
