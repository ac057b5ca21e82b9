"""Pictures as contexts: read, made gray and small, and each class turned into an arm."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, MissingExtraError
from fastbandit.features.kinds import Image
from fastbandit.types import Inputs
from lab.experiments.environment import Tabled

Pixels = NDArray[np.uint8]


def read_gray(source: Path | bytes, *, height: int, width: int) -> NDArray[np.float32]:
    """Read a picture to gray between 0 (black) and 1 (white): (height, width)."""
    pillow = pillow_image()
    try:
        with pillow.open(io.BytesIO(source) if isinstance(source, bytes) else source) as picture:
            picture.draft("L", (width, height))  # a JPEG is decoded no larger than needed
            gray = np.asarray(picture.convert("L"), dtype=np.float32) / np.float32(255.0)
    except (OSError, SyntaxError) as error:
        name = "a picture" if isinstance(source, bytes) else source
        raise DataError(
            f"{name} needs to be a whole JPEG or PNG: {error}. Download it again."
        ) from error
    return shrink(gray[None], height=height, width=width)[0]


def pillow_image() -> Any:
    """Return the part of Pillow that opens pictures."""
    try:
        from PIL import Image as pillow  # noqa: N813  the name Image is taken
    except ImportError as error:
        raise MissingExtraError(
            "Pictures need Pillow: it is not installed. Run pip install -e '.[lab]'."
        ) from error
    return pillow


def shrink(images: NDArray[np.float32], *, height: int, width: int) -> NDArray[np.float32]:
    """Resize images (n, h, w) by the mean of the area that each new pixel covers."""
    rows, columns = _areas(images.shape[1], height), _areas(images.shape[2], width)
    return np.asarray(rows @ (images @ columns.T), dtype=np.float32)


def _areas(before: int, after: int) -> NDArray[np.float32]:
    """Return the share that each old position has in each new one: (after, before)."""
    edges = np.linspace(0.0, before, after + 1)
    old = np.arange(before)
    ends = np.minimum(edges[1:, None], old + 1.0)
    starts = np.maximum(edges[:-1, None], old)
    return (np.clip(ends - starts, 0.0, None) * (after / before)).astype(np.float32)


def to_bytes(gray: NDArray[np.float32]) -> Pixels:
    """Round gray between 0 and 1 to 256 steps."""
    return np.rint(np.clip(gray, 0.0, 1.0) * 255.0).astype(np.uint8)


class GrayRows:
    """Images stored as bytes, a quarter of the memory; those taken are float32 in [0, 1]."""

    dtype = np.dtype(np.float32)

    def __init__(self, pixels: Pixels) -> None:
        self._pixels = pixels

    @property
    def shape(self) -> tuple[int, ...]:
        return self._pixels.shape

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return self._pixels[rows].astype(np.float32) / np.float32(255.0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)


def classes_as_arms(
    pixels: Pixels,
    labels: NDArray[np.int64],
    *,
    name: str,
    classes: Sequence[str],
    seed: int,
    notes: tuple[str, ...] = (),
) -> Tabled:
    """Turn labelled images into rounds in which the arm of the image's class earns 1, others 0."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError as error:
        raise MissingExtraError(
            "Classes as arms need SciPy: it is not installed. Run pip install -e '.[lab]'."
        ) from error
    count = len(pixels)
    ones = np.ones(count, dtype=np.float32)
    return Tabled(
        name=name,
        context=Image(pixels.shape[1], pixels.shape[2]),
        instances=Inputs(dense=cast(NDArray[np.float32], GrayRows(pixels))),
        expected_rewards=csr_matrix(
            (ones, (np.arange(count), labels)), shape=(count, len(classes))
        ),
        ids=list(classes),
        seed=seed,
        notes=notes,
    )


def open_pictures(path: Path) -> tuple[list[str], Callable[[str], bytes]]:
    """Return the names of the pictures below a folder or in a zip, and a way to read one."""
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".png", ".jpg"))
        return [p.relative_to(path).as_posix() for p in found], lambda n: _read(path / n)
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} needs to be a whole zip file: {error}. Download it again."
        ) from error
    names = sorted(
        n for n in archive.namelist() if PurePosixPath(n).suffix.lower() in (".png", ".jpg")
    )
    return names, lambda name: _read_member(archive, name)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}. Download it again.") from error


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{archive.filename} needs a readable picture {name}: {error}. Download it again."
        ) from error
