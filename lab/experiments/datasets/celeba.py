"""CelebA: faces of celebrities; a context is a picture, an arm an identity.

Liu, Luo, Wang and Tang, "Deep learning face attributes in the wild" (ICCV 2015). Identities
with at least 30 pictures are arms, which gives 70,838 rounds and 2,360 arms on the full data.
Pictures are made gray, 84 x 64. Where the data cannot be had, `write_sample` draws faces in the
same layout.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, SettingError
from fastbandit.features.csv_files import open_text
from fastbandit.files.atomic import replacing
from fastbandit.progress import Progress, progress_bar, silent
from lab.experiments.datasets.files import SOURCES, find
from lab.experiments.datasets.images import (
    Pixels,
    classes_as_arms,
    open_pictures,
    pillow_image,
    read_gray,
    to_bytes,
)
from lab.experiments.environment import Floats, Tabled
from lab.experiments.results import REAL_FACES, write_beside

HEIGHT, WIDTH = 84, 64
Colour = tuple[int, int, int]

_ABOUT_SAMPLE = """A GENERATED SAMPLE, NOT CELEBA.

The faces in this folder were drawn by a program (fastbandit) and show nobody. Only the layout
is that of CelebA: identity_CelebA.txt and img_align_celeba/. Results on these pictures say that
the path from files to a bandit works; they say nothing about CelebA.
"""
_MOST_PEOPLE = 10_177
_NAMES = ("identity_CelebA.txt", "Anno/identity_CelebA.txt")
_PICTURES = (
    "img_align_celeba",
    "img_align_celeba.zip",
    "Img/img_align_celeba",
    "Img/img_align_celeba.zip",
)


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    least_images: int = 30,
    identities: int | None = None,
) -> Tabled:
    """Make a bandit of faces; `identities` keeps the first so many, for a smaller run."""
    if least_images < 1 or (identities is not None and identities < 2):
        raise SettingError(
            f"CelebA needs least_images of at least 1 and at least 2 identities: got "
            f"least_images={least_images} and identities={identities}. Raise them."
        )
    homes = ("celeba", "CelebA", "")
    listed = find(name, [str(PurePosixPath(h, n)) for h in homes for n in _NAMES], data=data)
    home = listed.parent.parent if listed.parent.name == "Anno" else listed.parent
    names, people = _read_identities(listed)
    rows, labels, known = _keep(people, least_images=least_images, identities=identities)
    if len(known) < 2:
        raise DataError(
            f"{listed} needs at least two identities with {least_images} pictures or more: found "
            f"{len(known)}. Lower least_images, or use the whole file."
        )
    with progress_bar("Reading CelebA") as progress:
        pixels = _read_faces(home, listed, [names[row] for row in rows], progress=progress)
    return classes_as_arms(
        pixels,
        labels,
        name=name,
        classes=[str(person) for person in known],
        seed=seed,
        notes=("a generated sample: drawn faces, not CelebA" if _is_drawn(home) else REAL_FACES,),
    )


def _read_identities(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Read lines such as "000001.jpg 2880": the names of pictures and whom each shows."""
    names, people = [], []
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if len(fields) == 2 and fields[1].isdigit():
                names.append(fields[0])
                people.append(int(fields[1]))
            elif fields:
                raise DataError(
                    f"{path} needs a picture and a number in each line: line {number} has "
                    f"{line.strip()!r}. Download it again."
                )
    return names, np.array(people, dtype=np.int64)


def _keep(
    people: NDArray[np.int64], *, least_images: int, identities: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in use, the arm of each, and the identities that are arms."""
    known, counts = np.unique(people, return_counts=True)
    known = known[counts >= least_images][:identities]
    rows = np.flatnonzero(np.isin(people, known))
    return rows, np.searchsorted(known, people[rows]), known


# -- pictures, and a cache of what was read


def _read_faces(home: Path, listed: Path, names: Sequence[str], *, progress: Progress) -> Pixels:
    source = next((home / name for name in _PICTURES if (home / name).exists()), None)
    if source is None:
        raise DataError(
            f"The dataset celeba needs the folder {_PICTURES[0]} or {_PICTURES[1]} beside "
            f"{listed.name}: found neither in {home}. Get the zip from {SOURCES['celeba'].page}."
        )
    cache = home / f"faces_{_key([source, listed], names)}.npz"
    stored = _from_cache(cache, len(names))
    if stored is not None:
        return stored
    members, read = open_pictures(source)
    by_name = {PurePosixPath(member).name: member for member in members}
    pixels = np.empty((len(names), HEIGHT, WIDTH), dtype=np.uint8)
    for row, face in enumerate(names):
        if face not in by_name:
            raise DataError(
                f"{source} needs the picture {face}, which the list of identities names: it is "
                f"not there. Unpack all pictures, or use the zip."
            )
        pixels[row] = to_bytes(read_gray(read(by_name[face]), height=HEIGHT, width=WIDTH))
        if row % 100 == 99:
            progress(row + 1, len(names), "reading faces")
    _to_cache(cache, pixels)
    return pixels


def _key(files: Sequence[Path], names: Sequence[str]) -> str:
    """Return a key of pictures, their sizes and which are in use."""
    stamps = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    parts = [*stamps, HEIGHT, WIDTH, *names]
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def _from_cache(path: Path, count: int) -> Pixels | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            pixels: Pixels = stored["pixels"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    is_right = pixels.shape == (count, HEIGHT, WIDTH) and pixels.dtype == np.uint8
    return pixels if is_right else None


def _to_cache(path: Path, pixels: Pixels) -> None:
    # a folder that cannot be written costs time, nothing else
    with suppress(OSError), replacing(path, sync=False) as beside, beside.open("wb") as file:
        np.savez_compressed(file, pixels=pixels)


# -- a sample that is drawn


@dataclass(frozen=True)
class _Look:
    """How one person looks; all numbers from 0 to 1."""

    skin: float
    width: float
    height: float
    hair: float
    fringe: float
    eyes_apart: float
    eye: float
    brow: float
    nose: float
    mouth: float
    lips: float
    backdrop: float
    collar: float


def write_sample(
    folder: Path,
    *,
    identities: int = 40,
    images: int = 50,
    seed: int = 0,
    progress: Progress = silent,
) -> Path:
    """Draw faces of people who do not exist, in the layout of CelebA; return the folder written.

    Each identity has a face, hair, eyes and mouth of its own and a usual background; each
    picture its own pose, light and noise. README.txt says that nothing of it is CelebA.
    """
    if not 2 <= identities <= _MOST_PEOPLE or images < 1:
        raise SettingError(
            f"A sample needs 2 to {_MOST_PEOPLE:,} identities and at least one image of each: got "
            f"identities={identities} and images={images}. Choose numbers in that range."
        )
    home = Path(folder)
    _check_own(home)
    rng = np.random.default_rng(seed)
    home.mkdir(parents=True, exist_ok=True)
    (home / "README.txt").write_text(_ABOUT_SAMPLE, encoding="utf-8")
    (home / _PICTURES[0]).mkdir(exist_ok=True)
    people = np.sort(rng.choice(np.arange(1, _MOST_PEOPLE + 1), size=identities, replace=False))
    looks = [_Look(*rng.random(len(fields(_Look)))) for _ in people]
    shown = rng.permutation(np.repeat(np.arange(identities), images))
    lines = []
    for row, person in enumerate(shown, start=1):
        name = f"{row:06d}.jpg"
        _draw_face(looks[person], rng=rng).save(home / _PICTURES[0] / name, quality=90)
        lines.append(f"{name} {people[person]}\n")
        progress(row, len(shown), "drawing faces")
    write_beside(home / _NAMES[0], "".join(lines))
    return home


def _check_own(home: Path) -> None:
    """Raise where a list or pictures lie in the folder that may be the real ones."""
    held = next((name for name in (*_NAMES, *_PICTURES) if (home / name).exists()), None)
    if held is not None and not _is_drawn(home):
        raise DataError(
            f"A sample needs a folder of its own: {home} holds {held} already, which was not "
            f"generated. Name another folder."
        )


def _is_drawn(home: Path) -> bool:
    about = home / "README.txt"
    first = _ABOUT_SAMPLE.splitlines()[0]
    return about.exists() and about.read_text(encoding="utf-8", errors="replace").startswith(first)


def _draw_face(look: _Look, *, rng: np.random.Generator) -> Any:
    """Draw one picture of a person, 178 x 218 in colour."""
    pillow = pillow_image()
    from PIL import ImageDraw

    backdrop = 0.5 * look.backdrop + 0.5 * rng.random()
    picture = pillow.new("RGB", (178, 218), _colour(backdrop, (0.8, 0.9, 1.0)))
    draw = ImageDraw.Draw(picture)
    wide, high = 42 + 14 * look.width, 56 + 14 * look.height
    hair = _colour(0.05 + 0.7 * look.hair, (1.0, 0.85, 0.65))
    skin = _colour(0.35 + 0.55 * look.skin, (1.0, 0.82, 0.7))
    _ellipse(draw, 89, 225, 75, 50, fill=_colour(look.collar, (0.9, 0.8, 1.0)))
    _ellipse(draw, 89, 108, wide + 12, high + 14, fill=hair)
    _ellipse(draw, 89, 118, wide, high, fill=skin)
    _ellipse(draw, 89, 118 - high, 0.8 * wide, 8 + 26 * look.fringe, fill=hair)
    _draw_features(draw, look, hair=hair, smile=rng.random())
    rotated = picture.rotate(
        rng.normal(0.0, 5.0),
        resample=pillow.Resampling.BILINEAR,
        translate=(int(rng.normal(0.0, 3.0)), int(rng.normal(0.0, 3.0))),
        fillcolor=picture.getpixel((2, 2)),
    )
    return pillow.fromarray(_light(np.asarray(rotated, dtype=np.float64), rng=rng))


def _draw_features(draw: Any, look: _Look, *, hair: Colour, smile: float) -> None:
    apart, open_wide = 17 + 10 * look.eyes_apart, 3 + 4 * look.eye
    for side in (-1, 1):
        middle = 89 + side * apart
        _ellipse(draw, middle, 108, 9, open_wide, fill=(240, 240, 240))
        _ellipse(draw, middle, 108, 0.9 * open_wide, 0.9 * open_wide, fill=(40, 30, 30))
        _ellipse(draw, middle, 96 - 3 * look.eye, 11, 1 + 4 * look.brow, fill=hair)
    _ellipse(
        draw,
        89,
        122 + 6 * look.nose,
        4 + 4 * look.nose,
        10 + 8 * look.nose,
        fill=_colour(0.25 + 0.5 * look.skin, (1.0, 0.8, 0.7)),
    )
    _ellipse(
        draw,
        89,
        155,
        12 + 12 * look.mouth,
        3 + 5 * look.lips + 3 * smile,
        fill=_colour(0.3 + 0.3 * look.lips, (1.0, 0.4, 0.4)),
    )


def _light(pixels: Floats, *, rng: np.random.Generator) -> Pixels:
    """Shine on a picture from one side, and add the noise of a camera."""
    down, across = np.mgrid[-1.0:1.0:218j, -1.0:1.0:178j]
    side = rng.normal(0.0, 0.12, size=2)
    gain = rng.uniform(0.8, 1.2) + side[0] * down + side[1] * across
    noise = rng.normal(0.0, 10.0, size=(218, 178, 1))
    return np.clip(pixels * gain[..., None] + noise, 0.0, 255.0).astype(np.uint8)


def _colour(tone: float, tint: tuple[float, float, float]) -> Colour:
    red, green, blue = (int(255 * tone * part) for part in tint)
    return red, green, blue


def _ellipse(
    draw: Any, across: float, down: float, wide: float, high: float, *, fill: Colour
) -> None:
    draw.ellipse((across - wide, down - high, across + wide, down + high), fill=fill)
