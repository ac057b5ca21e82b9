"""Files of settings: what they set, what they refuse, and that they read back as written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, GeneratorSearch, GradientAscent
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.files import (
    Settings,
    read_settings,
    sections,
    settable,
)
from fastbandit.settings.presets import PartNames, blueprint


def written(folder: Path, text: str, *, head: str = "format = 1\n") -> Path:
    path = folder / "my.toml"
    path.write_text(head + text, encoding="utf-8")
    return path


def planned(preset: Any, **changes: Any) -> Blueprint:
    settings: dict[str, Any] = {
        "context": Dense(4),
        "arm": Dense(3),
        "reward": "real",
        "exploration": "ts",
        "search": "generator",
        "posterior": "auto",
    } | changes
    names = PartNames(*(settings.pop(role) for role in ("exploration", "search", "posterior")))
    return blueprint(names, preset=preset, **settings)


def test_a_file_stands_over_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "[network]\nhidden = [8]\n")

    plan, base = planned(path), planned("default")

    assert plan.network == replace(base.network, hidden=(8,))
    assert plan.training == base.training


def test_a_file_of_before_keeps_its_meaning(tmp_path: Path) -> None:
    old = written(
        tmp_path, "[network]\nwaves = 16\n[doubt.gradient]\nridge = 0.5\n[search]\ncells = 3\n"
    )

    plan = planned(old, posterior="gradient")

    assert plan.network.fourier_features == 16
    assert plan.posterior == GradientPosterior(ridge=0.5)
    assert plan.search.partitions == 3  # type: ignore[attr-defined]


def test_another_base_than_the_defaults_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="paper_preset"):
        planned(written(tmp_path, 'base = "paper"\n'))


@pytest.mark.parametrize("as_text", [True, False])
def test_a_file_without_fields_is_the_default(tmp_path: Path, as_text: bool) -> None:
    path = written(tmp_path, "")

    assert planned(str(path) if as_text else path) == planned("default")


def test_every_kind_of_section_reaches_its_part(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "[exploration.ucb]\nwidth = 2\n[posterior.gradient]\nridge = 0.5\n"
        "[search.generator]\nheads = 4\n[training.reward]\nrate = 1e-2\n"
        "[training.generator]\niterations = 7\n",
    )

    plan = planned(path, exploration="ucb", posterior="neural")

    assert plan.exploration == UpperConfidence(2.0)
    assert plan.posterior == GradientPosterior(ridge=0.5)
    assert plan.search == replace(planned("default").search, heads=4)
    assert (plan.training.reward.rate, plan.training.generator.iterations) == (0.01, 7)


def test_a_shared_section_reaches_each_part_that_has_the_field(tmp_path: Path) -> None:
    path = written(tmp_path, "[exploration]\nscale = 0.5\n[search]\nhops = 3\nstarts = 4\n")

    assert planned(path).exploration == ThompsonSampling(0.5)
    assert (
        planned(path, exploration="ucb").exploration
        == planned("default", exploration="ucb").exploration
    )
    assert planned(path).search == replace(planned("default").search, hops=3)
    assert planned(path, search="ascent").search == GradientAscent(far=0, hops=3, starts=4)


def test_what_a_part_has_alone_stands_over_what_all_share(tmp_path: Path) -> None:
    path = written(tmp_path, "[search]\nhops = 3\n[search.ascent]\nhops = 5\n")

    assert planned(path, search="ascent").search == GradientAscent(far=0, hops=5)
    assert planned(path).search == replace(planned("default").search, hops=3)


def test_objects_stand_over_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[search]\nhops = 3\n")

    assert planned(path, search=GeneratorSearch(hops=2)).search == GeneratorSearch(hops=2)


def test_penalties_that_a_file_leaves_out_follow_its_embedding(tmp_path: Path) -> None:
    network = planned(written(tmp_path, "[network]\nembedding = 32\n")).network

    assert (network.embedding, network.weight_penalty, network.dropout_penalty) == (32, 16, 20)


def test_settings_need_no_file() -> None:
    settings = Settings().merged({"network": {"hidden": [8]}}).merged({"network": {"leak": 0}})

    assert planned(settings).network.hidden == (8,)
    assert planned(settings).network.leak == 0.0


def test_a_saved_bandit_does_not_need_its_file_again(tmp_path: Path, little_training: None) -> None:
    path = written(tmp_path, "[network]\nhidden = [5]\n[search]\nheads = 3\n")
    bandit = Bandit(arms=vectors_of(30, 3), context=2, reward="real", preset=path)
    contexts = vectors_of(20, 2)
    arms = bandit.select(contexts).arms
    bandit.update(contexts=contexts, arms=arms, rewards=np.zeros(20))
    bandit.save(tmp_path / "saved")
    path.unlink()

    again = Bandit.load(tmp_path / "saved")

    assert again.blueprint == bandit.blueprint
    assert again.blueprint.network.hidden == (5,)
    assert np.array_equal(again.select(contexts).rows, bandit.select(contexts).rows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[netwrk]\nembedding = 8\n", ["'netwrk'", "network, exploration", "mean 'network'"]),
        ("[network]\nembeding = 8\n", ["[network]", "'embeding'", "mean 'embedding'", "hidden"]),
        ("[network]\nembedding = 0\n", ["embedding in [network]", "of at least 1", "got 0"]),
        ("[network]\nembedding = true\n", ["whole number", "got True"]),
        ("[network]\nhidden = []\n", ["a list of whole numbers", "got []"]),
        ("[network]\nhidden = 32\n", ["such as [32]", "got 32"]),
        ("[network]\nproduct = 1\n", ["true or false", "got 1"]),
        ("[network]\nleak = nan\n", ["leak", "a finite number", "got nan"]),
        ('[network]\npenalties = "none"\n', ["'per observation', 'constant'", "got 'none'"]),
        ("[exploration]\nscale = -1\n", ["scale in [exploration.ts]", "at least 0", "got -1"]),
        ("[exploration]\nspeed = 1\n", ["[exploration]", "'speed'", "scale, width"]),
        ("[exploration.eps]\nscale = 1\n", ["[exploration]", "'eps'", "ts, ucb"]),
        ("[doubt]\nridge = 0\n", ["ridge", "above 0", "got 0"]),
        ("[search.ascent]\nstart = 1\n", ["[search.ascent]", "'start'", "mean 'starts'"]),
        ("[search.generator]\ngenerator = 1\n", ["'generator'", "heads"]),
        ("[training]\nrate = 0.1\n", ["[training]", "'rate'", "generator, reward"]),
        ("[training.reward]\nrate = 0\n", ["rate in [training.reward]", "above 0"]),
        ("network = 8\n", ["[network]", "a section", "network = 8"]),
        ("[index]\nprobes = 3\n", ["'index'"]),
        ("[network\n", ["needs to be TOML", "line 2"]),
    ],
)
def test_what_a_file_has_wrong_is_named_with_the_file(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(SettingError) as raised:
        planned(path)

    for word in [str(path), *words]:
        assert word in str(raised.value)


@pytest.mark.parametrize("head", ["", "format = 2\n"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, head: str) -> None:
    with pytest.raises(SettingError, match="needs the line 'format = 1'"):
        read_settings(written(tmp_path, "", head=head))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"found none at .*gone\.toml"):
        planned(str(tmp_path / "gone.toml"))


def test_a_folder_is_no_file_of_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs to be TOML"):
        read_settings(tmp_path)


def test_a_section_of_a_part_not_in_use_is_checked_all_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, "[exploration.ucb]\nwidth = -1\n")

    with pytest.raises(SettingError, match=r"width in \[exploration\.ucb\]"):
        planned(path, exploration="ts")


def test_every_field_of_every_part_can_be_set() -> None:
    names = {name for kind in sections().values() for name in settable(kind)}

    assert {"embedding", "scale", "width", "ridge", "heads", "starts", "chunk", "rate"} <= names
    assert "generator" not in names


@pytest.mark.parametrize("section", list(sections()))
def test_every_field_stands_in_the_docs_with_its_default(section: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    table = page.split(f"| `[{section}]` |")[1].split("| `[")[0]
    part = sections()[section]
    varied = {"scale", "width", "embedding_penalty", "fourier_features"}  # a preset has its own

    for name in settable(part):
        assert f"| `{name}` |" in f"|{table}"
        default = getattr(part, name, None)
        if default is not None and name not in varied:
            word = json.dumps(default)
            assert f"| `{name}` | {word} |" in f"|{table}"
