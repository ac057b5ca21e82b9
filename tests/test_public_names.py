"""The names the package offers."""

from __future__ import annotations

import pytest

import fastbandit


def test_all_public_names_are_listed_in_order() -> None:
    assert fastbandit.__all__ == sorted(fastbandit.__all__)
    assert set(dir(fastbandit)) == {*fastbandit.__all__, "__version__"}


@pytest.mark.parametrize("name", fastbandit.__all__)
def test_every_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    part = getattr(fastbandit, name)

    assert part.__name__ == name
    assert part.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'Bandits'"):
        fastbandit.Bandits  # noqa: B018


def test_the_version_is_the_one_of_the_project() -> None:
    from pathlib import Path

    project = Path(fastbandit.__file__).parent.parent / "pyproject.toml"

    assert f'version = "{fastbandit.__version__}"' in project.read_text(encoding="utf-8")
