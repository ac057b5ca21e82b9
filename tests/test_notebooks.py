"""The notebooks run at small sizes; what they conclude holds there and in those committed."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NAMES = ("judging-a-policy", "model-routing", "movielens", "ten-million-arms", "your-table")
SETTINGS = """format = 1
[training.reward]
iterations = 200
[training.generator]
iterations = 100
pairs = 512
"""
SIZES: dict[str, dict[str, Any]] = {
    "judging-a-policy": {"ROUNDS": 6_000, "LOGS": 8, "PLAYED": 4_000},
    "model-routing": {"REQUESTS": 2_400, "DAYS": 4},
    "movielens": {"ROUNDS": 300, "BATCH": 100, "CALLS": 20},
    "ten-million-arms": {"SIZES": [2_000, 20_000], "ROUNDS": 400, "SCANNED": 8, "CALLS": 40},
    "your-table": {"ARTICLES": 60, "ROUNDS": 1_500, "BATCH": 500},
}
MOST_BYTES = 400_000
ABSOLUTE = re.compile(r"(?:^|[\s'\"(=])((?:/[\w.-]+){2,}|[A-Za-z]:\\\w+|~/)", re.MULTILINE)


@cache
def runner() -> Any:
    """Import the script beside the notebooks."""
    spec = spec_from_file_location("notebook_runner", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_films(place: Path, *, users: int = 60, films: int = 600) -> None:
    """Write files in the layout of MovieLens: some films are seen by most, one genre is liked."""
    rng = np.random.default_rng(0)
    genre, taste = rng.integers(0, 3, films), rng.integers(0, 3, users)
    is_seen = rng.random((users, films)) < 1.0 / (1.0 + np.arange(films) / 20.0)
    stars = np.where(genre == taste[:, None], 4.5, 2.0)
    rated = [f"{u + 1},{f + 1},{stars[u, f]},0" for u, f in np.argwhere(is_seen)]
    titles = [f"{f + 1},Film {f} ({1980 + f % 40}),{'ABC'[genre[f]]}" for f in range(films)]
    place.mkdir(parents=True)
    (place / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *rated]))
    (place / "movies.csv").write_text("\n".join(["movieId,title,genres", *titles]))


@pytest.fixture(scope="module", params=["small", "committed"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a function from a notebook's name to the results in its last cell."""
    if request.param == "committed":
        return cache(lambda name: results_of(committed(name)))
    folder = tmp_path_factory.mktemp("notebooks")
    write_films(folder / "movielens" / "ml-latest-small")
    (folder / "little.toml").write_text(SETTINGS)

    @cache
    def play(name: str) -> dict[str, Any]:
        sizes = {**SIZES[name], "PRESET": str(folder / "little.toml")}
        if name in ("judging-a-policy", "movielens"):
            sizes["DATA"] = str(folder)
        notebook = runner().with_sizes(committed(name), sizes)
        return results_of(runner().execute(notebook, folder))

    return play


def committed(name: str) -> Any:
    return runner().read(FOLDER / f"{name}.ipynb")


def results_of(notebook: Any) -> dict[str, Any]:
    """Read the lines "name: JSON" that the last code cell prints."""
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    lines = last.outputs[0].text.splitlines()
    return {name: json.loads(told) for name, _, told in (line.partition(": ") for line in lines)}


# -- MovieLens


def test_a_bandit_learns_which_films_are_liked(source: Any) -> None:
    likes = source("movielens")["likes"]

    assert likes["GANBandit TS"] > likes["Random"]
    assert likes["Exhaust TS"] > likes["Random"]


def test_the_search_finds_nearly_the_same_films_with_fewer_evaluations(source: Any) -> None:
    found = source("movielens")

    assert found["q"] > 0.98
    assert found["scored"] < found["films"] / 2


def test_frozen_loaded_and_without_torch_the_films_are_the_same(source: Any) -> None:
    found = source("movielens")

    assert found["same when frozen"] == 1.0
    assert found["same when loaded"]
    assert found["same without torch"]


def test_one_film_is_explained_by_its_embedding_and_genres(source: Any) -> None:
    assert len(source("movielens")["effects"]) >= 2


# -- judging a policy


def holds(low: float, high: float, truth: float) -> bool:
    """Tell whether an interval, made half as long again at each end, holds the truth.

    One interval in twenty may miss it, and another processor may train another policy.
    """
    slack = (high - low) / 2
    return low - slack <= truth <= high + slack


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_estimates_by_propensities_come_near_the_truth(source: Any, estimator: str) -> None:
    found = source("judging-a-policy")
    _, low, high = found["estimates"][estimator]

    assert holds(low, high, found["truth"])
    assert found["truth"] > found["logging policy"]


def test_the_estimate_of_a_rule_comes_near_the_truth(source: Any) -> None:
    truth, low, high = source("judging-a-policy")["rule"]

    assert holds(low, high, truth)


def test_estimators_without_propensities_are_biased(source: Any) -> None:
    bias = source("judging-a-policy")["bias"]

    assert min(abs(bias["replay"]), abs(bias["dm"])) > abs(bias["dr"])


def test_intervals_of_the_doubly_robust_estimate_mostly_hold_the_truth(source: Any) -> None:
    assert source("judging-a-policy")["intervals that hold the truth"]["dr"] >= 0.85


def test_fewer_rounds_speak_for_a_sharper_policy(source: Any) -> None:
    sizes = source("judging-a-policy")["effective sizes"]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 100 < sizes[0]


def test_a_policy_that_few_rounds_speak_for_is_not_trusted(source: Any) -> None:
    assert source("judging-a-policy")["a rare arm is trusted"] is False


@pytest.mark.parametrize("surrogate", ["1 / arms", "shares of arms"])
def test_invented_propensities_are_wrong_and_given_away(source: Any, surrogate: str) -> None:
    found = source("judging-a-policy")
    off, weights = found["off without propensities"], found["mean weights"]

    assert abs(off[surrogate]) > 3 * abs(off["the true ones"])
    assert abs(weights[surrogate] - 1) > 0.2 > abs(weights["the true ones"] - 1)


def test_the_log_of_one_policy_tells_the_clicks_of_the_other() -> None:
    clicks = results_of(committed("judging-a-policy"))["clicks"]

    _, low, high = clicks["dr"]
    assert low <= clicks["its own log"][0] <= high


# -- routing among language models


def test_a_bandit_routes_prompts_within_its_budget(source: Any) -> None:
    found = source("model-routing")

    assert found["random"] < found["quality"] < found["oracle"]
    assert abs(found["spent"] - 1) < 0.02
    assert found["beyond the cap"] < 0.02


def test_routing_goes_on_after_a_restart_and_by_other_weights(source: Any) -> None:
    found = source("model-routing")

    assert found["same after a restart"]
    assert found["seconds"][1] < found["seconds"][0]


def test_routing_by_prompt_beats_any_fixed_model() -> None:
    found = results_of(committed("model-routing"))

    assert found["quality"] > found["best mixture of two"] > found["best single model"]


# -- ten million arms


def test_a_choice_is_nearly_the_exact_one_among_any_number_of_arms(source: Any) -> None:
    assert min(source("ten-million-arms")["q"]) > 0.97


def test_the_gain_over_a_scan_grows_and_the_arms_scored_do_not(source: Any) -> None:
    found = source("ten-million-arms")

    assert found["scan / choose"] == sorted(found["scan / choose"])
    assert max(found["scored"]) < 600


def test_an_arm_takes_as_much_memory_among_many_as_among_few(source: Any) -> None:
    widths = source("ten-million-arms")["bytes an arm"]

    assert max(widths) < 1.1 * min(widths)


def test_choices_earn_more_than_a_random_arm() -> None:
    rewards = results_of(committed("ten-million-arms"))["rewards"]  # small ones hardly learn

    assert rewards["a random arm"] < rewards["the choice"] < rewards["the best of all arms"]


def test_arms_that_go_and_come_are_known_at_once(source: Any) -> None:
    found = source("ten-million-arms")
    arm = found["decisions"]

    assert arm["removed"] != arm["before"]
    assert arm["put back"] == arm["loaded"] == found["arms"][-1]


def test_those_committed_were_run_with_ten_million_arms() -> None:
    assert results_of(committed("ten-million-arms"))["arms"][-1] == 10_000_000


# -- a table of one's own


def test_columns_of_a_frame_are_taken_for_what_they_are(source: Any) -> None:
    kinds = source("your-table")["kinds"]

    assert kinds == {"came": "date", "query": "text", "budget": "number", "country": "category"}


def test_a_bandit_learns_from_a_frame(source: Any) -> None:
    bought = source("your-table")["bought"]

    assert bought["bandit"][-1] > 1.3 * bought["any article"][-1]


def test_parts_of_an_explanation_have_the_names_of_columns_and_sum_up(source: Any) -> None:
    found = source("your-table")

    assert {"query", "budget", "title", "price"} <= set(found["contributions"])
    assert abs(sum(found["contributions"].values()) - found["expected"]) < 0.01


def test_a_learned_bandit_goes_by_what_sales_depend_on() -> None:
    sizes = results_of(committed("your-table"))["sizes"]  # small ones hardly learn

    assert min(sizes["query"], sizes["title"]) > 3 * max(sizes["listed"], sizes["country"])


def test_what_is_loaded_reads_the_same_frames(source: Any) -> None:
    assert source("your-table")["same when loaded"] is True


# -- as they are committed


def texts_of(notebook: Any) -> list[str]:
    """Give all that a reader reads: sources and outputs, pictures aside."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    said = [output.get("text", "") for output in outputs]
    said += [output.get("data", {}).get("text/plain", "") for output in outputs]
    return [cell.source for cell in notebook.cells] + said


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_outputs_and_pictures(name: str) -> None:
    code = [cell for cell in committed(name).cells if cell.cell_type == "code"]
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", ())}

    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert "image/png" in kinds


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_no_errors_and_no_warnings(name: str) -> None:
    outputs = [output for cell in committed(name).cells for output in cell.get("outputs", ())]

    assert all(output.output_type != "error" for output in outputs)
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_names_no_place_on_a_machine(name: str) -> None:
    for text in texts_of(committed(name)):
        assert not ABSOLUTE.search(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_as_the_runner_leaves_it(name: str) -> None:
    notebook = committed(name)

    assert (FOLDER / f"{name}.ipynb").stat().st_size < MOST_BYTES
    assert runner().strip(committed(name)) == notebook


def test_these_are_all_notebooks() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


def test_a_size_that_a_notebook_lacks_is_refused() -> None:
    with pytest.raises(KeyError, match="got \\['ROUND'\\]"):
        runner().with_sizes(committed("movielens"), {"ROUND": 3})
