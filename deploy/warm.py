"""Compile what decisions need, so that a start of the container does not have to."""

from __future__ import annotations

import numpy as np

from fastbandit import Bandit

_ARMS, _DIM = 2_000, 8


def main() -> None:
    """Decide once in each way that the service decides."""
    vectors = np.random.default_rng(0).standard_normal((_ARMS, _DIM), dtype=np.float32)
    bandit = Bandit(arms=vectors, context=_DIM, search="generator", progress=False)
    bandit.update(contexts=vectors[:32], arms=range(32), rewards=vectors[:32, 0] > 0)
    frozen = bandit.freeze()
    frozen.warm()
    context = np.zeros((1, _DIM), dtype=np.float32)
    frozen.select_one(context[0], seed=0)
    frozen.select(context, seeds=np.zeros(1, dtype=np.uint64), k=2)
    frozen.select(context, seeds=np.zeros(1, dtype=np.uint64), eligible=[0, 1, 2])
    frozen.propensities(context[0], draws=2)
    print("compiled")


if __name__ == "__main__":
    main()
