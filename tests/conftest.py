"""Every test runs the package with its shapes and types checked, and trains in a blink."""

from __future__ import annotations

import os
from collections.abc import Iterator

from compiled import numba_cache

os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for one another make tiny tests crawl
# numba keeps what it compiled for each file, and does not see that a file it called changed.
os.environ.setdefault("NUMBA_CACHE_DIR", str(numba_cache()))

import numpy as np
import pytest
from jaxtyping import install_import_hook
from shape_checks import MODULES

install_import_hook(MODULES, "shape_checks.checked")

import torch  # noqa: E402  the hook must stand before the package is imported
from fakes import LITTLE  # noqa: E402


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def little_training() -> Iterator[None]:
    """Let bandits made by name train for a moment only: enough to run, not to learn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbandit.settings.presets._training", lambda *_, **__: LITTLE)
        patch.setattr("fastbandit.reward.feature_network._STEPS", 20)
        yield
