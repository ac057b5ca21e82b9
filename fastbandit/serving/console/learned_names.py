"""What the console shows of features that were not declared: what a version learned to read."""

from __future__ import annotations

from typing import Any

from fastbandit.features.mapping_columns import FeatureMapping
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.secret_columns import SecretColumns

_NAMES, _LEVELS = 100, 20  # that are shown


def learned_names(bandit: FrozenBandit, secrets: SecretColumns) -> list[dict[str, Any]]:
    """Return each mapping of contexts and arms: its slots, names, and levels; none of secret ones.

    What the settings say is secret counts, also where the version does not know of it.
    """
    schemas = {
        "contexts": secrets.context(bandit.parts[2].schema),
        "arms": secrets.arms(arm_schema_of(bandit)),
    }
    return [
        _shown(whose, column)
        for whose, schema in schemas.items()
        for column in (() if schema is None else schema.columns)
        if isinstance(column, FeatureMapping) and not column.secret
    ]


def _shown(whose: str, column: FeatureMapping) -> dict[str, Any]:
    learned = column.learned()
    names = [
        {"name": name, "levels": levels and levels[:_LEVELS], "count": len(levels or ())}
        for name, levels in learned[:_NAMES]
    ]
    slots = {"used": column.used, "slots": column.slots, "hashed": column.hashed}
    return {"of": whose, "column": column.name, "names": names, "known": len(learned), **slots}
