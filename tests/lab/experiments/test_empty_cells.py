"""The table of what was played: seeds, and a letter with its reason where there are none."""

from __future__ import annotations

from made_results import play

from lab.experiments.comparison import standings_of
from lab.experiments.empty_cells import empty_cells
from lab.experiments.report import results_page
from lab.experiments.report_tables import Table
from lab.experiments.results import REAL_FACES
from lab.experiments.sections import Notes


def cells(*runs: dict[str, object]) -> dict[tuple[str, str], str]:
    (section,) = empty_cells(standings_of(runs))
    return {
        (row[0], heading): cell
        for table in section.blocks
        if isinstance(table, Table)
        for row in table.rows
        for heading, cell in zip(table.headings[1:], row[1:], strict=True)
    }


def test_every_cell_has_its_seeds_or_a_letter_whose_reason_is_below() -> None:
    runs = [play("GANBandit UCB", seed=seed) for seed in (0, 1)]

    found = cells(*runs)

    (section,) = empty_cells(standings_of(runs))
    (notes,) = (block for block in section.blocks if isinstance(block, Notes))
    reasons = {line.partition(": ")[0] for line in notes.lines}
    assert found.pop(("GANBandit UCB", "h1")) == "2"
    assert set(found.values()) <= reasons
    assert "GP-UCB" in {policy for policy, _ in found}


def test_letters_tell_a_licence_and_missing_features_from_what_could_be_played() -> None:
    found = cells(play("Random"))

    assert found["Random", "CelebA"] == found["QGLOC", "CelebA"] == "b"
    assert found["QGLOC", "Bibtex"] == "c"
    assert found["LinUCB", "Bibtex"] == found["Random", "drawn faces"] == "a"


def test_drawn_faces_fill_no_cell_of_celeba() -> None:
    drawn = cells(play("Random", dataset="celeba"))
    real = cells(play("Random", dataset="celeba", notes=[REAL_FACES]))

    assert (drawn["Random", "CelebA"], drawn["Random", "drawn faces"]) == ("b", "1")
    assert (real["Random", "CelebA"], real["Random", "drawn faces"]) == ("1", "a")


def test_other_presets_and_options_fill_no_cell() -> None:
    other = play("Random", preset="paper")
    small = play("LinearTS", options={"arms": 50})

    found = cells(play("QGLOC"), other, small)

    assert [found[name, "h1"] for name in ("QGLOC", "Random", "LinearTS")] == ["1", "a", "a"]


def test_the_page_has_the_table_before_how_to_read_it() -> None:
    page = results_page([play("Random")])

    assert 0 < page.index("## What was played") < page.index("## How to read this")
