"""Datasets by name: each module has one `load`, which reads files into an environment."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from lab.experiments.environment import Environment

_HOMES = {
    "h1": "synthetic",
    "h1b": "synthetic",
    "h2": "synthetic",
    "h3": "synthetic",
    "procedural": "procedural",
    "bibtex": "bibtex",
    "celeba": "celeba",
    "omniglot": "omniglot",
    "openbandit": "openbandit",
    "movielens": "movielens",
    "the-movies": "the_movies",
    "table": "table",
    "sines": "continuum",
    "branin": "continuum",
    "hartmann6": "continuum",
}
NAMES = tuple(_HOMES)


def load(name: str, *, data: Path | None = None, seed: int = 0, **options: Any) -> Environment:
    """Make the environment of a dataset; `data` is the folder that holds its files."""
    known_name("dataset", name, NAMES)
    home = _HOMES[name]
    make = import_module(f"lab.experiments.datasets.{home}").load
    known = [p for p in inspect.signature(make).parameters if p not in ("name", "data", "seed")]
    for option in options:
        if option not in known:
            raise SettingError(
                f"The dataset {name} takes the options {', '.join(known) or '(none)'}: got "
                f"{option!r}. Leave it out."
            )
    environment: Environment = make(name=name, data=data, seed=seed, **options)
    return environment
