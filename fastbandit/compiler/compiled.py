"""compiled(): a function as machine code that releases Python's lock, kept for later processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from fastbandit.compiler.cache_folder import cache_folder, is_writable

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(
    *, fastmath: set[str] | None = None, allocates: bool = True
) -> Callable[[Function], Function]:
    """Compile a function when it is first called; `fastmath` are the liberties LLVM may take.

    One that allocates no array, and returns none, need not count references to those it is given:
    a lock for each array of each call takes longer than a little arithmetic.
    """

    def decorate(function: Function) -> Function:
        njit: Any = numba.njit
        liberties = fastmath or False
        with _kept_in(_folder()):  # no C function: nobody calls one, and it takes time to compile
            settings = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "_nrt": allocates}
            return njit(fastmath=liberties, **settings)(function)

    return decorate


@cache
def _folder() -> Path | None:
    """Return our folder, if it can be written to; numba looks for another where it cannot."""
    folder = cache_folder()
    return folder if folder is not None and is_writable(folder) else None


@contextmanager
def _kept_in(folder: Path | None) -> Iterator[None]:
    """Let numba keep the code of functions that are made meanwhile in a folder, and no others."""
    config: Any = numba.config
    before = config.CACHE_DIR
    if folder is not None:
        config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before
