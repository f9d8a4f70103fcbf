"""The whole pipeline on one machine: starts the parts, watches them, ends them."""

import fcntl
import os
import shutil
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from deploy.family import Named, job_family, members
from deploy.guardian import Guardian
from deploy.issues import issues_file_of
from deploy.part import Part
from deploy.ports import free_port, why_taken
from deploy.settings import RunSettings
from deploy.valkey import valkey_command, wait_for_server
from ingest.exposition import forget_process

STOP_WITHIN_S = 3.5
RESTARTS_ALLOWED, RESTARTS_WITHIN_S = 5, 60.0


class RunFailed(RuntimeError):
    """The pipeline cannot start or go on; the message says why."""


def run_local(settings: RunSettings, stop: threading.Event) -> None:
    """Run everything until ``stop`` is set. Raises RunFailed.

    Leaves no process behind, and takes at most 5 s to stop; if this process is
    killed, a guardian ends the others.
    """
    folder = settings.state_dir / f"run-{settings.port}"
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder, settings.port):
        for port in (settings.port, settings.operators_port):
            if (reason := why_taken(port)) is not None:
                raise RunFailed(f"port {port}: {reason}; choose another one with PORT=")
        for old in folder.iterdir():
            if old.name != "lock":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        runner = Runner(settings, folder, stop)
        try:
            runner.start()
            runner.watch()
        finally:
            runner.stop()


class Runner:
    """The parts of one run.

    Without a feed it is up when the throttle is ready and the gateway answers: no
    trade is waited for. ``overrides`` are environment variables of the parts that win
    over all others.
    """

    def __init__(
        self,
        settings: RunSettings,
        folder: Path,
        stop: threading.Event,
        *,
        has_feed: bool = True,
        overrides: Mapping[str, str] | None = None,
        console: Console | None = None,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stop = stop
        self._has_feed = has_feed
        self._console = console or Console(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._parts: dict[str, Part] = {}
        self._restarts: defaultdict[str, deque[float]] = defaultdict(deque)
        self.incidents: list[str] = []
        """Which part ended and was started again, in words."""
        self._throttle_ready = threading.Event()
        self._is_up = False
        (folder / "logs").mkdir()
        (folder / "valkey").mkdir()
        self._metrics = folder / "metrics"
        self._metrics.mkdir()
        self._redis_port = free_port()
        self.redis_url = f"redis://127.0.0.1:{self._redis_port}/0"
        self._page = f"http://127.0.0.1:{settings.port}/"
        self.environment: Mapping[str, str] = {
            **os.environ,
            "REDIS_URL": self.redis_url,
            "TICKTHROTTLE_STATE_DIR": str(folder),
            "TICKTHROTTLE_LOG_LEVEL": settings.log_level,
            # Read here, line by line.
            "TICKTHROTTLE_LOG_FORMAT": "json",
            # One scrape, the gateway's, shows all parts.
            "PROMETHEUS_MULTIPROC_DIR": str(self._metrics),
            "TICKTHROTTLE_METRICS_PORT": "0",
            "TICKTHROTTLE_OPS_PORT": str(settings.operators_port),
            "TICKTHROTTLE_QUIET_S": os.environ.get("TICKTHROTTLE_QUIET_S", "6"),
            "PYTHONUNBUFFERED": "1",
            **self._issues(),
            **(overrides or {}),
        }
        """What the parts are told."""
        self._guardian = Guardian()

    @property
    def port(self) -> int:
        """Port of the page, REST and the stream."""
        return self._settings.port

    @property
    def operators_port(self) -> int:
        """Port of the operators' page."""
        return self._settings.operators_port

    def start(self) -> None:
        """Start the parts in order and wait until the page is live."""
        self._say("starting", f"files in {self._folder}")
        self._launch("valkey")
        server = wait_for_server(self.redis_url, within_s=10)
        if server is None:
            raise RunFailed(self._epitaph("valkey"))
        self._say("trade log", f"ready: {server} on 127.0.0.1:{self._redis_port}")
        self._launch("gateway")
        self._launch("throttle")
        self._say("gateway", "starting")
        self._say("throttle", "starting Spark and warming it up, about half a minute")
        self._wait("throttle", self._throttle_ready.is_set, within_s=180)
        self._say("throttle", "ready")
        if self._has_feed:
            self._launch("feed")
            self._say("feed", f"ready: {self._feed_words()}")
        self._wait("gateway", self._is_live, within_s=60)
        self._is_up = True
        operators = f"http://127.0.0.1:{self._settings.operators_port}/"
        self._say("operators", f"live: [bold]{operators}[/bold]")
        self._say("page", f"live: [bold]{self._page}[/bold]  (Ctrl-C stops everything)")

    def watch(self) -> None:
        """Restart what dies until ``stop`` is set; give up on what dies too often."""
        # Not stop.wait: a signal handler that sets it could find its lock taken.
        while not self._stop.is_set():
            time.sleep(0.1)
            for name, part in list(self._parts.items()):
                code = part.exit_code()
                if code is not None:
                    self._handle_exit(name, code)

    def stop(self) -> None:
        """End every part, the guardian last."""
        parts = list(self._parts.values())
        if any(part.exit_code() is None for part in parts):
            self._say("stopping", "")
        # The server last: the others should not see it go.
        for part in parts:
            if part.name != "valkey":
                part.terminate()
        deadline = time.monotonic() + STOP_WITHIN_S
        others = [part for part in parts if part.name != "valkey"]
        while not all(p.has_ended() for p in others) and time.monotonic() < deadline:
            time.sleep(0.02)
        for part in parts:
            part.kill()
        self._guardian.close()

    def processes(self) -> list[Named]:
        """Return what runs at the moment, by name; several may have the same."""
        found: list[Named] = []
        for name, part in list(self._parts.items()):
            find = job_family if name == "throttle" else members
            found += find(name, part.group)
        return found

    def _issues(self) -> dict[str, str]:
        file = issues_file_of(self._settings, self._folder)
        return {} if file is None else {"TICKTHROTTLE_ISSUES_FILE": str(file)}

    def _launch(self, name: str) -> None:
        command = self._command(name)
        log_file = self._folder / "logs" / f"{name}.log"
        part = Part(name, command, dict(self.environment), log_file, self._on_event)
        self._parts[name] = part
        self._guardian.watch(part.group)

    def _command(self, name: str) -> list[str]:
        settings = self._settings
        program = [sys.executable, "-m", "deploy"]
        if name == "valkey":
            return [*valkey_command(self._redis_port, self._folder / "valkey")]
        if name == "gateway":
            return [*program, "gateway", "--port", str(settings.port)]
        if name == "throttle":
            return [*program, "throttle"]
        if settings.tape is not None:
            tape, speed = str(settings.tape.resolve()), str(settings.speed)
            return [*program, "replay", tape, "--speed", speed, "--loop", "0"]
        return [*program, "simulate", "--rate", str(settings.rate)]

    def _feed_words(self) -> str:
        settings = self._settings
        if settings.tape is not None:
            return f"{settings.tape.name} at {settings.speed:g} times its speed"
        return f"simulated market, {settings.rate:g} trades/s"

    def _on_event(self, name: str, fields: dict[str, Any]) -> None:
        if name == "throttle" and fields["event"] == "ready":
            self._throttle_ready.set()
        elif fields.get("level") in self._shown_levels():
            details = {
                k: v
                for k, v in fields.items()
                if k not in ("event", "level", "timestamp")
            }
            self._say(name, f"{fields['level']}: {fields['event']} {details or ''}")

    def _shown_levels(self) -> tuple[str, ...]:
        # Until all is up, a part that waits for another one is no news.
        return ("warning", "error") if self._is_up else ("error",)

    def _wait(self, name: str, is_ready: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not is_ready():
            if self._stop.is_set():
                raise SystemExit(0)
            time.sleep(0.05)
            for part in self._parts.values():
                if part.exit_code() is not None:
                    raise RunFailed(self._epitaph(part.name))
            if time.monotonic() > deadline:
                raise RunFailed(f"the {name} was not ready within {within_s:g} s")

    def _is_live(self) -> bool:
        # Ready is a gateway only when trades come.
        path = "health/ready" if self._has_feed else "health/live"
        try:
            with urllib.request.urlopen(f"{self._page}{path}", timeout=1):
                return True
        except OSError:
            return False

    def _handle_exit(self, name: str, code: int) -> None:
        forget_process(self._parts[name].group, self._metrics)
        if name == "feed" and code == 0:
            self._say("feed", "ended")
            del self._parts[name]
            return
        if name == "valkey":
            raise RunFailed(self._epitaph(name))
        died = self._restarts[name]
        died.append(time.monotonic())
        while died[0] < time.monotonic() - RESTARTS_WITHIN_S:
            died.popleft()
        if len(died) > RESTARTS_ALLOWED:
            raise RunFailed(self._epitaph(name))
        self.incidents.append(f"the {name} ended ({_ending(code)})")
        self._say(name, f"ended ({_ending(code)}), starting it again")
        self._parts[name].kill()
        self._launch(name)

    def _epitaph(self, name: str) -> str:
        part = self._parts[name]
        code = part.exit_code()
        ended = "does not answer" if code is None else f"ended ({_ending(code)})"
        lines = "\n  ".join(part.last_lines(5))
        return f"the {name} {ended}; the end of {part.log_file}:\n  {lines}"

    def _say(self, what: str, words: str) -> None:
        elapsed = time.monotonic() - self._began
        self._console.print(
            f"[dim]{elapsed:6.1f} s[/dim]  [cyan]{what:<9}[/cyan] {words}"
        )


def _lock(folder: Path, port: int) -> IO[str]:
    file = (folder / "lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        pid = file.read().strip()
        file.close()
        raise RunFailed(
            f"tickthrottle already runs on port {port} (process {pid}): "
            f"http://127.0.0.1:{port}/ - stop it, or choose another port with PORT="
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _ending(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"
