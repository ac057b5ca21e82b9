"""A Chromium for the tests of pages; they are skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def launched() -> Iterator[Any]:
    """Launch the browser of this machine, or that of Playwright."""
    reason = "the browser test needs playwright"
    sync_api = pytest.importorskip("playwright.sync_api", reason=reason)
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=_OPTIONS)
        except sync_api.Error as error:
            pytest.skip(f"no Chromium could be started: {error.message.splitlines()[0]}")
        yield browser
        browser.close()
