"""A bandit as files that ONNX Runtime and faiss decide from, without fastbandit.

A folder holds `score.onnx` (context, draw and arms to scores), `propose.onnx` (context and draw
to points near the best arms; only where a generator searches), `arms.faiss` (the arms that can
be chosen, in the same coordinates; not where arms have weights of their own, because then
`score.onnx` scores all of them), `ids.json` (the id of each row of the index) and
`manifest.json`, which has the sums of the other files and its own. `docs/adapters.md` has the
few lines that choose arms with them.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbandit.adapters import onnx_networks as networks
from fastbandit.arms.partitions import Floats
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.files.atomic import file_digest, making_folder, raising, write_synced
from fastbandit.files.json_ids import id_to_json
from fastbandit.files.manifest import MANIFEST, digest_of, kind_in, write_manifest
from fastbandit.packages import needed
from fastbandit.progress import Progress, silent
from fastbandit.runtime.encodings import LinearEncoding, note_of
from fastbandit.runtime.folder import KIND as FROZEN
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.kernel import SCALE

if TYPE_CHECKING:
    from fastbandit.bandit import Bandit

FORMAT = 1
KIND = "ONNX export"
SCORE, PROPOSE, ARMS, IDS = "score.onnx", "propose.onnx", "arms.faiss", "ids.json"
SCANNED = 50_000
"""So few arms lie in a flat index, which faiss scans in full."""
_LISTS_PER_ROOT, _PROBED = 4, 16
_STEPS = 4


@dataclass(frozen=True)
class OnnxExport:
    """What was written: where, how many arms, and the size of each file in bytes."""

    folder: Path
    arms: int
    version: int
    files: dict[str, int]


def export_onnx(
    bandit: FrozenBandit | Bandit, folder: str | Path, *, progress: Progress = silent
) -> OnnxExport:
    """Write what a bandit decides now into a new folder, whole or not at all.

    Needs Thompson sampling or a greedy choice, or arms with weights of their own, and the package
    onnx.
    """
    folder = Path(folder)
    frozen = bandit if isinstance(bandit, FrozenBandit) else bandit.freeze()
    _check(frozen, folder)
    needs = f"An ONNX export needs a folder that can be written to: {folder} cannot"
    with (
        raising(SnapshotError, needs, fix="Make room there, or name another."),
        making_folder(folder) as beside,
    ):
        made = _write_files(frozen, beside, progress)
    progress(_STEPS, _STEPS, "Done")
    return replace(made, folder=folder)


def _check(frozen: FrozenBandit, folder: Path) -> None:
    if frozen.version == 0:
        raise SettingError(
            "An ONNX export needs a bandit that has learned something: got one without any "
            "update. Call update() first."
        )
    networks.check_model(frozen.parts[0])
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise SnapshotError(
            f"An ONNX export needs a new folder: {folder} is there and not empty. Name another, "
            f"or remove that one first."
        )


def _write_files(frozen: FrozenBandit, folder: Path, progress: Progress) -> OnnxExport:
    """Write networks, arms, ids, and last the manifest with their sums."""
    model, catalogue, codec = frozen.parts
    files: dict[str, Any] = {}
    progress(0, _STEPS, "Networks")
    rows, has_weights = catalogue.rows.live_rows, isinstance(codec.context, LinearEncoding)
    graphs = {
        SCORE: networks.score_graph(model, codec, rows),
        PROPOSE: networks.propose_graph(model, codec),
    }
    for name, graph in graphs.items():
        if graph is not None:
            files[name] = _write(folder / name, graph.to_bytes(producer="fastbandit"))
    progress(1, _STEPS, "Index")
    points, ids = live_arms(catalogue)
    if not has_weights:
        index = _import_faiss().serialize_index(index_of(points))
        files[ARMS] = _write(folder / ARMS, index.tobytes())
    progress(2, _STEPS, "Ids")
    files[IDS] = _write(folder / IDS, json.dumps([id_to_json(id) for id in ids]).encode())
    progress(3, _STEPS, "Manifest")
    notes = {
        "files": files,
        "arms": len(ids),
        "dim": int(points.shape[1]),
        "version": frozen.version,
        "context": note_of(codec.context.kind),
        "uniforms": networks.noise_size(model),
        "scale": float(model.numbers[SCALE]),
        "reward": codec.reward,
        "best": networks.Constants.of(model, rows).best(float(model.numbers[SCALE])),
    }
    write_manifest(folder / MANIFEST, notes, kind=KIND, format=FORMAT)
    sizes = {name: int(entry["bytes"]) for name, entry in files.items()}
    return OnnxExport(folder, len(ids), frozen.version, sizes)


def check_onnx(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of an export, after comparing all of its files with it."""
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = manifest.pop("sha256"), manifest["kind"], manifest["format"]
        is_right = found == (digest_of(manifest), KIND, FORMAT)
        entries = dict(manifest["files"])
        wrong = [name for name, entry in entries.items() if not _is_same(folder / name, entry)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SnapshotError(
            f"{folder} holds no ONNX export that can be read ({type(error).__name__}: {error}). "
            f"Export the bandit again."
        ) from error
    if not is_right or wrong:
        raise SnapshotError(
            f"The ONNX export in {folder} is not the one that was written: "
            f"{', '.join(wrong) or MANIFEST} differs. Export the bandit again."
        )
    return dict(manifest)


def export_snapshot(snapshot: Path, out: Path, *, progress: Progress = silent) -> OnnxExport:
    """Export a saved bandit, a frozen one, or a version of a service's snapshots."""
    inner = snapshot / "frozen"
    folder = inner if (inner / MANIFEST).exists() else snapshot
    if kind_in(folder) == FROZEN:
        return export_onnx(FrozenBandit.load(folder), out, progress=progress)
    from fastbandit.bandit import Bandit

    return export_onnx(Bandit.load(folder), out, progress=progress)


# -- arms


def live_arms(catalogue: FrozenCatalogue) -> tuple[Floats, list[Hashable]]:
    """Return the coordinates and ids of the arms that can be chosen, in the order of their rows."""
    rows = catalogue.rows.live_rows
    points = np.concatenate([catalogue.arms.points, catalogue.more])[catalogue.positions[rows]]
    return np.ascontiguousarray(points, np.float32), catalogue.ids.ids(rows)


def index_of(points: Floats) -> Any:
    """Put points into a faiss index: flat while they are few, else in lists of near ones."""
    faiss, (count, dim) = _import_faiss(), points.shape
    flat = faiss.IndexFlatL2(dim)
    if count <= SCANNED:
        flat.add(points)
        return flat
    lists = int(_LISTS_PER_ROOT * np.sqrt(count))
    index = faiss.IndexIVFFlat(flat, dim, lists)
    index.train(points)
    index.add(points)
    index.nprobe = _PROBED
    return index


def _import_faiss() -> Any:
    return needed("faiss", what="An export to ONNX", extra="onnx")


# -- files


def _write(path: Path, content: bytes) -> dict[str, Any]:
    size, digest = write_synced(path, [content])
    return {"bytes": size, "sha256": digest}


def _is_same(path: Path, entry: dict[str, Any]) -> bool:
    if not path.exists() or path.stat().st_size != entry["bytes"]:
        return False
    return file_digest(path) == entry["sha256"]
