"""The run times that the paper prints, in seconds, on one GeForce RTX 3090.

The averages are the paper's own. They are not the means of the figures it prints for each
dataset: GANBandit's for Single lie below the smallest of those.
"""

from __future__ import annotations

MACHINE = "GeForce RTX 3090"

DATASETS = ("h1", "h2", "h3", "bibtex", "celeba", "openbandit", "movielens", "the-movies")

_PAIRS = {
    "Exhaust TS": (
        (4.12, 0.014),
        (4.102, 9.43e-3),
        (3.37, 9.53e-3),
        (0.05, 6.6e-4),
        (5.74, 0.031),
        (0.034, 6.9e-4),
        (4.06, 9.3e-3),
        (6.07, 0.013),
    ),
    "FastBandit TS": (
        (1.287, 0.741),
        (1.094, 0.912),
        (1.095, 0.923),
        (0.141, 0.798),
        (0.108, 5.030),
        (1.032, 0.721),
        (1.351, 1.044),
        (1.344, 1.15),
    ),
    "GANBandit TS": (
        (1.81e-4, 1.64e-6),
        (7.49e-4, 9.69e-7),
        (7.6e-4, 1.13e-6),
        (6.2e-4, 9e-7),
        (7.6e-4, 6.2e-6),
        (6.6e-4, 8.8e-7),
        (7.7e-4, 5.4e-5),
        (8.5e-4, 1.5e-5),
    ),
    "Exhaust UCB": (
        (30.54, 0.148),
        (29.102, 0.093),
        (25.56, 5.41e-2),
        (0.43, 5.6e-3),
        (41.77, 0.321),
        (0.274, 5.5e-3),
        (35.11, 6.3e-2),
        (44.08, 0.123),
    ),
    "FastBandit UCB": (
        (7.587, 4.415),
        (8.094, 3.922),
        (3.219, 2.988),
        (0.802, 6.221),
        (0.699, 35.4),
        (6.79, 5.103),
        (7.041, 7.191),
        (7.644, 7.95),
    ),
    "GANBandit UCB": (
        (3.79e-4, 8.11e-6),
        (3.78e-4, 1.01e-6),
        (1.2e-3, 5.83e-6),
        (1.2e-3, 4e-6),
        (1.6e-3, 2.2e-5),
        (1.4e-3, 5.1e-6),
        (1.7e-3, 2.4e-4),
        (1.7e-3, 8.1e-5),
    ),
}

AVERAGES = {
    "Exhaust TS": (4.03, 0.012, 9.12),
    "FastBandit TS": (1.312, 0.691, 8.76),
    "GANBandit TS": (1.56e-4, 1.43e-6, 31.49),
    "Exhaust UCB": (32.09, 0.112, 8.41),
    "FastBandit UCB": (7.367, 4.558, 9.16),
    "GANBandit UCB": (3.01e-4, 7.92e-6, 52.93),
}
"""Single, Batch and Train of each policy, averaged over the eight datasets."""


def printed(dataset: str, policy: str) -> tuple[float, float] | tuple[None, None]:
    """Return Single and Batch as printed: arms one at a time, and all arms at once."""
    if dataset not in DATASETS or policy not in _PAIRS:
        return (None, None)
    return _PAIRS[policy][DATASETS.index(dataset)]


def printed_training_ratio(exploration: str) -> float:
    """Return Train of GANBandit ÷ Train of Exhaust as printed, for "TS" or "UCB"."""
    return AVERAGES[f"GANBandit {exploration}"][2] / AVERAGES[f"Exhaust {exploration}"][2]
