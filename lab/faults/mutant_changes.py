"""Ways to change a saved bandit: its arrays, its notes, and the header of its file."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import numpy as np

from fastbandit.files.mapped import Arrays

Rng = np.random.Generator
_DTYPES = ("bool", "uint8", "int8", "int16", "float16", "int32", "float32", "int64", "float64")
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 64, 1_000, 1_000_003, 2**31 - 1, 2**31, 2**63, -(2**63)),
    *(10**30, 0.5, -0.0, 1e300, float("nan"), float("inf"), "", "x", "nan", "\ud800", [], [0]),
    *({}, {"kind": "Dense"}, [[]], ["x", 3]),
)


def change_arrays(arrays: Arrays, rng: Rng) -> str:
    """Change one array, or which there are; return what was done."""
    name = str(rng.choice(list(arrays)))
    ways = (_values, _values, _values, _fill, _length, _length, _dtype, _shape, _bits)
    if rng.random() < 0.85 or len(arrays) < 3:
        way = ways[int(rng.integers(len(ways)))]
        arrays[name] = np.ascontiguousarray(way(arrays[name], rng))
        return f"{way.__name__[1:]} of {name}"
    other = str(rng.choice([one for one in arrays if one != name]))
    step = int(rng.integers(5))
    if step == 0:
        del arrays[name]
    elif step == 1:
        arrays[f"{name}.{other}"] = arrays[other]
    elif step == 2:
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif step == 3:
        arrays[name] = arrays[other]
    else:
        part = name.split(".")[0]
        arrays[f"{part}.own_rows"] = np.zeros((1, 3), dtype=np.int32)
    return f"{('without', 'more', 'exchanged', 'copied', 'lists')[step]} {name}, {other}"


def _extreme(array: Any, rng: Rng) -> Any:
    if array.dtype == np.bool_:
        return bool(rng.integers(2))
    if array.dtype.kind == "f":
        return rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e20, 0.0, -1.0, 1e-45])
    limits = np.iinfo(array.dtype)
    near = [-1, 0, 1, len(array) if array.ndim else 1, limits.max, limits.min, limits.max // 2]
    there = int(array.flat[int(rng.integers(array.size))]) if array.size else 0
    value = int(rng.choice([*near, there + 1, there - 1, 2 * there, int(rng.integers(2**20))]))
    return max(limits.min, min(limits.max, value))


def _values(array: Any, rng: Rng) -> Any:
    changed = array.copy()
    for _ in range(int(rng.integers(1, 4)) if array.size else 0):
        changed.flat[int(rng.integers(array.size))] = _extreme(array, rng)
    return changed


def _fill(array: Any, rng: Rng) -> Any:
    return np.full_like(array, _extreme(array, rng))


def _length(array: Any, rng: Rng) -> Any:
    if not array.ndim:
        return array[None]
    axis = int(rng.integers(array.ndim))
    size = array.shape[axis]
    wanted = int(rng.choice([0, 1, max(0, size - 1), size + 1, 2 * size, size // 2, size + 8]))
    rows = np.arange(wanted) % max(1, size)
    return np.take(array, rows, axis) if size else np.zeros((2,) * array.ndim, array.dtype)


def _dtype(array: Any, rng: Rng) -> Any:
    return array.astype(str(rng.choice(_DTYPES)))


def _shape(array: Any, rng: Rng) -> Any:
    ways = (array.reshape(-1), array[None], array[..., None], array.T, array.reshape(-1)[:1])
    return (*ways, array.reshape(-1)[:1].sum())[int(rng.integers(6))]


def _bits(array: Any, rng: Rng) -> Any:
    changed = np.ascontiguousarray(array).copy()
    if array.dtype == np.bool_ or not array.size:
        return changed
    flat = changed.reshape(-1).view(np.uint8)
    for _ in range(int(rng.integers(1, 9))):
        flat[int(rng.integers(len(flat)))] ^= np.uint8(1 << int(rng.integers(8)))
    return changed


def change_notes(notes: dict[str, Any], rng: Rng) -> str:
    """Change one value of a manifest, at any depth; return where."""
    at: Any = notes
    path: list[Any] = []
    while True:
        steps = list(at) if isinstance(at, dict) else list(range(len(at)))
        steps = [step for step in steps if path or step not in ("arrays", "sha256")]
        if not steps:
            break
        step = steps[int(rng.integers(len(steps)))]
        path.append(step)
        inner = at[step]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            break
        at = inner
    if not path or not steps:
        return "nothing"
    if rng.random() < 0.2:
        del at[path[-1]]
        return f"no {path}"
    value, old = deepcopy(_ODD[int(rng.integers(len(_ODD)))]), at[path[-1]]
    if isinstance(old, int | float) and rng.random() < 0.5:
        value = old + int(rng.choice([-1, 1, 2])) if rng.random() < 0.5 else old * 2
    at[path[-1]] = value
    return f"{path} = {value!r}"


def change_header(content: bytes, rng: Rng) -> tuple[bytes, str]:
    """Change what a file of arrays says of one of them, or of its own header."""
    size = int.from_bytes(content[:8], "little")
    if rng.random() < 0.2:
        other = int(rng.choice([0, 1, size - 1, size + 1, 2**31, 2**62]))
        return other.to_bytes(8, "little") + content[8:], f"header of {other} bytes"
    header = json.loads(content[8 : 8 + size])
    names = list(header)
    path = change_notes(header[names[int(rng.integers(len(names)))]], rng)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :], f"header: {path}"
