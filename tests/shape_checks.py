"""The checker of shapes and types that the tests run the package under."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # a whole number is a float too

MODULES = [
    f"fastbandit.{name}"
    for name in (
        "arms.box",
        "arms.catalogue",
        "arms.device_partitions",
        "arms.frame",
        "arms.lookup",
        "audit",
        "exploration",
        "interfaces",
        "policy",
        "reward",
        "search",
        "testing.arm_spaces",
        "testing.explorations",
        "testing.posteriors",
        "testing.searches",
        "training",
    )
]
"""Where tensors travel. The front door is left out: it must refuse bad input by itself."""
