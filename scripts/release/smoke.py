"""Use a base install for what it is for: run by the Python of a clean environment."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ABSENT = ("torch", "faiss", "scipy", "msgspec", "apsw", "pyarrow", "matplotlib", "httpx")


def main(folder: Path) -> None:
    """Load a frozen bandit, choose, and evaluate its log; print what came of it as JSON."""
    found = [name for name in ABSENT if find_spec(name) is not None]
    assert not found, f"the base install has {found}"
    import numpy as np

    import fastbandit

    assert "site-packages" in fastbandit.__file__, fastbandit.__file__
    frozen = fastbandit.FrozenBandit.load(folder / "frozen")
    context = np.zeros(4, dtype=np.float32)
    chosen = frozen.select_one(context, seed=7)
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert chosen.arm == expected["arm"], f"chose {chosen.arm}, expected {expected['arm']}"
    told = fastbandit.evaluate(_rounds(), "uniform", seed=0)
    learner = fastbandit.LinearTS(arms=np.eye(3), context=2)
    learner.update(contexts=np.ones((1, 2)), arms=[0], rewards=[1.0])
    try:
        fastbandit.Bandit  # noqa: B018
    except fastbandit.FastbanditError as error:
        said = str(error)
    estimates = {one.name: one.value for one in told.estimates}
    print(json.dumps({"arm": chosen.arm, "estimates": estimates, "without_torch": said}))


def _rounds() -> Any:
    """Make up a little log."""
    import numpy as np

    from fastbandit.evaluation import LoggedRounds

    rng = np.random.default_rng(0)
    return LoggedRounds(
        rng.normal(size=(50, 4)),
        rng.integers(0, 5, 50),
        rng.random(50),
        np.full(50, 0.2),
        arms=5,
        vectors=rng.normal(size=(5, 3)),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
