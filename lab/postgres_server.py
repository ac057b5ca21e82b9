"""A PostgreSQL server of one's own in a folder, for tests, benchmarks and campaigns."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from fastbandit.errors import LogError
from fastbandit.storage.postgres_connection import psycopg

_PATIENCE = 30.0


def find_programs() -> Path | None:
    """Find the folder of `initdb` and `postgres`: installed ones, or those of pgserver."""
    found = shutil.which("initdb")
    places = [] if found is None else [Path(found).resolve().parent]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    spec = find_spec("pgserver")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "pginstall" / "bin")
    return next((it for it in places if (it / "initdb").exists()), None)


@contextmanager
def little_server(*settings: str) -> Iterator[LittleServer]:
    """Make a server, let it run, and remove it with all its data.

    `settings` are of postgresql.conf, such as "shared_buffers=64MB".
    """
    programs = find_programs()
    if programs is None:
        raise LogError(
            "A server of one's own needs PostgreSQL: found no initdb. Install PostgreSQL, run "
            "pip install pgserver, or name a server by its URL."
        )
    folder = Path(tempfile.mkdtemp(prefix="fastbandit-pg-"))
    server = LittleServer(programs, folder, settings=settings)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


class LittleServer:
    """A server that listens on a socket in its folder, and nowhere else.

    PostgreSQL refuses to run as root: it then runs as the user postgres, or nobody.
    """

    def __init__(self, programs: Path, folder: Path, *, settings: tuple[str, ...] = ()) -> None:
        self._programs, self._folder, self._settings = programs, folder, settings
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _another_user() if os.getuid() == 0 else None
        self.url = f"postgresql://fastbandit@/postgres?host={folder}"

    @property
    def process(self) -> int:
        """The number of the process of the server, while it runs."""
        assert self._process is not None, "the server was started"
        return self._process.pid

    def make(self) -> None:
        """Make an empty database."""
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        given = ("-U", "fastbandit", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        made = self._run("initdb", "-D", f"{self._folder}/data", *given)
        if made.wait() != 0:
            raise self._failed("initdb")

    def start(self) -> None:
        """Start, and return when connections are taken."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            if self._process is None or self._process.poll() is not None:
                # also where processes of a killed server have not ended yet
                self._process = self._run("postgres", *self._arguments())
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise self._failed("postgres") from None
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End by a signal: SIGINT in an orderly way, SIGQUIT at once, SIGKILL by a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_PATIENCE)
            self._process = None

    def kill(self) -> None:
        """End by a crash."""
        self.stop(signal.SIGKILL)

    def _arguments(self) -> list[str]:
        own = ("listen_addresses=", f"unix_socket_directories={self._folder}")
        options = [part for setting in (*own, *self._settings) for part in ("-c", setting)]
        return ["-D", f"{self._folder}/data", *options]

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._programs / program), *arguments]
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=self._user,
                group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
                extra_groups=None if self._user is None else [],
                start_new_session=True,
            )

    def _failed(self, program: str) -> LogError:
        said = (self._folder / "log").read_text(encoding="utf-8", errors="replace")[-500:]
        return LogError(
            f"A server of one's own needs {program} to run: it failed, and said: {said.strip()}. "
            f"Name a server by its URL instead."
        )


def _another_user() -> str:
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
