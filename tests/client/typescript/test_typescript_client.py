"""The client in TypeScript: its types are the service's, and Node tests it with one that runs."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from node_package import DOCUMENT, PACKAGE, Service, must_run

MANIFEST = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
LOCK = (PACKAGE / "package-lock.json").read_text(encoding="utf-8")
RENEW = "Run in clients/typescript: npm ci && npm run types"


def test_the_types_are_those_of_the_recorded_interface() -> None:
    recorded = hashlib.sha256(DOCUMENT.read_bytes()).hexdigest()

    assert f"SHA-256 {recorded}." in (PACKAGE / "src" / "api.ts").read_text("utf-8"), RENEW


def test_the_client_has_no_dependencies_and_its_tools_have_versions() -> None:
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(MANIFEST)
    assert all(re.fullmatch(r"[\d.]+", version) for version in MANIFEST["devDependencies"].values())


def test_the_lock_names_no_host() -> None:
    assert "://" not in LOCK, "Remove what is below `funding` and `resolved`"


def test_it_is_not_published_by_accident() -> None:
    assert MANIFEST["private"] is True


@pytest.mark.slow
def test_the_types_are_made_anew_from_the_document(built: Path, tmp_path: Path) -> None:
    made = tmp_path / "api.ts"
    must_run(built, "node", "scripts/types.mjs", str(made), str(DOCUMENT))

    assert made.read_text("utf-8") == (PACKAGE / "src" / "api.ts").read_text("utf-8"), RENEW


@pytest.mark.slow
def test_node_runs_all_tests_with_a_service(built: Path, service: Service) -> None:
    asked = {"FASTBANDIT_URL": service.url, "FASTBANDIT_KEY": service.key}
    said = must_run(built, "node", "--test", "--test-reporter=spec", environment=asked)

    counts = dict(re.findall(r"^(?:#|ℹ) (\w+) (\d+)$", said, re.MULTILINE))
    assert int(counts["pass"]) > 100
    assert (counts["fail"], counts["skipped"]) == ("0", "0"), said
