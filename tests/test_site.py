"""The documentation builds into a site: no warning, every page in its menu, nothing from afar."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from page_blocks import DOCS, ROOT

pytestmark = pytest.mark.slow

if any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")):
    pytest.skip("MkDocs is not installed", allow_module_level=True)

ASKED = re.compile(r'(?:<script[^>]* src|<link[^>]* href|<img[^>]* src|@import)="?(https?:[^" ]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Build the site, and give its folder and what was said meanwhile."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout + done.stderr


def test_the_site_builds_without_a_warning(site: tuple[Path, str]) -> None:
    _, said = site

    lines = [line for line in said.splitlines() if line.strip()]
    usual = ("Cleaning", "Building documentation", "Converting notebook", "Documentation built")
    assert [line for line in lines if not any(words in line for words in usual)] == []


def test_every_page_is_in_the_site(site: tuple[Path, str]) -> None:
    folder, _ = site

    for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]:
        place = path.relative_to(DOCS).with_suffix("")
        home = folder if place.name == "index" else folder / place
        assert (home / "index.html").is_file(), f"{place} is not in the site"


def test_no_page_asks_another_host_for_anything(site: tuple[Path, str]) -> None:
    folder, _ = site

    for path in folder.rglob("*.html"):
        assert ASKED.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_pictures_stand_in_their_pages(site: tuple[Path, str]) -> None:
    folder, _ = site
    told = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.html"))

    for path in DOCS.glob("pictures/*.svg"):
        assert path.stat().st_size < 120_000
        assert path.read_text(encoding="utf-8").partition("<title>")[2] in told, path.name
