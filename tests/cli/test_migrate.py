"""Logs of Personalizer and Vowpal Wabbit become a folder to serve from, and go back."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_actions import WANTED, actions, write_lines
from little_data import invoke
from little_tables import quick_preset

from fastbandit.adapters.action_logs import read_action_log
from fastbandit.cli.action_learning import ActionDecisions
from fastbandit.cli.migrate import command
from fastbandit.cli.serve import named_by
from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.learning.learner import Learner
from fastbandit.settings.service_files import read_config
from fastbandit.storage.exports import export
from tests.serving.little_service import Caller, run
from tests.serving.personalizer.little_personalizer import Client, tell

DECISIONS = 600


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a log and what was learned from it, and the report."""
    folder = tmp_path_factory.mktemp("moved")
    write_lines(folder / "logs" / "2024" / "05" / "01.json", DECISIONS)
    (folder / "configuration.json").write_text('{"rewardWaitTime": "PT20M"}')
    done = invoke(
        command,
        *("personalizer", folder / "logs", "--out", folder / "shop", "--json"),
        *("--configuration", folder / "configuration.json", "--preset", quick_preset(folder)),
        *("--args", "--cb_explore_adf --epsilon 0.25 -q UA --unheard 3"),
    )
    return folder, json.loads(done.stdout)


def offers() -> list[dict[str, Any]]:
    """Return the actions of a request, in our own words."""
    found = actions(range(4))
    return [{"id": one["_tag"], "features": one["j"][0]} for one in found]


def test_the_report_sets_the_old_policy_beside_ours(shop: tuple[Path, dict[str, Any]]) -> None:
    report = shop[1]

    assert (report["decisions"], report["arms"], report["left_out"]) == (DECISIONS, 4, {})
    assert [one["name"] for one in report["judged"]["estimates"]] == ["ips", "snips", "dr"]
    for one in report["judged"]["estimates"]:
        assert one["value"] > report["judged"]["logged"]["value"] + 0.1
    assert json.loads((shop[0] / "shop" / "report.json").read_text()) == report


def test_settings_come_from_flags_configuration_and_log(shop: tuple[Path, dict[str, Any]]) -> None:
    settings = tomllib.loads((shop[0] / "shop" / "service.toml").read_text(encoding="utf-8"))

    assert settings["reward"] == {"kind": "real", "wait_seconds": 1200.0, "default": 0.0}
    assert settings["select"]["epsilon"] == 0.25
    assert settings["personalizer"] == {"enabled": True}
    unused = [one["flag"] for one in shop[1]["flags"] if not one["setting"]]
    assert unused == ["--cb_explore_adf", "--quadratic", "--unheard"]


def test_the_folder_serves_actions_as_they_came(shop: tuple[Path, dict[str, Any]]) -> None:
    path, data = named_by(None, None, shop[0] / "shop")
    settings = {"server.data_dir": str(data), "learn.fresh": 20, "select.epsilon": 0.0}
    config = read_config(path, overrides=settings)
    new = {"id": "chess", "features": {"article": {"topic": "chess", "unseen": 3}}}

    async def story(ask: Caller) -> list[str]:
        found = []
        for number in range(40):
            name = ("Tom", "Anna")[number % 2]
            body = {
                "context": {"user": {"name": name}},
                "arms": [*offers(), new],
                "propensity": True,
            }
            chosen = await ask("POST", "/v1/select", body)
            assert chosen.status == 200, chosen.body
            arm = chosen.body["arms"][0]
            value = int(arm == WANTED[name])
            done = {"decision": chosen.body["decision"], "value": value}
            assert (await ask("POST", "/v1/reward", done)).status == 200
            found.append(arm)
        return found

    arms = run(config, story)
    step = Learner(config).step()

    assert sum(arm == WANTED[("Tom", "Anna")[n % 2]] for n, arm in enumerate(arms)) > 20
    assert step.did == "published", step.reason
    exported_log_is_learned_by_vowpal_wabbit(shop[0])


def test_clients_of_personalizer_stay_as_they_are(
    shop: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(shop[0] / "shop", tmp_path / "shop")
    path, data = named_by(None, None, tmp_path / "shop")
    config = read_config(path, overrides={"server.data_dir": str(data)})
    ranked = {
        "contextFeatures": [{"user": {"name": "Tom"}}],
        "actions": [{"id": one["id"], "features": [one["features"]]} for one in offers()],
        "eventId": "one",
    }

    async def story(client: Client) -> None:
        found = await client("POST", "/rank", ranked)
        assert found.status == 201, found
        assert len(found.body["ranking"]) == 4
        assert (await client("POST", "/events/one/reward", {"value": 0.5})).status == 204
        known = (await client("GET", "/configurations/service")).body
        asked = known | {"rewardAggregation": "sum"}
        assert (await client("PUT", "/configurations/service", asked)).status == 200
        made = client.service.decision("one")
        assert made is not None
        assert made.offered is None  # all four are known

    tell(config, story)


def exported_log_is_learned_by_vowpal_wabbit(folder: Path) -> None:
    """Go back: export what the service decided, and let Vowpal Wabbit learn from it."""
    library = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    export(folder / "shop", folder / "out.dsjson", "dsjson")
    lines = (folder / "out.dsjson").read_text().splitlines()
    workspace = library.Workspace("--cb_explore_adf --dsjson --quiet --interactions ::")
    for _ in range(20):
        for line in lines:
            examples = workspace.parse(line)
            workspace.learn(examples)
            workspace.finish_example(examples)

    assert len(lines) == 40
    for line in lines[:2]:
        fields = json.loads(line)
        ids = [one["_tag"] for one in fields["c"]["_multi"]]
        examples = workspace.parse(line)
        best = ids[int(np.argmax(workspace.predict(examples)))]
        workspace.finish_example(examples)
        assert best == WANTED[fields["c"]["context"]["user"]["name"]]


def direct_estimates(lines: list[dict[str, Any]], likely: Any) -> tuple[float, float]:
    """Return IPS and SNIPS of a policy, from the lines of a file alone."""
    weights = [likely(one) / one["_label_probability"] for one in lines]
    earned = [w * -one["_label_cost"] for w, one in zip(weights, lines, strict=True)]
    return sum(earned) / len(lines), sum(earned) / sum(weights)


def estimates(path: Path, *, is_first: bool) -> tuple[float, float]:
    """Return what our reader and estimators make of the first action, or of any."""
    given = ActionDecisions(read_action_log(path))
    rounds, known = given.rounds(np.arange(len(given.log)))
    rows = np.array([[known[row] for row in offered] for offered in given.log.offered])
    shares = np.full(rows.shape, 1.0 / rows.shape[1])
    if is_first:
        shares = np.eye(rows.shape[1])[np.zeros(len(rows), dtype=int)]
    policy = SparsePolicy(rows, shares, arms=rounds.arms)
    found = evaluate(rounds, policy, estimators=("ips", "snips"), interval="normal")
    return found["ips"].value, found["snips"].value


def test_estimates_are_those_of_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    lines = write_lines(path, 500, seed=3)

    first = direct_estimates(lines, lambda one: float(one["_labelIndex"] == 0))
    uniform = direct_estimates(lines, lambda one: 0.25)

    assert estimates(path, is_first=True) == pytest.approx(first, abs=1e-9)
    assert estimates(path, is_first=False) == pytest.approx(uniform, abs=1e-9)


def test_the_loss_that_vowpal_wabbit_reports_is_our_estimate(tmp_path: Path) -> None:
    library = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    path = tmp_path / "log.json"
    write_lines(path, 500, seed=4)
    workspace = library.Workspace("--cb_explore_adf --epsilon 1.0 -t --dsjson --quiet")

    for line in path.read_text().splitlines():
        examples = workspace.parse(line)
        workspace.learn(examples)
        workspace.finish_example(examples)
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()

    assert estimates(path, is_first=False)[0] == pytest.approx(-loss, abs=1e-9)


def test_text_of_vowpal_wabbit_is_learned_as_well(tmp_path: Path) -> None:
    texts = []
    for one in write_lines(tmp_path / "unused.json", 200):
        name = one["c"]["FromUrl"][0]["user"]["name"]
        texts.append(f"shared |User {name}")
        for n, action in enumerate(one["c"]["_multi"]):
            label = f"0:{one['_label_cost']}:{one['_label_probability']} " * (
                n == one["_labelIndex"]
            )
            texts.append(f"{label}{action['_tag']}|Article {action['_tag']}")
        texts.append("")
    (tmp_path / "log.vw").write_text("\n".join(texts))

    done = invoke(
        command,
        *("vw", tmp_path / "log.vw", "--out", tmp_path / "out", "--json"),
        *("--preset", quick_preset(tmp_path), "--args", "--cb_explore_adf --bag 5"),
    )
    report = json.loads(done.stdout)

    assert (report["decisions"], report["arms"], report["taken"]) == (200, 4, 4)
    assert report["settings"] == {"select.exploration": "ts"}


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text("{}")

    with pytest.raises(SettingError, match="empty or not there"):
        invoke(command, "vw", tmp_path / "log.json", "--out", tmp_path)


def test_a_configuration_that_is_none_is_rejected(tmp_path: Path) -> None:
    write_lines(tmp_path / "log.json", 3)
    (tmp_path / "none.json").write_text("[]")

    with pytest.raises(DataError, match="a JSON object"):
        invoke(
            command,
            *("personalizer", tmp_path / "log.json", "--out", tmp_path / "out"),
            *("--configuration", tmp_path / "none.json"),
        )
