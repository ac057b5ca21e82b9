"""A version of a bandit in a folder: its parent, what it learned, and whether it is whole."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastbandit.arms.arrays import Array
from fastbandit.errors import FormatError, SnapshotError
from fastbandit.files.atomic import file_digest
from fastbandit.files.manifest import (
    MANIFEST,
    SNAPSHOT,
    digest_of,
    read_manifest,
    write_json,
    write_manifest,
)
from fastbandit.files.mapped import map_arrays
from fastbandit.files.signing import Keys

FORMAT = 1
_ROLL_BACK = "Roll back to an older version; where none is whole, restore a backup."
PARTS = ("bandit", "frozen")
NOTES = "snapshot.json"
POINTER = "current.json"
LOST_POINTER = f"The pointer {POINTER} was missing or damaged: the newest version stands in."
_DAMAGED = "damaged-"
DAMAGE_REPORTS = f"{_DAMAGED}[0-9]*.json"


@dataclass(frozen=True)
class Cut:
    """How far into the log a version has learned.

    Everything up to event `seq`, at the time `at`, was looked at. The first `interactions` were
    learned; `held` more were ready and come next. `since` is the number before the oldest
    decision that is not done with: reading on from there brings all the rest.
    """

    seq: int = 0
    at: int = 0
    since: int = 0
    interactions: int = 0
    held: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A version that is whole: what it came from, what it learned, and where it lies.

    `hash` follows from its content alone. `fell_back` says why it stands in for another.
    """

    version: int
    parent: int | None
    cut: Cut
    hash: str
    notes: dict[str, Any]
    folder: Path
    fell_back: str = ""

    @property
    def bandit(self) -> Path:
        """The folder for `Bandit.load`."""
        return self.folder / "bandit"

    @property
    def frozen(self) -> Path:
        """The folder for `FrozenBandit.load`."""
        return self.folder / "frozen"

    def arm_features(self) -> Array | None:
        """Map the features of its arms, a row of numbers each; None where it has none."""
        try:
            (path,) = self.bandit.glob("arrays-*.safetensors")
            with path.open("rb") as file:
                return map_arrays(file).get("arms.dense")
        except (OSError, ValueError, KeyError, TypeError):
            return None


def write_notes(folder: Path, notes: dict[str, Any], *, keys: Keys = ()) -> None:
    """Write down what a version says of itself, with the hash of each of its parts."""
    parts: dict[str, Any] = {}
    for part in PARTS:
        manifest = (folder / part / MANIFEST).read_bytes()
        arrays, digest = json.loads(manifest)["arrays"], hashlib.sha256(manifest).hexdigest()
        own = {"arrays": arrays["file"], "bytes": arrays["bytes"], "sha256": arrays["sha256"]}
        parts[part] = {"manifest": digest, **own}
    write_manifest(folder / NOTES, {**notes, **parts}, kind=SNAPSHOT, format=FORMAT, keys=keys)


def sign_notes(folder: Path, keys: Keys) -> None:
    """Sign what a version says of itself, which stays as it is."""
    notes = read_manifest(folder / NOTES, kind=SNAPSHOT, format=FORMAT)
    write_manifest(folder / NOTES, notes, kind=SNAPSHOT, format=FORMAT, keys=keys)


def read_snapshot(folder: Path, *, check: bool = False, keys: Keys = ()) -> Snapshot:
    """Read what a version says of itself; with `check`, raise unless its parts are whole.

    Where there are keys, it needs to be signed by one of them.
    """
    notes = read_manifest(folder / NOTES, kind=SNAPSHOT, format=FORMAT, keys=keys)
    for part in PARTS if check else ():
        if not _is_whole(folder / part, notes.get(part)):
            raise SnapshotError(
                f"A snapshot needs to be as it was written: {folder / part} is not. Roll back to "
                f"an older one, or restore it from a backup."
            )
    try:
        parent = None if notes["parent"] is None else int(notes["parent"])
        cut = dict(notes["cut"])
        if "pairs" in cut:  # as it was called before
            cut["interactions"] = cut.pop("pairs")
        said = dict(notes["notes"])
        return Snapshot(int(notes["version"]), parent, Cut(**cut), digest_of(notes), said, folder)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SnapshotError(
            f"The snapshot in {folder} does not fit together ({type(error).__name__}: {error}). "
            f"{_ROLL_BACK}"
        ) from error


def check_hashes(snapshot: Snapshot) -> None:
    """Raise unless all arrays of a version are the ones that were saved: reads them once."""
    notes = read_manifest(snapshot.folder / NOTES, kind=SNAPSHOT, format=FORMAT)
    for part in PARTS:
        folder, entry = snapshot.folder / part, dict(notes[part])
        try:
            wanted = entry.get("sha256") or _manifest_hash(folder)  # notes once had none
            found = file_digest(folder / Path(str(entry["arrays"])).name)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise SnapshotError(
                f"The arrays in {folder} cannot be read ({type(error).__name__}: {error}). "
                f"{_ROLL_BACK}"
            ) from error
        if found != wanted:
            raise SnapshotError(
                f"The arrays in {folder} are not the ones that were saved: their SHA-256 should "
                f"be {wanted[:12]}…, and is {found[:12]}…. {_ROLL_BACK}"
            )


def read_pointer(path: Path) -> tuple[int | None, str]:
    """Return the version that a pointer names, none where it is lost, and why if it once was."""
    with suppress(OSError, ValueError, TypeError, LookupError):
        found = json.loads(path.read_bytes())
        version = int(found["version"])
        if int(found.get("folder", version)) == version:  # else a bit of either flipped
            return version, str(found.get("reason", ""))
    return None, ""


def write_pointer(path: Path, version: int, reason: str = "") -> None:
    write_json(path, {"version": version, "folder": f"{version:06d}", "reason": reason})


def _manifest_hash(folder: Path) -> str:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return str(manifest["arrays"]["sha256"])


def _is_whole(folder: Path, entry: Any) -> bool:
    """Return whether a manifest is the one that was written, and its arrays have their size.

    The manifest is not parsed: it may hold millions of ids, and a service does this as it
    serves.
    """
    try:
        digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
        arrays = folder / Path(str(entry["arrays"])).name
        return digest == entry["manifest"] and arrays.stat().st_size == int(entry["bytes"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


def move_aside(folder: Path, version: int, reason: str) -> None:
    """Rename a version in a folder of versions, and write the reason beside it."""
    name = f"{_DAMAGED}{version:06d}"
    write_json(folder / f"{name}.json", {"version": version, "reason": reason})
    before = len([*folder.glob(f"{name}*/")])  # it was restored since
    (folder / f"{version:06d}").rename(folder / (f"{name}-{before + 1}" if before else name))


def damage_in(folder: Path, version: int) -> str:
    """Return why a version was set aside, nothing where it is there."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        if not (folder / f"{version:06d}").exists():
            path = folder / f"{_DAMAGED}{version:06d}.json"
            return str(json.loads(path.read_text(encoding="utf-8"))["reason"])
    return ""


def damaged_in(folder: Path) -> set[int]:
    return {int(path.stem.removeprefix(_DAMAGED)) for path in folder.glob(DAMAGE_REPORTS)}


def is_damage(error: SnapshotError) -> bool:
    """Return whether an error says that files are not as they were written.

    Else another version of fastbandit, or this one once its machine is well, may read them.
    """
    cause = error.__cause__
    is_passing = isinstance(cause, OSError | MemoryError) and not isinstance(
        cause, FileNotFoundError | SnapshotError
    )
    return not isinstance(error, FormatError) and not is_passing


def check_follows(made_from: Any, served: Any) -> None:
    """Raise unless a new version was made from the one that is served."""
    if made_from != served:
        raise SnapshotError(
            f"A new version needs to follow the current one: it was made from {made_from}, and "
            f"{served} is served by now. Make it again."
        )
