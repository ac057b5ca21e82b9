"""The files that deploy fastbandit, read once for the tests that check them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def read_yaml(path: Path) -> Any:
    """Read a file of one document."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def documents(path: Path) -> list[dict[str, Any]]:
    """Read a file of one or more documents."""
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def compose() -> dict[str, Any]:
    told: dict[str, Any] = read_yaml(DEPLOY / "compose.yaml")
    return told


def manifests() -> list[dict[str, Any]]:
    """Return everything that is sent to Kubernetes, the example of secrets included."""
    paths = [path for path in KUBERNETES if path.name != "kustomization.yaml"]
    return [one for path in paths for one in documents(path)]


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [
        one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)
    ]
    return found


def pod_of(told: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = told["spec"]["template"]["spec"]
    return pod


def pods() -> list[dict[str, Any]]:
    """Return the pod of each manifest that has one."""
    return [pod_of(one) for one in manifests() if "template" in one.get("spec", {})]


def unit_lines(path: Path, key: str) -> list[str]:
    """Return the values of a key in a unit of systemd."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Return the arguments of `fastbandit` in each file that runs it, with where they stand."""
    for name, service in compose()["services"].items():
        if service["image"].startswith("fastbandit:"):
            yield f"compose {name}", service["command"]
    for pod in pods():
        for one in pod["containers"]:
            yield f"kubernetes {one['name']}", one["args"]
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        (line,) = unit_lines(path, "ExecStart")
        yield path.name, line.replace("%i", "8081").split()[1:]
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    last = text[text.rindex("\nCMD ") + 5 :]
    yield "Containerfile", read_list(last)


def read_list(text: str) -> list[str]:
    told: list[str] = yaml.safe_load(text)
    return told
