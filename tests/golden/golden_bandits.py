"""Bandits that can be built again anywhere, and what is recorded of their decisions."""

from __future__ import annotations

import base64
import hashlib
import platform
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit import Bandit, Decision, FastbanditError

RECORDED = Path(__file__).parent / "decisions.json"
QUICK_TRAINING = Path(__file__).parent / "quick_training.toml"
COUNT = 1_000
TRAINED = 200
EVERY = 10
"""One score in so many is kept."""

QUICK = {
    "ts-exhaustive-600-4",
    "ts-ascent-600-4",
    "ts-generator-600-4",
    "ts-exhaustive-600-16",
    "ts-generator-600-16",
    "ts-generator-20000-4",
    "ucb-exhaustive-600-4",
    "ucb-generator-600-4",
}
"""What is compared each time; the rest is slow, by itself or all together."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Combination:
    """How a bandit explores and searches, and among how many arms of how many features."""

    explore: str
    search: str
    arms: int
    dim: int

    @property
    def name(self) -> str:
        """The name under which its decisions are recorded."""
        return f"{self.explore}-{self.search}-{self.arms}-{self.dim}"

    @property
    def is_slow(self) -> bool:
        """Whether it is left to the long run; one or more of each kind are in the short one."""
        return self.name not in QUICK

    @property
    def torch_decisions(self) -> int:
        """How many decisions torch makes: fewer where each of them takes long."""
        is_bound = (self.explore, self.search) == ("ucb", "exhaustive")
        return 100 if is_bound and self.arms > 1_000 else COUNT

    @property
    def alike(self) -> float:
        """The share of decisions that are the same where another machine learned other weights.

        What a generator learns of bounds over few features depends on their last digits: it then
        proposes others of nearly the same score (.834 of 1,000, measured on two machines).
        """
        return 0.8 if (self.explore, self.search, self.dim) == ("ucb", "generator", 4) else 0.98


COMBINATIONS = [
    Combination(explore, search, arms, dim)
    for arms, dim, explore, search in product(
        (600, 20_000), (4, 16), ("ts", "ucb"), ("exhaustive", "ascent", "generator")
    )
]


# -- building


def taught_bandit(combination: Combination) -> Bandit:
    """Give a bandit after one short update."""
    dim = combination.dim
    features = _normal(combination.arms, dim, seed=[combination.arms, dim, 1])
    contexts = _normal(TRAINED, dim, seed=[combination.arms, dim, 2])
    bandit = Bandit(
        arms=features,
        ids=[id_of(row) for row in range(combination.arms)],
        context=dim,
        reward="real",
        exploration=combination.explore,
        search=combination.search,
        posterior="neural",
        preset=QUICK_TRAINING,
        seed=3,
        progress=False,
    )
    taken = bandit.select(contexts)
    rewards = (contexts * features[taken.rows[:, 0]]).sum(axis=1) / dim
    bandit.update(contexts=contexts, arms=taken.arms, rewards=rewards)
    return bandit


def id_of(row: int) -> str:
    """Give the id of the arm in a row."""
    return f"arm {row}"


def weights_of(bandit: Bandit) -> str:
    """Give a hash of all that was learned; names are left out, as they may change.

    So is what numbers are cut to, which came after the first records and cuts none of theirs.
    """
    digest = hashlib.sha256()
    generator = getattr(bandit.policy.search, "generator", None)
    for module in (bandit.policy.model, generator):
        for name, tensor in () if module is None else module.state_dict().items():
            if name.endswith(("standardise.low", "standardise.high")):
                continue
            array = tensor.detach().cpu().numpy()
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def machine() -> str:
    """Name what rounds: on machines of the same name the same weights are learned."""
    described = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        lines = cpu.read_text(encoding="utf-8").splitlines()
        told = [
            line.partition(":")[2] for line in lines if line.startswith(("model name", "flags"))
        ]
        described = hashlib.sha256("".join(sorted(set(told))).encode()).hexdigest()[:16]
    capability = torch.backends.cpu.get_cpu_capability()
    versions = f"torch {torch.__version__}, numpy {np.__version__}"
    return f"{described} {capability}, {versions}, {torch.get_num_threads()} threads"


@contextmanager
def deciding_by_torch() -> Iterator[None]:
    """Let torch decide however many arms there are, and not its compiled twin."""
    with patch.object(Bandit, "_with_compiled", lambda bandit: (bandit._state, None)):
        yield


# -- recording


def record_of(combination: Combination) -> Record:
    """Build a bandit and let it decide, by torch and frozen; give what is kept of that."""
    bandit = taught_bandit(combination)
    contexts = _normal(COUNT, combination.dim, seed=[combination.arms, combination.dim, 3])
    record: Record = {"weights": weights_of(bandit), "machine": machine()}
    try:
        frozen = bandit.freeze()  # before torch decides: both then go on with the same seeds
        record["frozen"] = _kept(frozen.select(contexts, threads=1))
    except FastbanditError as error:
        record["frozen"] = {"error": type(error).__name__}
    with deciding_by_torch():
        record["torch"] = _kept(bandit.select(contexts[: combination.torch_decisions]))
    if combination.torch_decisions < COUNT:
        record["note"] = f"torch is slow here: {combination.torch_decisions} decisions, not {COUNT}"
    return record


def rows_of(kept: Record) -> NDArray[np.int32]:
    """Give the rows that a record keeps."""
    return np.frombuffer(zlib.decompress(base64.b64decode(kept["rows"])), dtype="<i4")


def _kept(decision: Decision) -> Record:
    rows = decision.rows[:, 0].astype("<i4")
    scores, seeds = decision.scores[:, 0], decision.seeds.astype("<u8")
    return {
        "count": len(decision),
        "seeds": [int(seeds[0]), int(seeds[-1]), hashlib.sha256(seeds.tobytes()).hexdigest()],
        "rows": base64.b64encode(zlib.compress(rows.tobytes(), 9)).decode(),
        "arms": hashlib.sha256("\n".join(map(str, decision.arms)).encode()).hexdigest(),
        "scores": [float(f"{score:.7g}") for score in scores[::EVERY]],
        "mean_score": float(f"{scores.mean(dtype=np.float64):.7g}"),
        "evaluations": int(decision.evaluations.sum()),
        "lookups": int(decision.lookups.sum()),
        "version": decision.version,
        "uniform": decision.uniform,
    }


def _normal(count: int, dim: int, *, seed: list[int]) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


# -- comparing


def compare(name: str, wanted: Record, got: Record, *, alike: float = 0.98) -> None:
    """Raise where decisions are not those that were recorded, and say which is the first.

    Of other weights, learned on another machine, a share of the decisions is to be `alike`.
    """
    is_same = wanted["weights"] == got["weights"]
    assert is_same or wanted["machine"] != got["machine"], (
        f"{name}: other weights were learned on the same machine: wanted {wanted['weights']}, "
        f"got {got['weights']}"
    )
    for way in ("torch", "frozen"):
        _compare_way(f"{name}, {way}", wanted[way], got[way], alike=None if is_same else alike)


def _compare_way(name: str, wanted: Record, got: Record, *, alike: float | None) -> None:
    is_exact = alike is None
    _compare_keys(name, wanted, got, ("error", "count", "seeds", "version", "uniform"))
    if "error" in wanted:
        return
    _compare_rows(name, rows_of(wanted), rows_of(got), share=1.0 if alike is None else alike)
    _compare_scores(name, wanted, got, rtol=1e-5 if is_exact else 1e-2)
    if is_exact:
        _compare_keys(name, wanted, got, ("arms", "evaluations", "lookups"))


def _compare_keys(name: str, wanted: Record, got: Record, keys: tuple[str, ...]) -> None:
    for key in keys:
        one, other = wanted.get(key), got.get(key)
        assert one == other, f"{name}: {key}: wanted {one}, got {other}"


def _compare_rows(
    name: str, wanted: NDArray[np.int32], got: NDArray[np.int32], *, share: float
) -> None:
    places = np.flatnonzero(wanted != got)
    if 1 - len(places) / len(wanted) >= share:
        return
    first = int(places[0])
    raise AssertionError(
        f"{name}: {len(places)} of {len(wanted)} decisions differ, the first is decision {first}: "
        f"wanted {id_of(wanted[first])!r} (row {wanted[first]}), got {id_of(got[first])!r} "
        f"(row {got[first]})"
    )


def _compare_scores(name: str, wanted: Record, got: Record, *, rtol: float) -> None:
    """Compare the mean, and the scores that were kept where the arm is the same."""
    is_same = (rows_of(wanted) == rows_of(got))[::EVERY]
    one = np.array([wanted["mean_score"], *wanted["scores"]])
    other = np.array([got["mean_score"], *got["scores"]])
    is_far = ~np.isclose(other, one, rtol=rtol, atol=rtol / 10) & np.array([True, *is_same])
    if not is_far.any():
        return
    first = int(np.flatnonzero(is_far)[0])
    which = f"decision {(first - 1) * EVERY}" if first else "all decisions (their mean)"
    raise AssertionError(
        f"{name}: the score of {which} differs: wanted {one[first]}, got {other[first]}"
    )
