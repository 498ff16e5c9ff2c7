"""`coterie serve --shards`: a process for each shard, restarted when it ends or hangs."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from secrets import token_urlsafe
from socket import socket
from threading import Event, Thread

import httpx
import msgspec

from coterie.errors import ArgumentError
from coterie.placement import Placement
from coterie.service.http.server import BACKLOG, listen
from coterie.service.settings import ServerSettings
from coterie.service.shards.shard_process import READY, Assignment
from coterie.service.shards.shard_stores import shard_stores

SHORT_LIFE = 5.0
"""Seconds; a shard that lives shorter is started again only after a pause."""
LONGEST_PAUSE = 10.0
HANGING = 10.0
"""Seconds without an answer to a health check after which a shard is killed and started again."""
BETWEEN_CHECKS = 2.0
STOPPING = 30.0
"""Seconds that a shard has to take its last snapshots, beyond the time for requests in flight."""
logger = logging.getLogger(__name__)


class ShardProcess:
    """The process of one shard, and its next ones if it ends."""

    def __init__(self, assignment: Assignment, stopping: Event) -> None:
        """Start the process; `ready` is set when it serves or has failed, `serving` while it serves."""
        self.assignment, self._stopping = assignment, stopping
        self.ready, self.serving, self.restarts = Event(), Event(), 0
        self.failure: str | None = None
        self.process = self._started()
        self._keeper = Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def number(self) -> int:
        """Which shard it is."""
        return self.assignment.placement.shard

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "coterie.service.shards.shard_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=self.assignment.sockets,
            start_new_session=True,  # Ctrl-C in a terminal is for the supervisor
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(self.assignment) + b"\n")
            process.stdin.flush()
        return process

    def _keep(self) -> None:
        """Start the process again whenever it ends, until the service stops."""
        pause = 0.0
        while True:
            began = time.monotonic()
            self._watch_start()
            self.process.wait()
            self.serving.clear()
            assert self.process.stdin is not None
            self.process.stdin.close()
            if self._stopping.is_set() or (self.failure and not self.restarts and not self.ready.is_set()):
                self.ready.set()
                return
            lived = time.monotonic() - began
            pause = min(max(2 * pause, 0.1), LONGEST_PAUSE) if lived < SHORT_LIFE else 0.0
            logger.warning(
                "shard %d ended with code %s, and is started again%s",
                self.number,
                self.process.returncode,
                f": {self.failure}" if self.failure else "",
            )
            if self._stopping.wait(pause):
                return
            self.restarts += 1
            self.process = self._started()

    def _watch_start(self) -> None:
        """Wait until the process serves, or says why it does not."""
        assert self.process.stdout is not None
        with self.process.stdout as output:
            said = output.readline().decode("utf-8", "replace").strip()
        self.failure = None if said == READY else said or "it said nothing"
        if said == READY:
            self.serving.set()
            self.ready.set()

    def kill_if_hanging(self, patience: float = HANGING) -> None:
        """Kill a process that does not answer: a stopped one would keep its users waiting for ever."""
        host, port = self.assignment.addresses[self.number]
        named = f"[{host}]" if ":" in host else host
        process = self.process
        try:
            httpx.get(f"http://{named}:{port}/health/live", timeout=patience, trust_env=False)
        except httpx.TimeoutException:
            # One that still reads its log is not hanging.
            if process is self.process and process.poll() is None and self.serving.is_set():
                logger.warning("shard %d does not answer for %.0f s, and is killed", self.number, patience)
                process.kill()
        except httpx.TransportError:
            pass  # it has just ended, and is started again

    def stop(self, seconds: float) -> None:
        """Let the process answer what is in flight and take last snapshots, or kill it in the end."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            logger.error("shard %d does not end, and is killed", self.number)
            self.process.kill()
            self.process.wait()
        self._keeper.join(5.0)


class Supervisor:
    """All shards of a service on this machine.

    The supervisor owns the listening sockets: one for the whole service, from which every shard accepts, and
    one for each shard. They outlive the shards, so a connection to a shard that restarts is not refused; it
    waits.

    Parameters
    ----------
    settings : ServerSettings
        Of the whole service; `shards` says how many, and `store` is a folder.
    """

    def __init__(self, settings: ServerSettings) -> None:
        """Open the sockets; `start` starts the shards."""
        shards = settings.shards or 1
        self._settings, self._stores = settings, shard_stores(settings.store, shards)
        self._stopping = Event()
        self._sockets: list[socket] = []
        self.shards: list[ShardProcess] = []
        try:
            self.front = self._listen(settings)
            # Port 0 takes free ones; otherwise they follow the port of the service.
            ports = [settings.port and settings.port + 1 + shard for shard in range(shards)]
            self._own = [self._listen(replace(settings, port=port)) for port in ports]
        except BaseException:
            self.close()
            raise
        self.token = token_urlsafe(32)

    def _listen(self, settings: ServerSettings) -> socket:
        made = listen(settings)
        self._sockets.append(made)
        made.listen(BACKLOG)  # from now on connections wait, whether or not a shard runs
        made.set_inheritable(True)
        return made

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each shard, as the others on this machine reach it."""
        found = []
        for one in self._own:
            host, port = one.getsockname()[:2]
            found.append(({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port))
        return found

    def start(self) -> None:
        """Start all shards and wait until they serve; ArgumentError with the reason if one does not."""
        count = len(self._stores)
        for shard, store in enumerate(self._stores):
            settings = replace(self._settings, store=store, shards=None)
            sockets = [self.front.fileno(), self._own[shard].fileno()]
            assignment = Assignment.of(Placement(shard, count), settings, self.addresses, self.token, sockets)
            self.shards.append(ShardProcess(assignment, self._stopping))
        for one in self.shards:
            one.ready.wait()
            if one.failure:
                raise ArgumentError(one.failure)

    def watch(self) -> None:
        """Look after shards that hang, until `stop`."""
        while not self._stopping.wait(BETWEEN_CHECKS):
            checks = [Thread(target=one.kill_if_hanging) for one in self.shards]
            for check in checks:
                check.start()
            for check in checks:
                check.join()

    def stop(self) -> None:
        """Stop all shards, each in its own time."""
        self._stopping.set()
        seconds = self._settings.stop_timeout + STOPPING
        ending = [Thread(target=one.stop, args=(seconds,)) for one in self.shards]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()

    def close(self) -> None:
        """Close the sockets."""
        for one in self._sockets:
            one.close()


@contextmanager
def running_shards(settings: ServerSettings) -> Iterator[Supervisor]:
    """Run a service of several shards until the end of the block."""
    if sys.platform == "win32":
        raise ArgumentError("--shards passes sockets to other processes, which Windows cannot do")
    with ExitStack() as last:
        supervisor = Supervisor(settings)
        last.callback(supervisor.close)
        last.callback(supervisor.stop)
        supervisor.start()
        yield supervisor
