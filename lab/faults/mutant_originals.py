"""Saved bandits of many kinds to be changed, and what each is asked once it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse

FROZEN = "frozen "
_ARMS, _COUNT = 60, 30
_SETTINGS = """\
format = 1
base = "default"

[training.reward]
iterations = 8
batch = 16

[training.generator]
iterations = 4
batch = 16
pairs = 32
sample = 16
"""
_KINDS: Mapping[str, dict[str, Any]] = {
    "generator": {"posterior": "last-layer", "search": "generator"},
    "many": {"posterior": "last-layer", "search": "generator", "arms": 900},
    "large": {"posterior": "last-layer", "search": "generator", "arms": 9_000},
    "auto": {},
    "ascent": {"posterior": "gradient", "exploration": "ucb", "search": "ascent"},
    "dropout": {"posterior": "dropout", "search": "generator"},
    "heads": {"posterior": "bootstrap", "search": "exhaustive"},
    "effects": {"posterior": "arm-effects", "search": "exhaustive", "context": "ids"},
    "sparse": {"posterior": "last-layer", "search": "generator", "context": "sparse"},
    "first": {"version": 0},
}
_DTYPES = {"generator": "int8", "ascent": "int16"}
ORIGINALS = (
    *(name for name in _KINDS if name != "large"),  # which takes long
    *(f"{FROZEN}{name}" for name in _KINDS),
)


def make_original(name: str, folder: Path) -> None:
    """Save a bandit, or a frozen one, that learned a little."""
    from fastbandit.bandit import Bandit

    kind = name.removeprefix(FROZEN)
    terms = dict(_KINDS[kind])
    arms, version = terms.pop("arms", _ARMS), terms.pop("version", 1)
    seen, contexts = _contexts(terms.pop("context", "dense"))
    preset = folder.with_suffix(".toml")
    preset.write_text(_SETTINGS, encoding="utf-8")
    rng = np.random.default_rng(0)
    bandit = Bandit(
        arms=rng.standard_normal((arms, 3), dtype=np.float32),
        ids=[f"arm {row}" for row in range(arms)],
        columns={"price": np.arange(arms), "colour": ["red", "blue"] * (arms // 2)},
        context=seen,
        reward="real",
        preset=str(preset),
        progress=False,
        **terms,
    )
    if version:
        taken = [f"arm {row}" for row in rng.integers(arms, size=_COUNT)]
        bandit.update(contexts=contexts, arms=taken, rewards=rng.random(_COUNT))
    if name.startswith(FROZEN):
        frozen = bandit.freeze(dtype=_DTYPES.get(kind, "float32"))
        frozen.add_arms(rng.standard_normal((2, 3)), ids=["new", "newer"], columns=_NEW)
        frozen.discard_arms(["arm 1"])
        frozen.save(folder)
    else:
        bandit.save(folder)


_NEW = {"price": [1, 2], "colour": ["red", "green"]}


def _contexts(kind: str) -> tuple[Any, Any]:
    """Return a kind of contexts, and some of them."""
    from scipy.sparse import random

    rng = np.random.default_rng(1)
    numbers = rng.standard_normal((_COUNT, 4), dtype=np.float32)
    if kind == "sparse":
        return Sparse(20), random(_COUNT, 20, density=0.3, random_state=1, format="csr")
    if kind == "ids":
        return FeaturesAndIds(Dense(4), Ids(9)), (numbers, np.arange(_COUNT) % 9)
    return 4, numbers


def ask(name: str, folder: Path) -> list[list[Any]]:
    """Load a folder, and let it decide in every way that a service asks for.

    Returns the arms that it chose: three for each of two contexts, then one each time.
    """
    from fastbandit.bandit import Bandit
    from fastbandit.runtime.frozen import FrozenBandit

    kind = _KINDS[name.removeprefix(FROZEN)]
    contexts = _contexts(kind.get("context", "dense"))[1]
    some = tuple(part[:2] for part in contexts) if isinstance(contexts, tuple) else contexts[:2]
    one = tuple(part[:1] for part in contexts) if isinstance(contexts, tuple) else contexts[:1]
    is_frozen = name.startswith(FROZEN)
    bandit: Any = FrozenBandit.load(folder) if is_frozen else Bandit.load(folder, progress=False)
    chosen = [list(arms) for arms in bandit.select(some, k=3).arms]
    chosen.append(list(bandit.select(one, eligible=["arm 0", "arm 2"]).arms))
    cheap_and_red = {"colour": "red", "price": {"<": 30}}
    chosen.append(list(bandit.select(one, eligible=cheap_and_red).arms))
    if is_frozen:
        chosen.append([bandit.select_one(contexts[0] if kind.get("context") is None else one).arm])
        bandit.propensities(contexts[0] if kind.get("context") is None else one, draws=4)
        bandit.discard_arms(["arm 3"])
    return chosen
