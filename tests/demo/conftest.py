"""One demo for all tests: six policies that train for moments only."""

from __future__ import annotations

import pytest
from quick_demo import quick_demo

from fastbandit.demo.comparison import DemoResult


@pytest.fixture(scope="session")
def steps() -> list[tuple[int, int, str]]:
    return []


@pytest.fixture(scope="session")
def result(steps: list[tuple[int, int, str]]) -> DemoResult:
    return quick_demo(progress=lambda *step: steps.append(step))
