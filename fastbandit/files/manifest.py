"""A folder of arrays that vouches for itself, replaced whole or not at all.

It holds `manifest.json` and one file of arrays that the manifest names and vouches for (size
and SHA-256); the manifest also vouches for itself. The arrays are written first, under a
name of their own; replacing the manifest is the one step that makes them current. So a
folder holds either the old state or the new one, whatever happens in between, and whoever
reads the old arrays goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastbandit import __version__
from fastbandit.errors import FormatError, SnapshotError
from fastbandit.files.atomic import raising, rename, write_atomic, write_synced
from fastbandit.files.mapped import Arrays, map_arrays, pieces_of
from fastbandit.files.signing import Keys, is_signed, signature_of

MANIFEST = "manifest.json"
BANDIT = "bandit"
SNAPSHOT = "snapshot"
BACKUP = "backup"
_LOADERS = {
    BANDIT: "Bandit.load",
    "frozen bandit": "FrozenBandit.load",
    SNAPSHOT: "SnapshotStore",
    BACKUP: "fastbandit restore",
}
_TRIES = 3


def write_arrays(
    folder: Path, arrays: Arrays, notes: dict[str, Any], *, kind: str, format: int
) -> None:
    """Write arrays and notes (JSON values) into a folder, in place of what it holds."""
    held = kind_in(folder)
    if held not in (None, kind):
        raise SnapshotError(
            f"A {kind} needs a folder of its own: {folder} holds a {held}. Name another folder, "
            f"or remove that one first."
        )
    needs = f"A {kind} needs a folder that can be written to: {folder} cannot"
    with raising(SnapshotError, needs, fix="Make room there, or name another."):
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / "arrays.safetensors.part"
        size, digest = write_synced(beside, pieces_of(arrays))
        name = f"arrays-{digest[:16]}.safetensors"
        rename(beside, folder / name)
        entry = {"file": name, "bytes": size, "sha256": digest}
        write_manifest(folder / MANIFEST, {**notes, "arrays": entry}, kind=kind, format=format)
        for old in folder.glob("arrays*.safetensors*"):
            if old.name != name:
                old.unlink(missing_ok=True)


def read_arrays(
    folder: Path, *, kind: str, format: int, older: Sequence[int] = (), verify: bool = True
) -> tuple[dict[str, Any], Arrays]:
    """Return the manifest and the arrays, mapped into memory, or say why they cannot be trusted.

    Without `verify` the arrays are trusted if their size is right.
    """
    for _ in range(_TRIES):
        manifest = read_manifest(folder / MANIFEST, kind=kind, format=format, older=older)
        try:
            return manifest, _map_file(folder, manifest, verify=verify)
        except FileNotFoundError as error:  # or the folder was just saved again
            missing = error
    raise SnapshotError(
        f"The arrays of the {kind} in {folder} cannot be read ({missing}). Load an older copy."
    ) from missing


def write_manifest(
    path: Path, notes: dict[str, Any], *, kind: str, format: int, keys: Keys = ()
) -> str:
    """Write notes (JSON values) with their hash, in place of what is there; return the hash.

    It is signed by the first of some keys.
    """
    manifest = {"format": format, "kind": kind, "fastbandit": __version__, **notes}
    digest = digest_of(manifest)
    signed = {"signature": signature_of(digest, keys[0])} if keys else {}
    write_json(path, {**manifest, "sha256": digest, **signed})
    return digest


def write_json(path: Path, value: Any) -> None:
    """Write JSON into a file, whole or not at all, so that it outlives a power cut."""
    write_atomic(path, json.dumps(value, indent=1, allow_nan=False).encode())


def digest_of(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def kind_in(folder: Path) -> str | None:
    """Return the kind of what a folder holds: None for nothing that could be loaded."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return str(manifest.get("kind", BANDIT)) if "format" in manifest else None
    except (ValueError, OSError, TypeError, AttributeError):
        return None


def read_manifest(
    path: Path, *, kind: str, format: int, older: Sequence[int] = (), keys: Keys = ()
) -> dict[str, Any]:
    """Read notes that `write_manifest` wrote, or say why they cannot be trusted.

    Where there are keys, they need to be signed by one of them.
    """
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SnapshotError(
            f"A {kind} needs a {path.name}: found none in {path.parent}. Name the folder that "
            f"save() wrote."
        ) from error
    except (ValueError, OSError, RecursionError) as error:
        raise SnapshotError(
            f"The manifest {path} cannot be read ({error}). Load an older copy."
        ) from error
    manifest: dict[str, Any] = read if isinstance(read, dict) else {}
    found, held = manifest.get("format"), str(manifest.get("kind", BANDIT))
    if found is not None and held != kind:
        loader = _LOADERS.get(held, "the version of fastbandit that saved it")
        raise SnapshotError(
            f"{_LOADERS[kind]} reads what a {kind} saved: {path.parent} holds a {held}. Read it "
            f"with {loader}, or name another folder."
        )
    if found not in (format, *older):
        known = " or ".join(map(str, (*older, format)))
        saved = manifest.get("fastbandit", "unknown")
        raise FormatError(
            f"This version reads a {kind} of format {known}: {path} has format {found!r}, saved by "
            f"fastbandit {saved}. Install that version, or a newer one than this."
        )
    signature, digest = manifest.pop("signature", None), manifest.pop("sha256", None)
    if digest != digest_of(manifest):
        raise SnapshotError(
            f"The manifest {path} is not the one that was saved: its SHA-256 differs. Load an "
            f"older copy."
        )
    if keys and not is_signed(str(digest), str(signature), keys):
        raise SnapshotError(
            f"The manifest {path} needs a signature by a key in snapshots.signing_key_file: it "
            f"has {'none' if signature is None else 'another'}. Load an older copy, or sign it."
        )
    return manifest


def _map_file(folder: Path, manifest: dict[str, Any], *, verify: bool) -> Arrays:
    """Map the arrays, after checking that they are the ones that were saved."""
    try:
        entry = manifest["arrays"]
        path = folder / Path(str(entry["file"])).name
        wanted, size = str(entry["sha256"]), int(entry["bytes"])
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            is_right = found == size
            if is_right and verify:
                is_right = hashlib.file_digest(file, "sha256").hexdigest() == wanted
            if not is_right:
                raise SnapshotError(
                    f"The arrays in {folder} are not the ones that were saved: {path} should "
                    f"have {size} bytes with SHA-256 {wanted[:12]}…, and has {found} bytes. Load "
                    f"an older copy."
                )
            return map_arrays(file)
    except (FileNotFoundError, SnapshotError):
        raise
    except Exception as error:  # whatever reading them brings, they are not what was written
        raise SnapshotError(
            f"The arrays in {folder} cannot be read ({type(error).__name__}: {error}). Load an "
            f"older copy."
        ) from error
