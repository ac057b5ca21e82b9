"""The first compiled decision of an installation: compiled by two processes, with a bar.

The compiler holds Python's lock, so that threads do not help. Another process compiles some
functions that a decision calls and puts them into the folder of compiled code; when this one comes
to them, it finds them there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fastbandit.cores import cores
from fastbandit.progress import progress_bar
from fastbandit.runtime import kernel
from fastbandit.runtime.frozen_catalogue import EligibleRows, FrozenCatalogue
from fastbandit.runtime.network import Net
from fastbandit.runtime.parts import FrozenModel
from fastbandit.runtime.request_buffers import Workspace

_COMPILING = Lock()
_PROGRAM = (
    "import sys; from fastbandit.runtime.ahead import compile_parts; compile_parts(sys.argv[1])"
)


def decide(
    model: FrozenModel,
    catalogue: FrozenCatalogue,
    eligible: EligibleRows,
    request: Any,
    answer: Any,
    workspace: Workspace | None = None,
) -> None:
    """Do what `fastbandit.runtime.kernel.decide` does, and compile it where none has yet."""
    space = Workspace() if workspace is None else workspace
    asked = (model, catalogue, eligible.mask, request[0], answer[0])
    given = (catalogue.arms.kind, *eligible, *request, *answer)
    if _is_ready():
        kernel.decide(space.table_for(*asked), *given)
        return
    with _COMPILING, _helped(str(catalogue.arms.kind.dtype)):
        kernel.decide(space.table_for(*asked), *given)


def _is_ready() -> bool:
    """Return whether this process holds the code of decisions, or compiles nothing at all."""
    return bool(getattr(kernel.decide, "overloads", True))


def is_stored() -> bool:
    """Return whether an earlier process left the code of decisions behind."""
    compiled: Any = kernel.decide
    return any(Path(compiled.stats.cache_path).glob("kernel.decide-*.nbi"))


@contextmanager
def _helped(vectors: str) -> Iterator[None]:
    """Let another process compile beside this one, where there is much to compile."""
    if _is_ready() or is_stored():
        yield
        return
    with progress_bar("Compiling, once after an installation"):
        helper = start_helper(vectors) if cores() > 1 and sys.executable else None
        try:
            yield
        finally:
            if helper is not None:
                helper.kill()
                helper.wait()


def start_helper(vectors: str) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles parts of a decision among vectors of a type."""
    nothing = subprocess.DEVNULL
    command = [sys.executable, "-c", _PROGRAM, vectors]
    try:
        return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:  # then this process compiles all of it
        return None


def compile_parts(vectors: str) -> None:
    """Compile what a decision calls, those first that it comes to last."""
    for function, types in parts_of(vectors):
        function.compile(types)


def parts_of(vectors: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return functions that a decision calls, with the types of what it calls them with.

    One that is missing here, or has another type, is compiled by whoever decides.
    """
    from numba import from_dtype, types

    def array(kind: Any, ndim: int, *, fixed: bool = False) -> Any:
        return types.Array(kind, ndim, "C", readonly=fixed)

    f4, i8, flag = types.float32, types.int64, types.boolean
    f1, f2, f3 = (array(f4, ndim) for ndim in (1, 2, 3))
    i1, i2, b1 = array(types.int32, 1), array(types.int32, 2), array(flag, 1)
    sizes, mask = array(i8, 1), array(flag, 1, fixed=True)
    coded = array(from_dtype(np.dtype(vectors)), 2)
    net = types.NamedTuple((f2, f1, f1, sizes, f1, f1, f4, f4, f1, f1), Net)
    arms = types.NamedTuple((i1, coded, f2, i2, f3, f3, i1, f2, i8, i1, mask, i8, i1), kernel.Arms)
    found = types.NamedTuple((i1, f1, i1, f1, b1, i1, f2, i1, i1, f1), kernel.Found)
    exact = types.NamedTuple((f1, f2, f2, f1, f1, f1, f2, f1, f2, f1), kernel.Exact)
    constants = types.NamedTuple((f1, f1, i1, f1, i1, types.uint64, f4, flag), kernel.Constants)
    given: list[tuple[Any, tuple[Any, ...]]] = [
        (kernel.land, (arms, f2, i8, found)),
        (kernel._rerank, (exact, arms, found, i8, sizes, f1, constants)),
        (kernel._propose, (f2, f2, f2, f2, i8, f2, f2)),
        (kernel._generator_inputs, (net, f1, f1, f2, i8, f1, f2)),
        (kernel._climb_all, (net, f2, sizes, f1, f2, i8)),
        (kernel.keep_best_points, (net, f2, i8, found)),
        (kernel._join_own, (net, arms, found, i8, i8, i8, constants)),
        (kernel._walk, (net, arms, found, i8, i8, i8)),
    ]
    return given
