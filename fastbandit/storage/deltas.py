"""Deltas: what arms' own constants or weights became since a snapshot, small enough for a second.

A delta holds all arms that changed since its snapshot, so only the newest is needed, and one that
was missed does no harm. It is a line of JSON that names its snapshot and vouches for the rest, then
the rows, means and deviations. It can be made again from the log at any time: so it is renamed, and
not synced.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SnapshotError
from fastbandit.files.atomic import mark_of, raising, write_atomic
from fastbandit.files.signing import Keys, is_signed, signature_of

FORMAT = 1
KIND = "delta"
_LEFT_OUT = "It is left out; the learner's next one takes its place."
_NUMBERS = ("version", "number", "seq", "learned")
_DTYPES: tuple[np.dtype[Any], ...] = (np.dtype("<i4"), np.dtype("<f4"), np.dtype("<f4"))


@dataclass(frozen=True, eq=False)
class Delta:
    """What arms have of their own, where it changed since a snapshot: means and deviations, by row.

    Of constants there is one an arm, of weights a row of columns. `snapshot` is the hash of that
    version; `number` counts its deltas from 1 on. Everything up to event `seq` was looked at, and
    `learned` interactions are in it that the snapshot has not learned.
    """

    version: int
    snapshot: str
    number: int
    seq: int
    learned: int
    rows: NDArray[np.int32]
    means: NDArray[np.float32]
    deviations: NDArray[np.float32]

    def to_bytes(self, *, keys: Keys = ()) -> bytes:
        """Return what is stored, signed by the first of some keys."""
        body = b"".join(
            np.ascontiguousarray(part, dtype).tobytes()
            for part, dtype in zip((self.rows, self.means, self.deviations), _DTYPES, strict=True)
        )
        columns = self.means.shape[1] if self.means.ndim == 2 else 0
        head = {"format": FORMAT, "kind": KIND, "arms": len(self.rows), "columns": columns}
        head |= {name: getattr(self, name) for name in ("snapshot", *_NUMBERS)}
        digest = _hash(head, body)
        signed = {"signature": signature_of(digest, keys[0])} if keys else {}
        line = json.dumps({**head, "sha256": digest, **signed}, sort_keys=True)
        return line.encode() + b"\n" + body

    @staticmethod
    def of(content: bytes, *, keys: Keys = ()) -> Delta:
        """Return a delta from what is stored, or say why it cannot be trusted.

        Where there are keys, it needs to be signed by one of them.
        """
        line, _, body = content.partition(b"\n")
        try:
            head = dict(json.loads(line))
            wanted, format = head.pop("sha256"), (head["kind"], head["format"])
            signature = str(head.pop("signature", ""))
            if wanted != _hash(head, body):
                raise ValueError("its SHA-256 differs")
            if keys and not is_signed(wanted, signature, keys):
                raise ValueError("no key in snapshots.signing_key_file signed it")
            if format != (KIND, FORMAT):
                raise ValueError(f"it is a {format[0]} of format {format[1]}, not {FORMAT}")
            arms, columns = int(head["arms"]), int(head.get("columns", 0))
            shape = (arms, columns) if columns else (arms,)
            size = arms * max(1, columns)
            rows = np.frombuffer(body, _DTYPES[0], arms)
            means, deviations = (
                np.frombuffer(body, dtype, size, 4 * (arms + size * part)).reshape(shape)
                for part, dtype in enumerate(_DTYPES[1:])
            )
            version, number, seq, learned = (int(head[name]) for name in _NUMBERS)
            snapshot = str(head["snapshot"])
            return Delta(version, snapshot, number, seq, learned, rows, means, deviations)
        except (ValueError, LookupError, TypeError) as error:
            raise SnapshotError(
                f"A delta needs to be as it was written: this one is not ({error}). {_LEFT_OUT}"
            ) from error

    def check_for(self, version: int, snapshot: str) -> Delta:
        if (self.version, self.snapshot) != (version, snapshot):
            raise SnapshotError(
                f"A delta needs the snapshot that it was made for: got one for version "
                f"{self.version}, {self.snapshot[:12]}…, beside version {version}, "
                f"{snapshot[:12]}…. {_LEFT_OUT}"
            )
        return self


class DeltaFiles:
    """The newest delta of a version, a file in a folder; with keys it needs to be signed."""

    def __init__(self, folder: Path, *, keys: Keys = ()) -> None:
        self._folder, self._keys = folder, keys

    def path(self, version: int) -> Path:
        return self._folder / f"{version:06d}.delta"

    def mark(self, version: int) -> tuple[int, int] | None:
        return mark_of(self.path(version))

    def read(self, version: int, snapshot: str) -> Delta | None:
        needs = f"A delta needs to be readable: {self.path(version)} is not"
        with raising(SnapshotError, needs, fix=_LEFT_OUT):
            try:
                content = self.path(version).read_bytes()
            except FileNotFoundError:
                return None
        return Delta.of(content, keys=self._keys).check_for(version, snapshot)

    def write(self, delta: Delta) -> None:
        """Write a delta in place of the last one, and forget those of other versions."""
        path = self.path(delta.version)
        needs = f"Deltas need a folder that can be written to: {self._folder} cannot"
        with raising(SnapshotError, needs, fix="Make room there; what serves goes on without."):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, delta.to_bytes(keys=self._keys), sync=False)
            for other in self._folder.glob("*.delta*"):
                if other != path:
                    other.unlink(missing_ok=True)


def _hash(head: dict[str, Any], body: bytes) -> str:
    return hashlib.sha256(json.dumps(head, sort_keys=True).encode() + b"\n" + body).hexdigest()
