"""Parts are found by their declaration, written down and read back, ours and those from outside."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import outside_parts
import pytest
from fakes import vectors_of
from outside_parts import HalvedSampling, PatientSearch, ShyPosterior, UnfrozenSearch

from fastbandit import Bandit, FrozenBandit
from fastbandit.declaration import info_of
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.search.generator import GeneratorSearch
from fastbandit.settings.files import sections
from fastbandit.settings.parts import find, names_of, parts_of, read, write

OUTSIDE = ["outside_parts"]
CONTEXTS = vectors_of(30, 3)


def bandit_of(**changes: Any) -> Bandit:
    named = {
        "posterior": "outside_parts:ShyPosterior",
        "search": "outside_parts:PatientSearch",
        "part_modules": OUTSIDE,
    }
    return Bandit(
        arms=vectors_of(600, 4), context=3, reward="real", progress=False, **{**named, **changes}
    )


def learned(bandit: Bandit) -> Bandit:
    arms = bandit.select(CONTEXTS).arms
    bandit.update(contexts=CONTEXTS, arms=arms, rewards=CONTEXTS[:, 0])
    return bandit


@pytest.mark.parametrize("role", ["exploration", "posterior", "search", "features", "training"])
def test_names_are_known_without_importing_the_parts(role: str) -> None:
    assert set(names_of(role)) == set(parts_of(role)) - {""}


@pytest.mark.parametrize("kind", sections().values(), ids=lambda kind: kind.__name__)
def test_a_part_reads_back_as_it_was_written(kind: type) -> None:
    required = {"embedding": 8, "hidden": (8,), "weight_penalty": 1.0, "dropout_penalty": 1.0}
    part = kind(**{own.name: required[own.name] for own in fields(kind) if own.default is MISSING})

    assert read(json.loads(json.dumps(write(part)))) == part


def test_files_of_before_are_read_by_the_names_of_before() -> None:
    old = {"part": "GeneratorSearch", "cells": 3, "told": "draw", "bounded": True}

    assert read(old) == GeneratorSearch(partitions=3)
    assert info_of(type(read({"part": "LastLayerDoubt"}))).name == "last-layer"  # type: ignore[union-attr]


def test_a_field_that_is_no_more_is_refused_where_it_meant_something() -> None:
    with pytest.raises(SnapshotError, match=r"no told='gaussian' any more.*version that saved it"):
        read({"part": "GeneratorSearch", "told": "gaussian"})


def test_only_declared_parts_can_be_written_and_read() -> None:
    with pytest.raises(SettingError, match="got a object"):
        write(object())
    with pytest.raises(SnapshotError, match="'Exhaustive' with"):
        read({"part": "Exhaustive", "speed": 3})


def test_a_part_from_outside_decides_and_learns(little_training: None) -> None:
    bandit = learned(bandit_of(exploration="outside_parts:HalvedSampling"))

    assert bandit.blueprint.posterior == ShyPosterior()
    assert bandit.blueprint.search == PatientSearch()
    assert bandit.blueprint.exploration == HalvedSampling()
    assert bandit.select(CONTEXTS).version == 1


def test_a_part_from_outside_is_saved_and_loaded(tmp_path: Path, little_training: None) -> None:
    bandit = learned(bandit_of())
    bandit.save(tmp_path / "saved")

    again = Bandit.load(tmp_path / "saved", part_modules=OUTSIDE)

    assert again.blueprint == bandit.blueprint
    assert np.array_equal(again.select(CONTEXTS).rows, bandit.select(CONTEXTS).rows)


def test_a_part_from_outside_is_frozen(tmp_path: Path, little_training: None) -> None:
    bandit = learned(bandit_of())
    seeds = np.arange(len(CONTEXTS), dtype=np.uint64)
    bandit.freeze().save(tmp_path / "frozen")

    frozen = FrozenBandit.load(tmp_path / "frozen")

    assert np.array_equal(
        frozen.select(CONTEXTS, seeds=seeds).rows, bandit.select(CONTEXTS, seeds=seeds).rows
    )


def test_what_cannot_be_frozen_says_what_is_missing(little_training: None) -> None:
    bandit = learned(bandit_of(search=UnfrozenSearch()))

    with pytest.raises(SettingError, match="UnfrozenSearch has no method compiled"):
        bandit.freeze()


@pytest.mark.parametrize("modules", [[], ["outside"], ["other"]])
def test_a_module_that_the_caller_does_not_allow_is_not_imported(modules: list[str]) -> None:
    with pytest.raises(SettingError, match="part_modules"):
        bandit_of(part_modules=modules)


def test_loading_imports_only_what_is_allowed(tmp_path: Path, little_training: None) -> None:
    learned(bandit_of()).save(tmp_path / "saved")

    with pytest.raises(SnapshotError, match="needs a module that is allowed"):
        Bandit.load(tmp_path / "saved")


def test_a_section_of_a_part_from_outside_sets_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('format = 1\n[search."outside_parts:PatientSearch"]\nstarts = 5\n')

    assert bandit_of(preset=path).blueprint.search == PatientSearch(starts=5)


def test_a_path_that_leads_nowhere_is_named() -> None:
    with pytest.raises(SettingError, match=r"is not .*Install its package"):
        find("search", "outside_parts:NoSearch", modules=OUTSIDE)


def test_a_class_that_is_no_part_is_refused() -> None:
    assert outside_parts.CompiledSteps is not None

    with pytest.raises(SettingError, match="declared by @part"):
        find("search", "outside_parts:CompiledSteps", modules=OUTSIDE)
