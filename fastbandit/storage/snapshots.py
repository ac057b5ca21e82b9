"""A bandit saved whole: safetensors for the numbers, JSON for the rest, no pickle.

A snapshot is a folder with `manifest.json` and one file of arrays that the manifest names
and vouches for (size and SHA-256). The arrays are written first, under a name of their own;
replacing the manifest is the one step that makes a snapshot current. So a folder holds
either the old snapshot or the new one, whatever happens in between.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save
from torch import Tensor

from fastbandit import blueprint as plans
from fastbandit.arms.box import Box
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.frame import Frame
from fastbandit.arms.ids import IdTable
from fastbandit.blueprint import Blueprint
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.interfaces import Affine
from fastbandit.policy import Policy
from fastbandit.search.generator import ArmGenerator, GeneratorSearch
from fastbandit.training.update import embed
from fastbandit.types import Inputs, Interactions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT = 1
_MANIFEST = "manifest.json"
_Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Saved:
    """What a snapshot holds, once its parts are built again."""

    blueprint: Blueprint
    policy: Policy
    history: Interactions | None
    version: int
    decisions: int


def save_snapshot(saved: Saved, folder: Path) -> None:
    """Write a snapshot into a folder, in place of the one it holds."""
    arrays, notes = _write_policy(saved.policy)
    if saved.history is not None:
        arrays |= _write_history(saved.history)
    payload = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    digest = hashlib.sha256(payload).hexdigest()
    manifest = {
        "format": FORMAT,
        "blueprint": plans.write(saved.blueprint),
        "version": saved.version,
        "decisions": saved.decisions,
        "arrays": {
            "file": f"arrays-{digest[:16]}.safetensors",
            "bytes": len(payload),
            "sha256": digest,
        },
        **notes,
    }
    manifest["sha256"] = _seal(manifest)
    text = json.dumps(manifest, indent=1, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    _write_file(folder / manifest["arrays"]["file"], payload)
    _write_file(folder / _MANIFEST, text.encode())
    for old in folder.glob("arrays-*.safetensors*"):
        if old.name != manifest["arrays"]["file"]:
            old.unlink(missing_ok=True)


def load_snapshot(folder: Path, *, device: str) -> Saved:
    """Read a snapshot, or say why it cannot be trusted."""
    manifest = _read_manifest(folder)
    arrays = _read_arrays(folder, manifest)
    try:
        plan: Blueprint = plans.read(manifest["blueprint"])
        version, decisions = int(manifest["version"]), int(manifest["decisions"])
        policy = _read_policy(plan, manifest, arrays, is_trained=version > 0, device=device)
        history = _read_history(arrays) if "history.rewards" in arrays else None
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise SnapshotError(
            f"The snapshot in {folder} does not fit together ({type(error).__name__}: {error}). "
            f"Load an older copy."
        ) from error
    return Saved(plan, policy, history, version, decisions)


# -- files


def _write_file(path: Path, payload: bytes) -> None:
    """Write beside, sync, rename, sync the folder."""
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        file.write(payload)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SnapshotError(
            f"A snapshot needs a {_MANIFEST}: found none in {folder}. Give the folder that "
            f"save() wrote."
        ) from error
    except (ValueError, OSError) as error:
        raise SnapshotError(
            f"The manifest {path} cannot be read ({error}). Load an older copy."
        ) from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise SnapshotError(
            f"This version reads snapshots of format {FORMAT}: {path} has format {found!r}. "
            f"Install the version of fastbandit that saved it, or a newer one."
        )
    if manifest.pop("sha256", None) != _seal(manifest):
        raise SnapshotError(
            f"The manifest {path} is not the one that was saved: its SHA-256 differs. Load an "
            f"older copy."
        )
    return dict(manifest)


def _seal(manifest: dict[str, Any]) -> str:
    """Give the hash of all that a manifest says."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_arrays(folder: Path, manifest: dict[str, Any]) -> _Arrays:
    """Read the arrays, after checking that they are the ones that were saved."""
    try:
        entry = manifest["arrays"]
        path = folder / Path(str(entry["file"])).name
        payload = path.read_bytes()
        wanted, size = str(entry["sha256"]), int(entry["bytes"])
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise SnapshotError(
            f"The arrays of the snapshot in {folder} cannot be read ({error}). Load an older copy."
        ) from error
    if len(payload) != size or hashlib.sha256(payload).hexdigest() != wanted:
        raise SnapshotError(
            f"The arrays of the snapshot are not the ones that were saved: {path} should have "
            f"{size} bytes with SHA-256 {wanted[:12]}…, and has {len(payload)} bytes. Load an "
            f"older copy."
        )
    try:
        return dict(load(payload))
    except SafetensorError as error:
        raise SnapshotError(f"The arrays in {path} cannot be parsed ({error}).") from error


# -- the policy


def _write_policy(policy: Policy) -> tuple[_Arrays, dict[str, Any]]:
    arrays = _write_tensors("model", policy.model.state_dict())
    notes: dict[str, Any] = {}
    if isinstance(policy.search, GeneratorSearch) and policy.search.generator is not None:
        generator = policy.search.generator
        arrays |= _write_tensors("generator", generator.state_dict())
        notes["generator"] = {"inputs": generator.inputs, "dim": generator.dim}
    if isinstance(policy.arms, Box):
        notes["box"] = plans.write(policy.arms)
        return arrays, notes
    catalogue = policy.arms
    arrays |= _write_inputs("arms", catalogue.features)
    arrays["arms.alive"] = catalogue.alive
    notes["ids"] = None if catalogue.table.is_numbered else [_write_id(i) for i in catalogue.table]
    if catalogue.vectors is not None and catalogue.frame is not None:
        arrays["arms.vectors"] = _array(catalogue.vectors)
        arrays["arms.indexed"] = np.asarray(catalogue.indexed)
        arrays["arms.centre"] = _array(catalogue.frame.place.centre)
        arrays["arms.axes"] = _array(catalogue.frame.place.axes)
        arrays["arms.inverse"] = _array(catalogue.frame.inverse)
    return arrays, notes


def _read_policy(
    plan: Blueprint, manifest: dict[str, Any], arrays: _Arrays, *, is_trained: bool, device: str
) -> Policy:
    model = plan.model(device=device)
    arms = _read_box_or_catalogue(manifest, arrays, device=device)
    model.load_state_dict(_read_tensors("model", arrays))
    if isinstance(arms, Box) and is_trained:
        arms = embed(arms, model)
    search = plan.search
    if isinstance(search, GeneratorSearch) and manifest.get("generator"):
        shape = manifest["generator"]
        generator = ArmGenerator(
            int(shape["inputs"]),
            int(shape["dim"]),
            heads=search.heads,
            hidden=search.hidden,
            bounded=search.bounded,
            rng=torch.Generator(),
        )
        generator.load_state_dict(_read_tensors("generator", arrays))
        search = replace(search, generator=generator.requires_grad_(False).to(device))
    return Policy(model, plan.exploration, search, arms)


def _read_box_or_catalogue(
    manifest: dict[str, Any], arrays: _Arrays, *, device: str
) -> Catalogue | Box:
    if "box" in manifest:
        box: Box = plans.read(manifest["box"])
        return box
    features, alive = _read_inputs("arms", arrays), arrays["arms.alive"]
    ids = manifest["ids"]
    listed = list(range(len(alive))) if ids is None else [_read_id(id) for id in ids]
    catalogue = Catalogue(IdTable.restored(listed), features, alive)
    if "arms.vectors" not in arrays:
        return catalogue
    place = Affine(*(_tensor(arrays[f"arms.{name}"], device) for name in ("centre", "axes")))
    frame = Frame(place, _tensor(arrays["arms.inverse"], device))
    return catalogue.restored(
        frame, _tensor(arrays["arms.vectors"], device), arrays["arms.indexed"]
    )


# -- values


def _write_history(history: Interactions) -> _Arrays:
    contexts = _write_inputs("history.contexts", history.contexts)
    arms = _write_inputs("history.arms", history.arms)
    return {**contexts, **arms, "history.rewards": history.rewards}


def _read_history(arrays: _Arrays) -> Interactions:
    contexts = _read_inputs("history.contexts", arrays)
    return Interactions(contexts, _read_inputs("history.arms", arrays), arrays["history.rewards"])


def _write_inputs(name: str, inputs: Inputs) -> _Arrays:
    arrays: _Arrays = {}
    if inputs.dense is not None:
        arrays[f"{name}.dense"] = inputs.dense
    if inputs.ids is not None:
        arrays[f"{name}.ids"] = inputs.ids
    if inputs.sparse is not None:
        matrix = inputs.sparse
        arrays[f"{name}.sparse.data"] = matrix.data
        arrays[f"{name}.sparse.indices"] = matrix.indices.astype(np.int64)
        arrays[f"{name}.sparse.indptr"] = matrix.indptr.astype(np.int64)
        arrays[f"{name}.sparse.shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays


def _read_inputs(name: str, arrays: _Arrays) -> Inputs:
    return Inputs(
        dense=arrays.get(f"{name}.dense"),
        sparse=_read_sparse(f"{name}.sparse", arrays) if f"{name}.sparse.data" in arrays else None,
        ids=arrays.get(f"{name}.ids"),
    )


def _read_sparse(name: str, arrays: _Arrays) -> csr_matrix:
    from scipy.sparse import csr_matrix

    parts = (arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"])
    return csr_matrix(parts, shape=tuple(arrays[f"{name}.shape"]))


def _write_tensors(name: str, tensors: dict[str, Tensor]) -> _Arrays:
    return {f"{name}:{key}": _array(tensor) for key, tensor in tensors.items()}


def _read_tensors(name: str, arrays: _Arrays) -> dict[str, Tensor]:
    mine = [key for key in arrays if key.startswith(f"{name}:")]
    return {key.split(":", 1)[1]: torch.from_numpy(arrays[key]) for key in mine}


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    return tensor.detach().cpu().numpy()


def _tensor(array: np.ndarray[Any, Any], device: str) -> Tensor:
    return torch.from_numpy(array).to(device)


def _write_id(id: Hashable) -> Any:
    """Turn an id into JSON: strings, numbers, and tuples of them."""
    if isinstance(id, str | int | float | bool):
        return id
    if isinstance(id, tuple):
        return {"tuple": [_write_id(item) for item in id]}
    raise SettingError(
        f"Ids that are saved need to be strings, numbers or tuples of them: got {id!r} of type "
        f"{type(id).__name__}. Give the arms such ids."
    )


def _read_id(written: Any) -> Hashable:
    if isinstance(written, dict):
        return tuple(_read_id(item) for item in written["tuple"])
    key: Hashable = written
    return key
