"""One worker of a service: a process that decides, and hands its events to the log's writer."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace

import msgspec

from fastbandit.errors import FastbanditError
from fastbandit.serving.json_logs import start_json_logs
from fastbandit.serving.server import make_server
from fastbandit.serving.service import Service
from fastbandit.serving.worker_link import WorkerLink, report_error
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config


def own_share(config: Config) -> Config:
    """Return the settings of one worker: its share of what all may hold at once.

    It has room for one request of the largest size. Quotas are not shared out: connections are
    spread evenly, those of one key are not.
    """
    server, limits = config.server, config.limits
    waiting, connections, buffered = (
        -(-most // server.workers)
        for most in (server.max_waiting, limits.connections, limits.buffered_bytes)
    )
    buffered = max(buffered, min(limits.buffered_bytes, server.max_body_bytes))
    return replace(
        config,
        server=replace(server, max_waiting=waiting),
        limits=replace(limits, connections=connections, buffered_bytes=buffered),
    )


def run_worker(config: Config, reports: socket.socket, handed: socket.socket) -> None:
    """Serve connections that are handed over, until the service ends."""
    link = WorkerLink(reports, handed)
    server = make_server(config, Service(config, link=link))

    def end() -> None:
        if not link.has_started:
            os._exit(1)  # what it waits for will not come
        server.should_exit = True

    link.take, link.end = server.take, end
    link.count = lambda: len(server.server_state.connections)
    server.on_started = lambda url: link.begin()
    server.run([])


def main() -> None:
    """Run a worker by the settings in its environment; its two sockets are inherited."""
    reports, handed = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    sources = msgspec.json.decode(sys.argv[3])
    config = replace(read_config(None), sources=sources)
    start_json_logs(config.server.log_level)
    try:
        run_worker(own_share(config), reports, handed)
    except FastbanditError as error:
        report_error(reports, error)
        sys.exit(2)


if __name__ == "__main__":
    main()
