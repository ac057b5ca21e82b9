"""Omniglot: 1,623 handwritten characters of 50 alphabets, each drawn by 20 people.

Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program
induction" (Science 2015). A context is a drawing, an arm a character; ink is 1, paper 0.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.errors import DataError, SettingError
from fastbandit.features.csv_files import read_csv, to_numbers
from fastbandit.progress import Progress, progress_bar
from lab.experiments.datasets.files import data_folder, find
from lab.experiments.datasets.images import (
    Pixels,
    classes_as_arms,
    open_pictures,
    read_gray,
    shrink,
    to_bytes,
)
from lab.experiments.environment import Tabled

_FOLDERS = ("omniglot", "omniglot/python", "omniglot-py", "")
_PARTS = ("images_background", "images_evaluation")
_SMALL = ("images_background_small1", "images_background_small2")
_DRAWINGS = 20

Character = tuple[str, str]
"""An alphabet and a character of it."""


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    alphabet: str | None = None,
    classes: int | None = None,
    size: int = 28,
) -> Tabled:
    """Make a bandit of drawings; of one `alphabet`, or of the first so many `classes`."""
    if size < 8 or (classes is not None and classes < 2):
        raise SettingError(
            f"Omniglot needs a size of at least 8 pixels and at least 2 classes: got size={size} "
            f"and classes={classes}. Raise them."
        )
    sources = _sources(name, data)
    with progress_bar("Reading Omniglot") as progress:
        read = _read_arrays if sources[0].suffix == ".npz" else _read_pictures
        pixels, labels, characters = read(
            sources, size, alphabet=alphabet, classes=classes, progress=progress
        )
    return classes_as_arms(
        pixels,
        labels,
        name=name,
        classes=["/".join(character) for character in characters],
        seed=seed,
        notes=(f"read from {', '.join(source.name for source in sources)}",),
    )


def _sources(name: str, data: Path | None) -> list[Path]:
    """Find the files that hold most: both parts, else the first alone, else the small ones."""
    folder = data_folder(data)
    for parts in (_PARTS, _PARTS[:1], _SMALL, _SMALL[:1], _SMALL[1:]):
        for endings in ((".npz",), ("", ".zip")):
            found = [_first(folder, part, endings) for part in parts]
            paths = [path for path in found if path is not None]
            if len(paths) == len(parts):
                return paths
    candidates = [f"omniglot/{_PARTS[0]}{ending}" for ending in (".npz", "", ".zip")]
    return [find(name, candidates, data=data)]


def _first(folder: Path, part: str, endings: Sequence[str]) -> Path | None:
    paths = (folder / home / f"{part}{ending}" for home in _FOLDERS for ending in endings)
    return next((path for path in paths if path.exists()), None)


def _chosen(
    known: Sequence[Character], *, alphabet: str | None, classes: int | None
) -> list[Character]:
    """Return the characters that are wanted, in their order."""
    if alphabet is not None:
        known_name("alphabet", alphabet, tuple(dict.fromkeys(a for a, _ in known)))
    return [c for c in known if alphabet in (None, c[0])][:classes]


# -- arrays of all drawings


def _read_arrays(
    sources: Sequence[Path],
    size: int,
    *,
    alphabet: str | None,
    classes: int | None,
    progress: Progress,
) -> tuple[Pixels, NDArray[np.int64], list[Character]]:
    named = _named_classes(sources[0].with_name("classes.csv"))
    known = [named[source.stem] for source in sources]
    wanted = _chosen([c for part in known for c in part], alphabet=alphabet, classes=classes)
    is_wanted, pixels = set(wanted), []
    for number, (source, part) in enumerate(zip(sources, known, strict=True)):
        progress(number, len(sources), f"reading {source.name}")
        rows = [row for row, character in enumerate(part) if character in is_wanted]
        if rows:
            pixels.append(_shrunk(_load_array(source, len(part))[rows], size))
    progress(len(sources), len(sources), "reading")
    every = np.concatenate(pixels)  # (classes, 20, size, size)
    labels = np.repeat(np.arange(len(wanted)), every.shape[1])
    return every.reshape(-1, size, size), labels, wanted


def _named_classes(path: Path) -> dict[str, list[Character]]:
    if not path.exists():
        raise DataError(
            f"The arrays of Omniglot need classes.csv beside them (split, char_id, alphabet, "
            f"character): found none in {path.parent}. Use the folders of the official zips."
        )
    table = read_csv(path, ["split", "char_id", "alphabet", "character"])
    order = np.argsort(to_numbers(table["char_id"], path=path, column="char_id"), kind="stable")
    named: dict[str, list[Character]] = {part: [] for part in _PARTS}
    for row in order:
        character = (table["alphabet"][row], table["character"][row])
        named.setdefault(table["split"][row], []).append(character)
    return named


def _load_array(path: Path, classes: int) -> NDArray[np.bool_]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            images: NDArray[np.bool_] = stored["images"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} needs an array 'images': {error}. Download it again.") from error
    if images.ndim != 4 or len(images) != classes:
        raise DataError(
            f"{path} needs images of shape ({classes}, {_DRAWINGS}, h, w), as classes.csv names "
            f"them: got {images.shape}. Use files that belong together."
        )
    return images


def _shrunk(paper: NDArray[np.bool_], size: int) -> Pixels:
    """Turn paper (True) and ink (False) into small pictures in which ink is bright."""
    small = np.empty((*paper.shape[:2], size, size), dtype=np.uint8)
    for row, drawings in enumerate(paper):
        small[row] = to_bytes(1.0 - shrink(drawings.astype(np.float32), height=size, width=size))
    return small


# -- folders and zips of pictures


def _read_pictures(
    sources: Sequence[Path],
    size: int,
    *,
    alphabet: str | None,
    classes: int | None,
    progress: Progress,
) -> tuple[Pixels, NDArray[np.int64], list[Character]]:
    found: dict[str, tuple[str, Callable[[str], bytes]]] = {}
    for source in sources:
        names, read = open_pictures(source)
        pictures = (PurePosixPath(name) for name in names)
        # The two small sets share an alphabet: a file's name, CCCC_SS, identifies a drawing.
        found |= {p.name: (str(p), read) for p in pictures if len(p.parts) >= 3}
    drawings = [found[name] for name in sorted(found)]
    known = list(dict.fromkeys(_character(name) for name, _ in drawings))
    wanted = _chosen(known, alphabet=alphabet, classes=classes)
    if not wanted:
        raise DataError(
            f"{sources[0]} needs pictures in Alphabet/characterNN/CCCC_SS.png: found none. Unpack "
            f"the official zip there."
        )
    label = {character: row for row, character in enumerate(wanted)}
    drawings = [(name, read) for name, read in drawings if _character(name) in label]
    pixels = np.empty((len(drawings), size, size), dtype=np.uint8)
    for row, (name, read) in enumerate(drawings):
        pixels[row] = to_bytes(1.0 - read_gray(read(name), height=size, width=size))
        progress(row + 1, len(drawings), "reading drawings")
    return pixels, np.array([label[_character(name)] for name, _ in drawings]), wanted


def _character(name: str) -> Character:
    alphabet, character = PurePosixPath(name).parts[-3:-1]
    return alphabet, character
