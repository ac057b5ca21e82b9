"""Settings, commands, ports, folders and versions in the deployment files are those there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from fastbandit.cli.main import cli
from fastbandit.settings.service import SECTIONS, all_settings
from fastbandit.settings.service_files import read_config
from scripts.release.imports import imports_of
from tests.deploy.deployed import (
    DEPLOY,
    ROOT,
    commands,
    compose,
    documents,
    manifest,
    pod_of,
    pods,
    read_yaml,
)

TEXTS = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file() and path.name != ".env"]
VARIABLES = sorted(
    {
        name
        for path in TEXTS
        for name in re.findall(r"\bFASTBANDIT_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_file_can_be_parsed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    if path.suffix in (".yaml", ".yml"):
        assert documents(path)
    elif path.suffix == ".json":
        assert json.loads(text)
    elif path.suffix == ".toml":
        assert tomllib.loads(text)
    assert text.endswith("\n")
    assert "\t" not in text


# -- settings


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_setting_that_is_named_exists(variable: str) -> None:
    section = variable.split("_")[1].lower()
    if section not in SECTIONS:
        pytest.skip(f"this version has no section [{section}] yet")

    assert variable in {setting.variable for setting in all_settings()}


def test_the_settings_of_a_cluster_can_be_read() -> None:
    told = read_config(DEPLOY / "fastbandit.toml", environ={})

    assert told.server.allow_plain_http
    assert not told.learn.enabled
    assert told.context.dim == 8


def test_the_proxy_has_the_limits_of_the_deciders() -> None:
    told = read_config(DEPLOY / "fastbandit.toml", environ={})
    proxy = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")

    assert f"tune.bufsize {told.limits.header_bytes}\n" in proxy
    assert f"timeout http-request {told.limits.header_seconds:g}s\n" in proxy
    assert f"timeout client {told.limits.body_seconds:g}s\n" in proxy
    assert f"req.body_size gt {told.server.max_body_bytes} " in proxy
    assert told.limits.connections > told.server.max_waiting


def test_the_proxy_opens_no_more_connections_than_the_deciders_take() -> None:
    told = read_config(DEPLOY / "fastbandit.toml", environ={})
    proxy = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    (clients,) = re.findall(r"^ +maxconn (\d+)$", proxy, re.MULTILINE)
    (of_one,) = re.findall(r"^ +default-server .*\bmaxconn (\d+)$", proxy, re.MULTILINE)
    deciders = len(re.findall(r"^ +server ", proxy, re.MULTILINE))

    assert int(of_one) <= min(told.server.max_waiting, told.limits.connections)
    assert int(clients) <= (deciders - 1) * told.limits.connections  # while one is upgraded


def test_kubernetes_gets_the_same_settings() -> None:
    compiled = DEPLOY / "kubernetes" / "fastbandit.toml"

    assert compiled.read_bytes() == (DEPLOY / "fastbandit.toml").read_bytes()


# -- commands


@pytest.mark.parametrize(("where", "words"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_a_command_is_one_that_fastbandit_takes(where: str, words: list[str]) -> None:
    root = click.Context(cli)
    command = cli.get_command(root, words[0])

    assert command is not None
    with command.make_context(words[0], list(words[1:]), parent=root) as context:
        assert str(context.params["path"]) == "/etc/fastbandit/fastbandit.toml"


def test_one_process_trains_and_the_others_do_not() -> None:
    said = [(where, words) for where, words in commands() if "learner" not in where]

    for where, words in said:
        is_learner = where == "fastbandit-learn.service"
        assert words[0] == ("learn" if is_learner else "serve")
        assert ("--no-learner" in words) is not is_learner


@pytest.mark.slow
def test_what_an_image_compiles_at_its_build_runs() -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, str(DEPLOY / "warm.py")],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.stdout == "compiled\n", done.stderr


def test_what_an_image_compiles_needs_nothing_of_the_laboratory() -> None:
    copied = re.findall(r"^COPY (?!--)(.*)", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    roots = {one.root for one in imports_of(DEPLOY / "warm.py")} - {*sys.stdlib_module_names}

    assert roots == {"fastbandit", "numpy"}
    assert "fastbandit fastbandit" in copied
    assert not any("lab" in line.split() for line in copied)


# -- ports and folders


def test_everyone_means_the_same_port() -> None:
    port = read_config(DEPLOY / "fastbandit.toml", environ={}).server.port
    names = {f"decider-{number}:{port}" for number in (1, 2, 3)}
    balancer = (DEPLOY / "haproxy.cfg").read_text()
    (job,) = read_yaml(DEPLOY / "prometheus.yml")["scrape_configs"]
    (decider,) = pod_of(manifest("StatefulSet", "decider"))["containers"]
    ports = {one["name"]: one["containerPort"] for one in decider["ports"]}
    image = (DEPLOY / "Containerfile").read_text()

    assert set(re.findall(r"^ +server \S+ (\S+)$", balancer, re.MULTILINE)) == names
    assert set(job["static_configs"][0]["targets"]) == names
    assert ports == {"http": port}
    assert f"EXPOSE {port}\n" in image
    assert f"http://127.0.0.1:{port}/live" in image


def test_a_decider_keeps_its_spool_on_a_volume_of_its_own() -> None:
    own = [
        volume.split(":")[0]
        for name, service in compose()["services"].items()
        for volume in service.get("volumes", ())
        if volume.endswith(":/var/lib/fastbandit")
    ]
    claims = manifest("StatefulSet", "decider")["spec"]["volumeClaimTemplates"]

    assert len(set(own)) == len(own) == 4
    assert [claim["metadata"]["name"] for claim in claims] == ["data"]


def test_the_data_folder_can_be_written_to_and_nothing_else() -> None:
    data = "FASTBANDIT_SERVER_DATA_DIR=/var/lib/fastbandit"

    assert data in (DEPLOY / "Containerfile").read_text()
    for name, service in compose()["services"].items():
        if service["image"].startswith("fastbandit:"):
            assert service["read_only"], name
            assert any(one.endswith(":/var/lib/fastbandit") for one in service["volumes"])
    for pod in pods():
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert "/var/lib/fastbandit" in [one["mountPath"] for one in container["volumeMounts"]]


def test_a_mounted_file_is_one_that_is_there() -> None:
    made_by_hand = {"./keys"}
    for service in compose()["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith(".") and source not in made_by_hand:
                assert (DEPLOY / source).exists(), source


# -- versions


def images() -> list[str]:
    stages = re.findall(r"^FROM (\S+)", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    return stages + [service["image"] for service in compose()["services"].values()]


@pytest.mark.parametrize("image", sorted(set(images())))
def test_an_image_has_its_whole_version(image: str) -> None:
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-\w+)*", image), image


def test_our_image_has_the_version_of_the_package() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = told["project"]["version"]
    (pinned,) = read_yaml(DEPLOY / "kubernetes" / "kustomization.yaml")["images"]
    ours = {image for image in images() if image.startswith("fastbandit:")}

    assert ours == {f"fastbandit:{version}"}
    assert pinned == {"name": "fastbandit", "newTag": version}
    assert f"image.version={version} " in (DEPLOY / "Containerfile").read_text()


def test_the_image_takes_packages_by_the_constraints_and_by_extras_there_are() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = re.findall(r"^ARG EXTRAS=(\S+)", text, re.MULTILINE)[0].split(",")

    assert text.count("PIP_CONSTRAINT=constraints.txt") == 1
    assert set(extras) <= set(told["project"]["optional-dependencies"]) | {"cluster"}


def test_no_secret_stands_in_a_file() -> None:
    ignored = (DEPLOY / ".gitignore").read_text().split()
    example = (DEPLOY / ".env.example").read_text()

    assert {".env", "keys/"} <= set(ignored)
    assert not re.search(r"^\w+=.", example, re.MULTILINE)
    for service in compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert value.startswith("${")
