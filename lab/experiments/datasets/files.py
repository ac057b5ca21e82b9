"""Files of datasets: where they lie, and how they are fetched."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from email.message import Message
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from fastbandit.declaration import known_name
from fastbandit.errors import DataError
from fastbandit.progress import Progress, progress_bar
from fastbandit.storage.data_folder import data_folder as data_folder
from lab.experiments.datasets.sources import SOURCES as SOURCES
from lab.experiments.datasets.sources import Download

_BYTES = 2**16
_TIMEOUT_SECONDS = 60.0


def find(dataset: str, candidates: Sequence[str], *, data: Path | None) -> Path:
    """Return the first of the candidates that exists below the data folder."""
    folder = data_folder(data)
    for candidate in candidates:
        if (folder / candidate).exists():
            return folder / candidate
    where = folder if folder.is_dir() else f"{folder} (no such folder)"
    one_of = "one of " if len(candidates) > 1 else ""
    raise DataError(
        f"The dataset {dataset} needs {one_of}{', '.join(candidates)}: found none in {where}. "
        f"{how_to_get(dataset, data=data)}"
    )


def find_beside(path: Path, names: Sequence[str], *, dataset: str) -> Path:
    """Return the first of the files that lies in the same folder as `path`."""
    for name in names:
        if (path.parent / name).exists():
            return path.parent / name
    one_of = "one of " if len(names) > 1 else ""
    raise DataError(
        f"The dataset {dataset} needs {one_of}{', '.join(names)} beside {path.name}: found none "
        f"in {path.parent}. Get the whole dataset: {SOURCES[dataset].page}."
    )


def how_to_get(dataset: str, *, data: Path | None) -> str:
    """Say how to come by a dataset: a command, or what to get from which page."""
    source = SOURCES.get(dataset)
    if source is None:
        return "Name the folder that holds it with --data or FASTBANDIT_DATA."
    if source.by_hand:
        home = data_folder(data) / Path(source.files[0]).parent
        return f"{source.by_hand}; put what you got into {home}."
    option = "" if data is None else f" --data {shlex.quote(str(data))}"
    return (
        f"Run `python -m lab data fetch {dataset}{option}`, or name the folder that holds it with "
        f"--data or FASTBANDIT_DATA."
    )


def fetch(name: str, data: Path | None, *, opener: Callable[..., Any] = urlopen) -> list[Path]:
    """Download what is missing of a dataset, check it, unpack it; return where it lies."""
    known_name("dataset", name, tuple(SOURCES))
    downloads = SOURCES[name].downloads
    if not downloads:
        raise DataError(f"The dataset {name} has no plain download. {how_to_get(name, data=data)}")
    folder = data_folder(data)
    with progress_bar(f"Fetching {name}") as progress:
        return [_fetch(d, folder, opener=opener, progress=progress) for d in downloads]


def _fetch(
    download: Download, folder: Path, *, opener: Callable[..., Any], progress: Progress
) -> Path:
    target = folder / download.to
    if target.exists():
        return target
    part = target.parent / f"{PurePosixPath(download.url).name}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(download.url, part, opener=opener, progress=progress)
        if download.inside is None:
            os.replace(part, target)
        else:
            _unpack(part, target, inside=download.inside)
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error}. Name another folder with --data."
        ) from error
    finally:
        if _version_of(part).exists() and not part.exists():
            _version_of(part).unlink()
    return target


def _download(url: str, part: Path, *, opener: Callable[..., Any], progress: Progress) -> None:
    """Fill the part file up to the length the server declares, from where it ends now."""
    have = _size(part)
    try:
        with opener(Request(url, headers=_wanted(part)), timeout=_TIMEOUT_SECONDS) as response:
            if response.status != 206:  # the server sends all of it, asked for or not
                have = 0
            left = response.headers.get("Content-Length")
            total = None if left is None else have + int(left)
            with part.open("ab" if have else "wb") as file:
                if not have:
                    _keep_version(part, response.headers)
                while block := response.read(_BYTES):
                    have += file.write(block)
                    progress(have, max(have, total or 0), PurePosixPath(url).name)
    except HTTPError as error:
        error.close()
        if error.code != 416 or not have:
            raise DataError(
                f"{url} cannot be downloaded: the server answers {error.code} {error.reason}. Try "
                f"later, or get the file by hand."
            ) from error
        if error.headers.get("Content-Range") != f"bytes */{have}":
            part.unlink()  # longer than the file is now: it was another one
            _download(url, part, opener=opener, progress=progress)
        return
    except (OSError, HTTPException) as error:
        raise DataError(
            f"{url} was not downloaded to its end: {error}. Run the same command again; it goes "
            f"on from {_size(part):,} bytes in {part}."
        ) from error
    if total is not None and have != total:
        raise DataError(
            f"{url} needs {total:,} bytes: the connection ended after {have:,}. Run the same "
            f"command again; it goes on from {part}."
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wanted(part: Path) -> dict[str, str]:
    """Ask for what the part lacks, or for all where the server has another version by now."""
    headers = {"User-Agent": "fastbandit"}
    if have := _size(part):
        headers["Range"] = f"bytes={have}-"
        version = _version_of(part)
        known = version.read_text(encoding="latin-1").strip() if version.exists() else ""
        headers |= {"If-Range": known} if known else {}
    return headers


def _keep_version(part: Path, headers: Message) -> None:
    """Note which version a part is of; a weak ETag does not identify a version to the byte."""
    versions = [headers.get(name, "") for name in ("ETag", "Last-Modified")]
    known = next((version for version in versions if version and not version.startswith("W/")), "")
    _version_of(part).unlink(missing_ok=True)
    if known:
        _version_of(part).write_text(known, encoding="latin-1")


def _version_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _unpack(part: Path, target: Path, *, inside: str) -> None:
    """Unpack a zip beside the target and rename its folder `inside` into place."""
    beside = target.with_name(f"{target.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with zipfile.ZipFile(part) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                raise zipfile.BadZipFile(f"{damaged} is damaged")
            _check_members(archive, part)
            archive.extractall(beside)
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError) as error:
        part.unlink()
        raise DataError(
            f"{part} needs to be a whole zip file: {error}. It was removed; run the same command "
            f"again."
        ) from error
    if not (beside / inside).is_dir():
        raise DataError(f"{part} needs a folder {inside}: there is none. Unpack it by hand.")
    os.replace(beside / inside, target)
    shutil.rmtree(beside)
    part.unlink()


def _check_members(archive: zipfile.ZipFile, part: Path) -> None:
    for member in archive.namelist():
        if re.match(r"[/\\]|[A-Za-z]:", member) or ".." in re.split(r"[/\\]", member):
            raise DataError(
                f"{part} needs to unpack into its own folder: its member {member!r} leaves it. "
                f"Remove the file; it is not the dataset."
            )
