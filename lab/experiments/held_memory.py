"""How many bytes an object holds: its arrays, tensors and indexes, and the Python around them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from logging import Logger
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import ReferenceType

import numpy as np
import torch

_NOT_HELD = (type, ModuleType, BuiltinFunctionType, Logger, ReferenceType)
_CODE = ("numba", "llvmlite", "threading", "_thread")  # compiled once for all, or no data


def held_bytes(thing: object) -> int:
    """Return the bytes of all that can be reached from an object, each counted once.

    Memory that is shared by arrays and tensors counts once, that of code, modules and types not at
    all. What a decision needs for a moment is not held.
    """
    blocks: dict[int, int] = {}  # of numbers, by address
    seen: dict[int, object] = {}  # holds what was seen, so that no id is given out again
    objects, todo = 0, [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, _NOT_HELD) or _is_code(one):
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType):
            todo += [cell.cell_contents for cell in one.__closure__ or () if _is_full(cell)]
        elif isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            _count(blocks, storage.data_ptr(), storage.nbytes())
        elif isinstance(one, np.ndarray):
            _count(blocks, one.__array_interface__["data"][0], one.nbytes)
            todo += [one.base] if one.base is not None else []
            todo += one.ravel().tolist() if one.dtype.hasobject else []
        elif (indexed := _faiss_bytes(one)) is not None:
            _count(blocks, id(one), indexed)
        else:
            objects += sys.getsizeof(one, 0)
            todo += gc.get_referents(one)
    return objects + _union(blocks.items())


def _count(blocks: dict[int, int], address: int, size: int) -> None:
    blocks[address] = max(blocks.get(address, 0), size)


def _union(blocks: Iterable[tuple[int, int]]) -> int:
    """Return the bytes that are in any block: views lie within what they are views of."""
    total, reached = 0, 0
    for address, size in sorted(blocks):
        total += max(0, address + size - max(address, reached))
        reached = max(reached, address + size)
    return total


def _faiss_bytes(one: object) -> int | None:
    """Return the bytes of an index of faiss, which Python cannot look into; None for others."""
    if not type(one).__module__.startswith("faiss") or not hasattr(one, "ntotal"):
        return None
    faiss: Any = sys.modules["faiss"]
    return int(faiss.serialize_index(one).nbytes)


def _is_code(one: object) -> bool:
    return type(one).__module__.split(".")[0] in _CODE


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that has no value yet
        return False
