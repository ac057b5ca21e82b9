"""Every original loads and decides, before it is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.faults.mutant_originals import FROZEN, ORIGINALS, ask, make_original


@pytest.mark.slow
@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_loads_and_decides(name: str, tmp_path: Path) -> None:
    make_original(name, tmp_path / name)

    first, second, listed, *others = ask(name, tmp_path / name)

    assert [len(set(arms)) for arms in (first, second)] == [3, 3]
    assert set(listed) <= {"arm 0", "arm 2"}
    assert len(others) == (2 if name.startswith(FROZEN) else 1)
    for arm in (arm for arms in (first, second, *others) for arm in arms):
        assert arm in ("new", "newer") or arm.startswith("arm ")
