"""The Kubernetes manifests follow its schemas, and select, mount and name what is there."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from tests.deploy.deployed import DEPLOY, manifest, manifests, pod_of, pods, read_yaml, yaml

OLDEST, NEWEST = "1.32", "1.37"
FOLDER = DEPLOY / "kubernetes"


def named(told: dict[str, Any]) -> str:
    return f"{told['kind']}-{told['metadata']['name']}"


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("told", manifests(), ids=named)
def test_a_manifest_follows_the_schema(told: dict[str, Any], version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate")

    validator.validate(told, version, strict=True)


def test_a_manifest_with_a_mistake_would_be_rejected() -> None:
    validator = pytest.importorskip("kubernetes_validate")
    told = manifest("PodDisruptionBudget", "decider")
    told["spec"]["minAvailible"] = 2

    with pytest.raises(validator.ValidationError):
        validator.validate(told, NEWEST, strict=True)


def test_kustomize_builds_it() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")

    done = subprocess.run(
        [kubectl, "kustomize", str(FOLDER)], capture_output=True, text=True, timeout=60
    )

    built = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert done.returncode == 0, done.stderr
    images = [one["image"] for told in built for one in containers(told)]
    assert images == ["fastbandit:0.1.0"] * 2
    maps = [told["metadata"]["name"] for told in built if told["kind"] == "ConfigMap"]
    mounted = {
        volume["configMap"]["name"]
        for told in built
        if containers(told)
        for volume in pod_of(told)["volumes"]
        if "configMap" in volume
    }
    assert mounted == set(maps)
    assert {told["metadata"].get("namespace", "fastbandit") for told in built} == {"fastbandit"}


def containers(told: dict[str, Any]) -> list[Any]:
    found: list[Any] = (
        pod_of(told)["containers"] if told["kind"] in ("StatefulSet", "Deployment") else []
    )
    return found


def test_all_files_are_in_the_kustomization_but_the_secrets() -> None:
    told = read_yaml(FOLDER / "kustomization.yaml")
    files = {path.name for path in FOLDER.glob("*.yaml")}

    assert set(told["resources"]) == files - {"kustomization.yaml", "secret.example.yaml"}


def test_whatever_selects_pods_finds_some() -> None:
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in manifests() if has_pod(one)]
    selectors = [
        *[one["spec"]["selector"] for one in manifests() if one["kind"] == "Service"],
        *[one["spec"]["podSelector"]["matchLabels"] for one in policies()],
        manifest("PodDisruptionBudget", "decider")["spec"]["selector"]["matchLabels"],
    ]

    for selector in selectors:
        assert any(selector.items() <= own.items() for own in labels), selector


def has_pod(told: dict[str, Any]) -> bool:
    return "template" in told.get("spec", {})


def policies() -> list[dict[str, Any]]:
    return [one for one in manifests() if one["kind"] == "NetworkPolicy"]


def test_a_secret_that_is_used_stands_in_the_example() -> None:
    keys = {
        (one["metadata"]["name"], key)
        for one in manifests()
        if one["kind"] == "Secret"
        for key in one["stringData"]
    }
    used = {
        (ref["name"], ref["key"])
        for pod in pods()
        for own in pod["containers"]
        for variable in own["env"]
        if (ref := variable.get("valueFrom", {}).get("secretKeyRef"))
    }

    assert used
    assert used <= keys
    assert ("fastbandit-keys", "keys.json") in keys


def test_what_is_mounted_is_a_volume() -> None:
    claims = {
        claim["metadata"]["name"]
        for one in manifests()
        for claim in one.get("spec", {}).get("volumeClaimTemplates", ())
    }
    for pod in pods():
        volumes = {volume["name"] for volume in pod["volumes"]} | claims
        for own in pod["containers"]:
            assert {mount["name"] for mount in own["volumeMounts"]} <= volumes


def test_an_upgrade_leaves_two_deciders() -> None:
    deciders = manifest("StatefulSet", "decider")["spec"]
    scaler = manifest("HorizontalPodAutoscaler", "decider")["spec"]

    assert deciders["replicas"] == scaler["minReplicas"] == 3
    assert manifest("PodDisruptionBudget", "decider")["spec"]["minAvailable"] == 2
    assert manifest("Deployment", "learner")["spec"]["replicas"] == 2


def test_a_pod_has_no_rights() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert not pod["enableServiceLinks"]
        for own in pod["containers"]:
            assert own["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not own["securityContext"]["allowPrivilegeEscalation"]


def test_a_pod_stops_after_the_service_forgot_it() -> None:
    pod = pod_of(manifest("StatefulSet", "decider"))
    (own,) = pod["containers"]
    readiness = own["readinessProbe"]
    _, pause = own["lifecycle"]["preStop"]["exec"]["command"]

    assert int(pause) >= readiness["periodSeconds"] * readiness["failureThreshold"]
    assert pod["terminationGracePeriodSeconds"] >= int(pause) + 30
