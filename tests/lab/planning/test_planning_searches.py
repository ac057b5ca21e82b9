"""A plan follows from what was measured; what was measured here is synthetic, or tiny."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fastbandit.errors import SettingError
from fastbandit.search.generator import GeneratorSearch
from lab.planning.command import search_command
from lab.planning.searches import (
    EXHAUSTIVE,
    GENERATOR,
    LIGHT,
    Measurements,
    PlanRequest,
    SearchPlan,
    Timing,
    format_bytes,
    lighter,
    measure,
    parse_seconds,
    plan_search,
    rounded,
    settings_for,
    sizes_for,
)

HOME = "lab.planning.command"
GIB = 2**30
MEASURED = Measurements(
    timings=(
        Timing(EXHAUSTIVE, 10_000, 160e-6, 200e-6, 10_000.0),
        Timing(GENERATOR, 10_000, 20e-6, 40e-6, 90_000.0),
        Timing(LIGHT, 10_000, 15e-6, 30e-6, 120_000.0),
        Timing(EXHAUSTIVE, 1_000_000, 16e-3, 20e-3, 100.0),
        Timing(GENERATOR, 1_000_000, 40e-6, 80e-6, 45_000.0),
        Timing(LIGHT, 1_000_000, 30e-6, 60e-6, 60_000.0),
    ),
    bytes_per_arm=100.0,
    build_s_per_arm=2e-5,
    cores=2,
    memory=8 * GIB,
)


def planned(arms: int, bar: str) -> SearchPlan:
    return plan_search(PlanRequest(arms, 8, parse_seconds(bar)), MEASURED)


# -- which search


def test_few_arms_are_all_scored() -> None:
    found = planned(10_000, "1ms")

    assert (found.search, found.is_met) == (EXHAUSTIVE, True)
    assert found.settings == 'Bandit(..., search="exhaustive")'
    assert any("q = 1" in reason for reason in found.reasons)
    assert any("9.0 times as often" in reason for reason in found.reasons)


def test_many_arms_need_the_generator() -> None:
    found = planned(1_000_000, "1ms")

    assert (found.search, found.is_met) == (GENERATOR, True)
    assert found.exhaustive_up_to == 50_000
    assert any("only up to about 50,000 arms" in reason for reason in found.reasons)


def test_a_lighter_search_is_taken_before_none() -> None:
    found = planned(1_000_000, "70us")

    assert (found.search, found.is_met) == (LIGHT, True)
    assert any("costs some q" in reason for reason in found.reasons)


def test_where_nothing_meets_the_bar_it_says_what_would_help() -> None:
    found = planned(1_000_000, "10us")

    assert (found.search, found.is_met) == (LIGHT, False)
    said = " ".join(found.reasons)
    assert "the quickest takes 60 µs" in said
    assert all(word in said for word in ("smaller network", "eligible", "cores", "GPU"))


def test_memory_and_time_to_build_grow_with_the_arms() -> None:
    found = planned(1_000_000, "1ms")

    assert (found.memory_bytes, found.swap_bytes) == (10**8, 2 * 10**8)
    assert found.build_s == pytest.approx(20.0)


def test_arms_that_do_not_fit_into_memory_are_pointed_out() -> None:
    found = planned(100_000_000, "1ms")

    assert any("A swap needs 18.6 GiB, and 8 GiB are free" in reason for reason in found.reasons)


# -- extrapolation


def test_a_scan_grows_with_the_arms() -> None:
    found = MEASURED.at(EXHAUSTIVE, 10_000_000)

    assert found.is_extrapolated
    assert found.p99_s == pytest.approx(0.2)
    assert found.per_s == pytest.approx(10.0)


def test_a_generator_search_grows_as_it_did_between_what_was_measured() -> None:
    found = MEASURED.at(GENERATOR, 100_000_000)  # twice as long for a hundred times the arms

    assert found.p50_s == pytest.approx(80e-6)
    assert found.p99_s == pytest.approx(160e-6)


def test_one_size_alone_is_taken_as_it_is() -> None:
    alone = Measurements(MEASURED.timings[:3], 100.0, 1e-5, 2, GIB)

    assert alone.at(GENERATOR, 10**6).p50_s == 20e-6


def test_between_two_sizes_the_larger_one_counts() -> None:
    found = MEASURED.at(GENERATOR, 20_000)

    assert (found.arms, found.is_extrapolated) == (1_000_000, False)


def test_an_extrapolated_answer_says_so() -> None:
    assert any("extrapolated" in reason for reason in planned(10_000_000, "1ms").reasons)


@pytest.mark.parametrize(("bar", "arms"), [(100e-6, 5_000), (2e-3, 100_000), (1.0, 50_000_000)])
def test_a_scan_meets_a_bar_up_to_some_number_of_arms(bar: float, arms: int) -> None:
    assert MEASURED.exhaustive_up_to(bar) == pytest.approx(arms)


# -- measuring


def test_a_few_and_as_many_arms_as_fit_are_measured() -> None:
    assert sizes_for(PlanRequest(500, 8, 1.0), 8 * GIB) == [500]
    assert sizes_for(PlanRequest(10**8, 8, 1.0), 8 * GIB) == [10_000, 2_000_000]
    assert sizes_for(PlanRequest(10**8, 8, 1.0), 50_000_000) == [10_000, 50_000]
    assert sizes_for(PlanRequest(10**8, 64, 1.0), 8 * GIB) == [10_000, 250_000]


def test_all_searches_are_timed_over_random_arms() -> None:
    steps: list[str] = []

    found = measure(PlanRequest(300, 3, 1e-3, hidden=8), seconds=0.0, tick=steps.append)

    assert [timing.search for timing in found.timings] == [EXHAUSTIVE, GENERATOR, LIGHT]
    assert all(0 < timing.p50_s <= timing.p99_s for timing in found.timings)
    assert all(timing.per_s > 0 and timing.arms == 300 for timing in found.timings)
    assert min(found.bytes_per_arm, found.build_s_per_arm) > 0
    assert len(steps) == 5


def test_the_settings_of_a_light_search_are_those_that_were_timed() -> None:
    light = lighter(GeneratorSearch())

    assert f"partitions={light.partitions}, hops={light.hops}" in settings_for(LIGHT)
    assert light.hops < GeneratorSearch().hops


# -- text


@pytest.mark.parametrize(
    ("text", "seconds"), [("1ms", 1e-3), ("250us", 250e-6), ("80 µs", 80e-6), ("0.5s", 0.5)]
)
def test_a_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["1", "ms", "0ms", "-1ms", "1 hour", ""])
def test_what_is_no_time_is_rejected(text: str) -> None:
    with pytest.raises(SettingError, match="--p99 needs a time"):
        parse_seconds(text)


def test_numbers_are_no_more_exact_than_measurements() -> None:
    assert rounded(123_456) == 120_000
    assert rounded(7) == 7


def test_memory_has_the_unit_that_suits_it() -> None:
    assert [format_bytes(size) for size in (3 * GIB, 5 * 2**20, 2048)] == [
        "3 GiB",
        "5 MiB",
        "2 KiB",
    ]


# -- the command


def test_the_command_prints_the_plan_and_its_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{HOME}.measure", lambda request, *, seconds, tick: MEASURED)

    done = CliRunner().invoke(search_command, ["--arms", "10000000", "--p99", "1ms"])

    assert "Bandit(...): the default search meets it" in done.stdout
    assert "Memory 954 MiB, twice that while arms are indexed anew" in done.stdout
    assert done.stdout.count("extrapolated") == 4


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{HOME}.measure", lambda request, *, seconds, tick: MEASURED)

    done = CliRunner().invoke(search_command, ["--arms", "1000000", "--json"])

    found = json.loads(done.stdout)
    assert (found["search"], found["is_met"], found["bar_s"]) == (GENERATOR, True, 1e-3)
    assert len(found["evidence"]["timings"]) == 6
