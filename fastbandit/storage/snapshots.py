"""A bandit saved whole: safetensors for the numbers, JSON for the rest, no pickle.

How the folder is written and checked: see `fastbandit.files.manifest`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.columns import Columns
from fastbandit.arms.frame import Frame
from fastbandit.arms.ids import IdTable
from fastbandit.arms.rows import ArmRows
from fastbandit.errors import SnapshotError
from fastbandit.features.rewards import Weights, combined
from fastbandit.files.array_specs import ArraySpec, check_array
from fastbandit.files.json_ids import id_from_json, id_to_json
from fastbandit.files.manifest import BANDIT, read_arrays, write_arrays
from fastbandit.files.mapped import Arrays
from fastbandit.interfaces import Exploration, FittedSearch, LearnsToSearch, Search
from fastbandit.policy import Policy
from fastbandit.score import Affine, Candidates
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.parts import Modules, read, write
from fastbandit.training.update import embed
from fastbandit.types import Inputs, Interactions

_FRAME = {"vectors": "rows dim", "centre": "embedding", "axes": "dim embedding"}
_FRAME |= {"inverse": "embedding dim"}
FORMAT = 3
OLDER = (2,)
_OUTCOMES = "history.outcomes."
_WHOLE = re.compile(r"(?<![\d.e-])\d+(?![\d.e])")


@dataclass(frozen=True)
class Saved:
    """What a snapshot holds, once its parts are built again."""

    blueprint: Blueprint
    policy: Policy
    history: Interactions | None
    version: int
    decisions: int
    pending: int = 0
    """So many of the last interactions were observed since the last update."""
    in_log: InLog | None = None
    """What was learned besides, and is not in the snapshot."""


@dataclass(frozen=True, eq=False)
class InLog:
    """Interactions that a version learned from the log of a service, where they stay.

    They come after its own history. An arm that changed took a new row: `rows` are such old ones,
    and of each the key of the last interaction that was learned as that arm's (`last`).
    """

    count: int
    rows: NDArray[np.int64]
    last: NDArray[np.int64]


def save_snapshot(saved: Saved, folder: Path) -> None:
    """Write a snapshot into a folder, in place of the one it holds."""
    arrays, notes = _write_policy(saved.policy)
    if saved.history is not None:
        arrays |= _write_history(saved.history)
    plan = write(saved.blueprint)
    described = {"blueprint": plan, "version": saved.version, "decisions": saved.decisions, **notes}
    if saved.pending:
        described["pending"] = saved.pending
    if saved.in_log is not None:
        described["in_log"] = saved.in_log.count
        arrays |= {"in_log.rows": saved.in_log.rows, "in_log.last": saved.in_log.last}
    write_arrays(folder, arrays, described, kind=BANDIT, format=FORMAT)


def load_snapshot(folder: Path, *, device: str, modules: Modules = ()) -> Saved:
    """Read a snapshot, or say why it cannot be trusted.

    Parts from outside the package are imported from these modules alone.
    """
    manifest, mapped = read_arrays(folder, kind=BANDIT, format=FORMAT, older=OLDER)
    arrays = {name: array.copy() for name, array in mapped.items()}
    try:
        plan: Blueprint = read(manifest["blueprint"], modules=modules)
        if not isinstance(plan.search, Search) or not isinstance(plan.exploration, Exploration):
            raise ValueError(f"search {plan.search!r}, exploration {plan.exploration!r}")
        version, decisions = int(manifest["version"]), int(manifest["decisions"])
        held = max(2**16, sum(array.size for array in arrays.values()))
        for kind in (plan.context, plan.arm):
            if not 0 <= int(getattr(kind, "dim", 0)) <= held:  # before there is room for it
                raise ValueError(f"{kind} of {held} numbers")
        _check_room(plan, held)
        model = plan.model(device=device)
        arms = _read_box_or_catalogue(manifest, arrays, device=device)
        model.load_state_dict(_read_tensors("model", arrays))
        if isinstance(arms, BoxSpace) and version > 0:
            arms = embed(arms, model)
        if isinstance(arms, Catalogue) and version > 0 and arms.vectors is None:
            raise ValueError(f"version {version} of arms that were never embedded")
        search, notes = plan.search, manifest.get("generator")
        if isinstance(search, LearnsToSearch) and notes:
            tensors = _read_tensors("generator", arrays)
            search = search.restored({name: one.to(device) for name, one in tensors.items()}, notes)
        policy = Policy(model, plan.exploration, search, arms)
        history = _read_history(arrays, plan.weights) if "history.rewards" in arrays else None
        in_log = None
        if "in_log" in manifest:
            in_log = InLog(int(manifest["in_log"]), arrays["in_log.rows"], arrays["in_log.last"])
        pending = int(manifest.get("pending", 0))
        _check_counts(version, decisions, pending, history)
        if version > 0 and history is not None and len(history):
            _check_score(policy, history.contexts.take(slice(0, 1)))
    except ImportError:  # of a part from elsewhere
        raise
    except Exception as error:  # whatever reading it brings, it is not what was written
        raise SnapshotError(
            f"The snapshot in {folder} does not fit together ({type(error).__name__}: {error}). "
            f"Load an older copy."
        ) from error
    return Saved(plan, policy, history, version, decisions, pending, in_log)


def _write_policy(policy: Policy) -> tuple[Arrays, dict[str, Any]]:
    arrays = _write_tensors("model", policy.model.state_dict())
    notes: dict[str, Any] = {}
    if isinstance(policy.search, FittedSearch):
        tensors, notes["generator"] = policy.search.state()
        arrays |= _write_tensors("generator", tensors)
    if isinstance(policy.arms, BoxSpace):
        notes["box"] = write(policy.arms.box)
        return arrays, notes
    catalogue = policy.arms
    arrays |= _write_inputs("arms", catalogue.features)
    arrays["arms.alive"] = catalogue.live
    notes["ids"] = None if catalogue.table.is_numbered else [id_to_json(i) for i in catalogue.table]
    columns = catalogue.rows.columns
    if columns is not None:
        notes["columns"] = columns.notes()
        arrays |= {f"columns.{name}": array for name, array in columns.arrays().items()}
    if catalogue.vectors is not None and catalogue.frame is not None and catalogue.lookup:
        arrays["arms.vectors"] = _array(catalogue.vectors)
        arrays["arms.indexed"] = catalogue.lookup.rows
        arrays["arms.centre"] = _array(catalogue.frame.to_embedding.centre)
        arrays["arms.axes"] = _array(catalogue.frame.to_embedding.axes)
        arrays["arms.inverse"] = _array(catalogue.frame.inverse)
    return arrays, notes


def _read_box_or_catalogue(
    manifest: dict[str, Any], arrays: Arrays, *, device: str
) -> Catalogue | BoxSpace:
    if "box" in manifest:
        return BoxSpace(read(manifest["box"]))
    features, live = _read_inputs("arms", arrays), arrays["arms.alive"]
    ids = manifest["ids"]
    listed = list(range(len(live))) if ids is None else [id_from_json(id) for id in ids]
    columns = None
    if "columns" in manifest:  # bandits were saved without columns once
        values = {name: arrays[f"columns.{name}"] for name in manifest["columns"]}
        columns = Columns.restored(manifest["columns"], values, rows=len(live))
    sizes = {"rows": len(live), **_sizes_of(features)}
    _check("alive", live, "rows", "bool", sizes)
    if not live.any() or not len(listed) == len(features) == len(live):
        raise ValueError(f"{len(live)} rows, {len(features)} of features and {len(listed)} ids")
    catalogue = Catalogue(ArmRows(IdTable.restored(listed), live, features, columns))
    if "arms.vectors" not in arrays:
        return catalogue
    axes, indexed = arrays["arms.axes"], arrays["arms.indexed"]
    sizes |= {"dim": axes.shape[0], "embedding": axes.shape[1], "indexed": len(indexed)}
    for name, shape in _FRAME.items():
        _check(name, arrays[f"arms.{name}"], shape, "float32", sizes)
    _check("indexed", indexed, "indexed", "int64", sizes, below="rows")
    if not len(indexed) or len(np.unique(indexed)) != len(indexed):
        raise ValueError("indexed names a row twice, or none")
    to_embedding = Affine(*(_tensor(arrays[f"arms.{name}"], device) for name in ("centre", "axes")))
    frame = Frame(to_embedding, _tensor(arrays["arms.inverse"], device))
    return catalogue.restored(frame, _tensor(arrays["arms.vectors"], device), indexed)


def _check(
    name: str, array: Any, shape: str, dtype: str, sizes: dict[str, int], *, below: str = ""
) -> None:
    least = 0 if below else None
    check_array(name, array, ArraySpec(tuple(shape.split()), (dtype,), least, below, True), sizes)


def _sizes_of(inputs: Inputs) -> dict[str, int]:
    """Return how wide rows of features are, or raise ValueError where they are none."""
    dense, ids = inputs.dense, inputs.ids
    if dense is not None and (dense.dtype != np.float32 or not np.isfinite(dense).all()):
        raise ValueError(f"features of {dense.dtype} that are no finite numbers")
    if ids is not None and (ids.dtype != np.int64 or ids.ndim != 1 or (ids < 0).any()):
        raise ValueError(f"ids of shape {ids.shape} of {ids.dtype}")
    lengths = {part.shape[0] for part in (dense, inputs.sparse, ids) if part is not None}
    if len(lengths) != 1:
        raise ValueError(f"features of {lengths} rows")
    return {"columns": 0 if dense is None else dense[:1].size}


def _check_room(plan: Blueprint, held: int) -> None:
    """Raise ValueError where a model would be far larger than what is there to fill it."""
    kinds = [plan.context, plan.arm], [plan.network, plan.posterior]
    inputs, width = (max(1, *map(int, _WHOLE.findall(repr(one)))) for one in kinds)
    if 3 * width * max(3 * width, inputs) <= 2**24:  # a posterior may hold a square of them
        return
    with suppress(RuntimeError), torch.device("meta"):  # takes no memory; not all parts can
        model = plan.model(device="meta")
        size = sum(one.numel() for one in chain(model.parameters(), model.buffers()))
        if size > 2 * held:
            raise ValueError(f"a model of {size:,} numbers, and {held:,} in all arrays")


@torch.no_grad()
def _check_score(policy: Policy, context: Inputs) -> None:
    """Raise unless the model scores an arm for a context that it learned."""
    score = policy.score(context, seeds=np.zeros(1, dtype=np.uint64))
    if isinstance(policy.arms, Catalogue):
        row = torch.from_numpy(policy.arms.rows.live_rows[:1])[None]
        score.of(Candidates(row, policy.arms.at(row)))


def _check_counts(version: int, decisions: int, pending: int, history: Interactions | None) -> None:
    learned = 0 if history is None else len(history)
    if version < 0 or not 0 <= decisions < 2**62 or not 0 <= pending <= learned:
        raise ValueError(f"version {version}, {decisions} decisions, {pending} pending")


def _write_history(history: Interactions) -> Arrays:
    contexts = _write_inputs("history.contexts", history.contexts)
    arms = _write_inputs("history.arms", history.arms)
    extra = {"weights": history.weights, "rows": history.rows}
    some: Arrays = {f"history.{name}": array for name, array in extra.items() if array is not None}
    some |= {f"{_OUTCOMES}{name}": array for name, array in (history.outcomes or {}).items()}
    return {**contexts, **arms, "history.rewards": np.nan_to_num(history.rewards), **some}


def _read_history(arrays: Arrays, reward_weights: Weights) -> Interactions:
    both = _read_inputs("history.contexts", arrays), _read_inputs("history.arms", arrays)
    rewards, weights, rows = (arrays.get(f"history.{n}") for n in ("rewards", "weights", "rows"))
    assert rewards is not None
    sizes = {"learned": len(rewards)}
    _check("rewards", rewards, "learned", "float32", sizes)
    if weights is not None:
        _check("weights", weights, "learned", "float64", sizes)
    if rows is not None:
        _check("rows", rows, "learned", "int64", sizes)
    if not len(both[0]) == len(both[1]) == len(rewards):
        raise ValueError(f"{len(both[0])} contexts and {len(both[1])} arms of {len(rewards)}")
    for inputs in both:
        _sizes_of(inputs)
    if not reward_weights:
        return Interactions(*both, rewards, weights, rows)
    names = [name.removeprefix(_OUTCOMES) for name in arrays if name.startswith(_OUTCOMES)]
    outcomes = {name: arrays[f"{_OUTCOMES}{name}"] for name in names}
    for name, values in outcomes.items():
        known = np.where(np.isnan(values), np.float32(0), values)
        _check(f"outcome {name}", known, "learned", "float32", sizes)
    rewards = combined(outcomes, reward_weights, count=len(rewards))
    return Interactions(*both, rewards, weights, rows, outcomes)


def _write_inputs(name: str, inputs: Inputs) -> Arrays:
    arrays = {"dense": inputs.dense, "ids": inputs.ids}
    if inputs.sparse is not None:
        arrays["sparse.data"] = inputs.sparse.data
        for part in ("indices", "indptr", "shape"):
            arrays[f"sparse.{part}"] = np.asarray(getattr(inputs.sparse, part), dtype=np.int64)
    return {f"{name}.{key}": array for key, array in arrays.items() if array is not None}


def _read_inputs(name: str, arrays: Arrays) -> Inputs:
    sparse = None
    if f"{name}.sparse.data" in arrays:
        from scipy.sparse import csr_matrix

        parts = (arrays[f"{name}.sparse.{part}"] for part in ("data", "indices", "indptr"))
        sparse = csr_matrix(tuple(parts), shape=tuple(arrays[f"{name}.sparse.shape"].tolist()))
        sparse.check_format(full_check=True)
    return Inputs(arrays.get(f"{name}.dense"), sparse, arrays.get(f"{name}.ids"))


def _write_tensors(name: str, tensors: dict[str, Tensor]) -> Arrays:
    return {f"{name}:{key}": _array(tensor) for key, tensor in tensors.items()}


def _read_tensors(name: str, arrays: Arrays) -> dict[str, Tensor]:
    mine = [key for key in arrays if key.startswith(f"{name}:")]
    return {key.split(":", 1)[1]: torch.from_numpy(arrays[key]) for key in mine}


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    return tensor.detach().cpu().numpy()


def _tensor(array: np.ndarray[Any, Any], device: str) -> Tensor:
    return torch.from_numpy(array).to(device)
