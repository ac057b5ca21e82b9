"""Results worded as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastbandit.errors import SettingError
from lab.experiments.results import (
    DRAWN_FACES,
    is_scan,
    is_simulated,
    setting_name,
    summarise,
    summarise_replays,
    training_ratios,
)

SCANNED = "scanned"
"""Stands for the q of a search that scored as many arms as there are."""


def table(results: Sequence[dict[str, Any]]) -> str:
    """Format results as Markdown tables: plays, replayed logs, training times."""
    parts = []
    if rows := summarise(results):
        parts.append(_plays_table(rows))
    if rows := summarise_replays(results):
        parts.append(_replays_table(rows))
    if rows := training_ratios(results):
        parts.append(
            "Update of GANBandit ÷ update of Exhaust, same data, in alternation:\n\n"
            + markdown(
                ("preset", "dataset", "TS", "UCB"),
                [[r["preset"], label(r), f"{r['TS']:.2f}", f"{r['UCB']:.2f}"] for r in rows],
                words=2,
            )
        )
    return "\n\n".join(parts)


def _plays_table(rows: Sequence[dict[str, Any]]) -> str:
    head = "preset,dataset,policy,seeds,share of best,÷ Exhaust,q,lowest q,evaluations,look-ups,ms"
    lines = [
        [
            row["preset"],
            label(row),
            row["policy"],
            str(row["seeds"]),
            "–" if row["share"] is None else f"{row['share']:.3f} ± {row['share_std'] or 0:.3f}",
            *_of_search(row),
            number(row["evaluations"], ".0f"),
            number(row["lookups"], ".1f"),
            number(1e3 * row["select_seconds"], ".3f"),
        ]
        for row in rows
    ]
    return markdown(head.split(","), lines, words=3)


def _of_search(row: Mapping[str, Any]) -> list[str]:
    """Format what says how near a search came: nothing where it was a scan."""
    if is_scan(row["policy"], arms=row["arms"], evaluations=row["evaluations"]):
        return [SCANNED] * 3
    forms = {"of_exhaust": ".3f", "quality": ".4f", "lowest_quality": ".4f"}
    return [number(row[measure], form) for measure, form in forms.items()]


def _replays_table(rows: Sequence[dict[str, Any]]) -> str:
    head = ("preset", "dataset", "policy", "seeds", "mean reward", "from", "to", "matches")
    lines = [
        [row["preset"], label(row), row["policy"], str(row["seeds"])]
        + [number(row[measure], ".5f") for measure in ("mean", "low", "high")]
        + [number(row["matches"], ".0f")]
        for row in rows
    ]
    return markdown(head, lines, words=3)


def label(row: Mapping[str, Any]) -> str:
    """Format the dataset of a result, its options, and the device where it is no CPU."""
    name = setting_name(row["dataset"], row["options"])
    name = name.replace(DRAWN_FACES, "drawn faces", 1)
    if is_simulated(row["dataset"], row["options"]):
        name = f"{name} (simulator)"
    return name if row["device"] == "cpu" else f"{name} ({row['device']})"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]], *, words: int) -> str:
    """Format a table; the first `words` columns are words, the others numbers."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def number(value: float | None, form: str) -> str:
    """Format a number that may be unknown."""
    return "–" if value is None else format(value, form)


def between_marks(text: str, fresh: str, *, marks: tuple[str, str]) -> str:
    """Replace what stands between the two marks of a text."""
    start, end = (text.find(mark) for mark in marks)
    if not 0 <= start < end:
        raise SettingError(
            f"The file needs the lines {marks[0]!r} and {marks[1]!r}, in this order: found "
            f"none. Put them where the results belong."
        )
    return f"{text[:start]}{marks[0]}\n{fresh}\n{text[end:]}"
