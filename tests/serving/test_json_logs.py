"""Logs of the service are lines of JSON."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastbandit.serving.json_logs import JsonLines
from fastbandit.serving.server import Server, make_server
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config


@contextmanager
def serving(config: Config) -> Iterator[Server]:
    """Serve in a thread, on a free port."""
    server = make_server(config, Service(config))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(20)


def test_the_log_is_lines_of_json() -> None:
    record = logging.LogRecord("fastbandit", logging.INFO, "", 0, "started %s", ("now",), None)
    record.events = 3

    told = json.loads(JsonLines().format(record))

    assert (told["message"], told["events"], told["level"]) == ("started now", 3, "info")
