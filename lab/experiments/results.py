"""Result files: one a run, whose path is its key, and what they amount to over seeds."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit import __version__
from fastbandit.errors import DataError
from fastbandit.files.atomic import write_atomic
from lab.experiments.policies import NAMES, NEURAL

FORMAT = 1
TRAINING = "Training time"
"""Stands for the policy where GANBandit's updates are timed by those of Exhaust."""
FEW_ARMS = 1_000
"""So many arms the product's default scans by Thompson sampling: a search saves nothing there."""
REAL_FACES = "pictures of CelebA itself"
"""What a result notes where the faces are the real ones; without it they are drawn."""
DRAWN_FACES = "drawn-faces"
"""The dataset in place of celeba where the faces are drawn ones."""


@dataclass(frozen=True)
class Key:
    """What a run is a function of, beside the code: all that names its result file.

    `options` are plain values that the dataset takes, in any order. `preset` is a name, or
    the path of a file of settings. A dataset with fewer than `rounds` rounds is played to its
    end.
    """

    dataset: str
    options: Mapping[str, bool | int | float | str] = field(hash=False)
    policy: str
    preset: str
    rounds: int
    batch: int
    seed: int
    device: str = "cpu"

    def path(self, folder: Path) -> Path:
        """Return the file of this run's result; two keys never share one."""
        policy = self.policy.lower().replace(" ", "-")
        if self.policy not in (*NAMES, TRAINING):
            policy = _hashed(policy, self.policy)
        preset = self.preset
        if not re.fullmatch(r"[a-z]+(-[a-z]+)*", preset):
            preset = _hashed(Path(preset).stem, preset)
        name = f"{preset}-t{self.rounds}-b{self.batch}-seed{self.seed}"
        device = "" if self.device == "cpu" else f"-{_device_slug(self.device)}"
        return folder / setting_name(self.dataset, self.options) / policy / f"{name}{device}.json"


def setting_name(dataset: str, options: Mapping[str, bool | int | float | str]) -> str:
    """Return the folder's name of a dataset with options: h1-arms10000-dim4."""
    ordered = sorted(options.items())
    name = "-".join([dataset, *(_option_slug(*option) for option in ordered)])
    is_plain = all(_is_plain(*option) for option in ordered)
    is_plain &= re.fullmatch(r"[a-z0-9]+(-[a-z]+)*", dataset) is not None
    return name if is_plain else _hashed(name, [dataset, ordered])


def _option_slug(name: str, value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{name}{value}" if is_number else f"{name}={value}".lower()


def _is_plain(name: str, value: object) -> bool:
    """Say whether an option reads back from its slug in one way only."""
    if not re.fullmatch(r"[a-z_]+", name):
        return False
    if isinstance(value, str):
        return value not in ("true", "false") and bool(re.fullmatch(r"[a-z][a-z0-9_]*", value))
    is_number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(value)) is not None
    return isinstance(value, bool) or is_number


def _device_slug(device: str) -> str:
    is_plain = re.fullmatch(r"[a-z]+(:[0-9]+)?", device)
    return device.replace(":", "") if is_plain else _hashed(device, device)


def _hashed(name: str, content: Any) -> str:
    """Make a name of safe characters that no other content and no plain name has."""
    safe = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:40].strip("-.")
    text = json.dumps(content, sort_keys=True)
    return f"{safe}--{hashlib.sha256(text.encode()).hexdigest()[:16]}"


# -- files


def write_result(path: Path, kind: str, key: Key, found: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a run found, whole or not at all, and return it as it would be read."""
    result = {"format": FORMAT, "kind": kind, **asdict(key), **found}
    result |= {"version": __version__, "commit": code_commit()}
    text = json.dumps(result, indent=1, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, text)
    return dict(json.loads(text))


def keep_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result that was made elsewhere, unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_beside(path, json.dumps(result, indent=1, allow_nan=False))


def write_beside(path: Path, text: str) -> None:
    """Write a file beside its place, then rename it."""
    write_atomic(path, text.encode(), sync=False)


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Read all results below a folder, of whatever kind, in the order of their paths."""
    if not folder.is_dir():
        raise DataError(
            f"Results need to lie in a folder: {folder} is none. Make them with `python "
            f"-m lab experiment run`, or name another folder."
        )
    return [read_result(path) for path in sorted(folder.rglob("*.json"))]


def read_result(path: Path) -> dict[str, Any]:
    """Read one result file."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"The result file {path} cannot be read: {error}. Remove it and run that again."
        ) from error
    found = result.get("format") if isinstance(result, dict) else None
    if found != FORMAT:
        raise DataError(
            f"A result file needs to have format {FORMAT}: {path} has {found}. Remove it and "
            f"run that again."
        )
    return dict(result)


@cache
def code_commit() -> str | None:
    """Return the commit of this code, with "-dirty" where it changed since; None outside git."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "fastbandit/__init__.py")
        commit = git("rev-parse", "HEAD")
        return (
            f"{commit}-dirty" if git("status", "--porcelain", "--", "fastbandit", "lab") else commit
        )
    except (OSError, subprocess.CalledProcessError):
        return None


# -- what a result is really of


def data_of(result: Mapping[str, Any]) -> str:
    """Return the dataset that a result is really of: faces are drawn unless it notes otherwise."""
    notes = (*(result.get("notes") or ()), *(result.get("data_notes") or ()))
    is_real = result["dataset"] != "celeba" or REAL_FACES in notes
    return str(result["dataset"]) if is_real else DRAWN_FACES


def is_simulated(dataset: str, options: Mapping[str, Any]) -> bool:
    """Return whether rewards come from a model that was fitted to a log, not from the log."""
    return dataset == "openbandit" and options.get("mode", "simulator") == "simulator"


def is_scan(policy: str, *, arms: int | None, evaluations: float | None) -> bool:
    """Return whether a search that may miss arms scored as many as there are: its q says nothing.

    That is so for few arms alone, each of which may be scored more than once.
    """
    if arms is None or arms > FEW_ARMS or NEURAL.get(policy, ("", "exhaustive"))[1] == "exhaustive":
        return False
    return evaluations is None or evaluations >= arms


# -- over seeds

_GROUP = ("dataset", "options", "rounds", "batch", "preset", "device", "policy")


def summarise(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average the plays of each policy over the seeds; datasets in order.

    `share` is what was earned of the best possible, `of_exhaust` that share over the one of
    the exhaustive search with the same exploration, on the seeds that both have.
    """
    groups = _grouped(r for r in results if r["kind"] == "play")
    return [
        {
            **_named(runs[0]),
            "arms": runs[0]["arms"],
            "seeds": len(runs),
            "share": _mean(shares := [share_of(run) for run in runs]),
            "share_std": None if None in shares else float(np.std(_known(shares))),
            "of_exhaust": _of_exhaust(runs, groups),
            "lowest_quality": min(_known(run["quality"] for run in runs), default=None),
            **{measure: _mean(run[measure] for run in runs) for measure in _MEANS},
        }
        for runs in groups.values()
    ]


_MEANS = ("quality", "evaluations", "lookups", "select_seconds", "update_seconds")


def summarise_replays(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average the replayed logs of each policy over the seeds."""
    groups = _grouped(r for r in results if r["kind"] == "replay")
    return [
        {
            **_named(runs[0]),
            "seeds": len(runs),
            **{m: _mean(run[m] for run in runs) for m in ("matches", "mean", "low", "high")},
        }
        for runs in groups.values()
    ]


def training_ratios(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ratios of update times, GANBandit ÷ Exhaust, by exploration."""
    groups = _grouped(r for r in results if r["kind"] == "training")
    return [{**_named(run), **run["ratios"]} for runs in groups.values() for run in runs]


def share_of(result: dict[str, Any]) -> float | None:
    """Return what was earned of the best possible, where the best is more than nothing."""
    best = sum(result["best"])
    return sum(result["earned"]) / best if best > 0 else None


def _grouped(results: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Put the runs together that differ in nothing but the seed, policies in their order."""
    order = {name: position for position, name in enumerate(NAMES)}
    groups: dict[str, list[dict[str, Any]]] = {}
    ordered = sorted(results, key=lambda r: order.get(r["policy"], len(order)))
    for result in sorted(ordered, key=_dataset_order):
        groups.setdefault(_group_of(result), []).append(result)
    return groups


def _dataset_order(result: dict[str, Any]) -> tuple[Any, ...]:
    """Order by preset, dataset and options: numbers by size, before words."""
    options = [
        (name, isinstance(value, str), value) for name, value in sorted(result["options"].items())
    ]
    return result["preset"], result["dataset"], options


def _group_of(result: dict[str, Any], **changed: str) -> str:
    return _text([changed.get(name, value) for name, value in _named(result).items()])


def _named(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in _GROUP} | {"dataset": data_of(result)}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _of_exhaust(
    runs: Sequence[dict[str, Any]], groups: Mapping[str, list[dict[str, Any]]]
) -> float | None:
    policy = runs[0]["policy"]
    if policy not in NEURAL or not policy.endswith((" TS", " UCB")):
        return None
    yardstick = f"Exhaust {policy.split()[-1]}"
    theirs = {r["seed"]: share_of(r) for r in groups.get(_group_of(runs[0], policy=yardstick), ())}
    shares = [(share_of(run), theirs[run["seed"]]) for run in runs if run["seed"] in theirs]
    known = [(mine, best) for mine, best in shares if mine is not None and best is not None]
    total = sum(best for _, best in known)
    return sum(mine for mine, _ in known) / total if total > 0 else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return float(np.mean(known)) if known else None
