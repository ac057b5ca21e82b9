"""A recipe is a base and settings over it: by name, from a file, as JSON."""

from __future__ import annotations

import tempfile
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.declaration import range_of
from fastbandit.errors import SettingError
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.settings.files import Settings, read_settings, sections, settable
from lab.experiments.recipe import BASES, Recipe, recipe_for, recipe_from_json, write_recipe

OVER: Any = {"network": {"embedding": 4, "hidden": (8, 8)}}


@pytest.mark.parametrize("name", BASES)
def test_a_name_stands_for_a_base_alone(name: str) -> None:
    assert recipe_for(name) == Recipe(name, Settings())


def test_settings_stand_over_the_defaults() -> None:
    assert recipe_for(Settings(OVER)) == Recipe("default", Settings(OVER))


def test_a_recipe_stands_for_itself() -> None:
    recipe = Recipe("paper", Settings(OVER))

    assert recipe_for(recipe) is recipe


@pytest.mark.parametrize("wrong", ["papr", "", 3])
def test_an_unknown_name_is_rejected(wrong: Any) -> None:
    with pytest.raises(SettingError, match="The preset needs to be one of default, paper"):
        recipe_for(wrong)


@pytest.mark.parametrize("name", BASES)
def test_a_file_reads_back_as_the_recipe_that_was_written(name: str, tmp_path: Path) -> None:
    recipe = Recipe(name, Settings(OVER))

    write_recipe(tmp_path / "mine.toml", recipe, note="format = 7\nof a note")

    assert recipe_for(tmp_path / "mine.toml") == recipe
    assert recipe_for(str(tmp_path / "mine.toml")) == recipe


def test_a_file_over_the_defaults_is_one_that_any_bandit_takes(tmp_path: Path) -> None:
    write_recipe(tmp_path / "mine.toml", Recipe(settings=Settings(OVER)))

    assert read_settings(tmp_path / "mine.toml") == Settings(OVER)


def test_a_file_without_a_base_stands_over_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("format = 1\n[network]\nembedding = 4\n")

    assert recipe_for(tmp_path / "mine.toml").base == "default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format = 1\nbase = 'papr'\n", r"base in .*mine\.toml needs to be one of .*'papr'"),
        ("format = 1\nbase = ['paper']\n", r"base in .*mine\.toml needs to be one of"),
        ("base = 'paper'\n", "needs the line 'format = 1'"),
        ("format = 1\n[network]\nembeding = 4\n", "Did you mean 'embedding'"),
        ("format =", "needs to be TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_rejected(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)

    with pytest.raises(SettingError, match=words):
        recipe_for(tmp_path / "mine.toml")


def test_a_file_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="found none at"):
        recipe_for(tmp_path / "mine.toml")


def test_merged_fields_replace_those_of_the_same_name() -> None:
    recipe = Recipe("paper", Settings(OVER))

    merged = recipe.merged({"network": {"embedding": 5}, "search.ascent": {"steps": 2}})

    assert merged.base == "paper"
    assert merged.of("network") == {"embedding": 5, "hidden": (8, 8)}
    assert merged.of("search.ascent") == {"steps": 2}
    assert recipe.of("network")["embedding"] == 4


def test_json_has_the_base_and_the_sections_and_reads_back() -> None:
    recipe = Recipe("paper", Settings(OVER))

    written = recipe.to_json()

    assert written == {
        "base": "paper",
        "sections": {"network": {"embedding": 4, "hidden": [8, 8]}},
    }
    assert recipe_from_json(written) == recipe


def test_names_of_before_are_read() -> None:
    before: Any = {"doubt.gradient": {"ridge": 2.0}, "training.generator": {"pairs": 64}}
    current: Any = {"posterior.gradient": {"ridge": 2.0}, "training.generator": {"targets": 64}}

    assert recipe_from_json({"base": "default", "sections": before}) == Recipe(
        settings=Settings(current)
    )
    assert Recipe().merged(before) == Recipe().merged(current)


def test_settings_are_written_where_there_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="Choose another place"):
        write_recipe(tmp_path / "none" / "my.toml", Recipe())


def test_a_note_stands_above_the_settings(tmp_path: Path) -> None:
    write_recipe(tmp_path / "my.toml", Recipe(), note="made by\nhand")

    assert (tmp_path / "my.toml").read_text() == "# made by\n# hand\nformat = 1\n"


def values_of(own: Field[Any], hint: Any) -> st.SearchStrategy[Any]:
    """Return values that a field may have."""
    if range_of(own).choices:
        return st.sampled_from(range_of(own).choices)
    if hint is bool:
        return st.booleans()
    if hint in (int, int | None):
        return st.integers(1, 2**52)
    if hint in (float, float | None):
        return st.floats(0, exclude_min=True, allow_infinity=False)
    return st.lists(st.integers(1, 999), min_size=1, max_size=4).map(tuple)


def section(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    hints = settable(kind)
    known = {own.name: values_of(own, hints[own.name]) for own in fields(kind)}
    if kind is GeneratorFit:  # whose beam is the best of its sample
        known |= {"sample": st.integers(512, 2**52), "beam": st.integers(1, 512)}
    return st.fixed_dictionaries({}, optional=known)


SETTINGS = st.builds(
    Settings,
    sections=st.fixed_dictionaries(
        {}, optional={name: section(kind) for name, kind in sections().items()}
    ),
)


@given(settings=SETTINGS)
def test_settings_read_back_as_they_were_written(settings: Settings) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my.toml"
        write_recipe(path, Recipe(settings=settings))

        assert read_settings(path) == settings
        assert [file.name for file in Path(folder).iterdir()] == ["my.toml"]
