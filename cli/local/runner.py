"""The whole pipeline on one machine: starts the parts, watches them, ends them."""

import fcntl
import json
import os
import shutil
import signal
import sys
import threading
import time
import urllib.error
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from rich.console import Console

from cli.local.child import ChildProcess
from cli.local.guardian import Guardian
from cli.local.inheritance import in_words, inherited, variable_name
from cli.local.pipelines import leave_note, remove_note
from cli.local.ports_and_memory import (
    ANOTHER_PORT,
    RunFailed,
    check_memory,
    check_ports,
    lacking_memory,
)
from cli.local.process_tree import Named, job_family, members
from cli.local.run_instruments import instruments_file_of
from cli.local.settings import RunSettings
from cli.local.valkey import valkey_command, wait_for_server
from ingest.adapters.adapter import AdapterFault
from ingest.instrument_table.instrument_entry import BadInstruments
from ingest.instrument_table.instrument_list import read_list
from ingest.instrument_table.instrument_store import TableAway
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import load_list
from ingest.process.direct_http import open_direct
from ingest.process.ports import free_port
from ingest.process.prometheus import forget_process
from ingest.settings import TopicSettings, variable_of
from tickthrottle_client.key_v1 import SymbolKeys, Venue

T = TypeVar("T")

STOP_WITHIN_S = 3.5
SAY_EVERY_S = 15.0
"""While a part starts, what it does is said again after this many seconds."""
ARCHIVE_BYTES = 1_073_741_824
"""Most bytes of a run's archive, unless told otherwise."""
RESTARTS_ALLOWED, RESTARTS_WITHIN_S = 5, 60.0

_HEAD = ("event", "level", "timestamp")
_ERROR = ("error",)


def run_local(
    settings: RunSettings,
    stop: threading.Event,
    tape_form: Sequence[str] = (),
    venue: Venue | None = None,
) -> None:
    """Run everything until ``stop`` is set. Raises RunFailed.

    ``tape_form`` are the arguments of ``replay`` that say how the tape is written,
    ``venue`` is that of symbols without an ISIN, in the tape and in the instrument
    list.

    Leaves no process behind, and takes at most 5 s to stop; if this process is
    killed, a guardian ends the others.
    """
    folder = settings.state_dir / f"run-{settings.port}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder, settings.port)
    except OSError as error:
        raise RunFailed(
            f"state_dir {settings.state_dir}: {error.strerror or error}; set "
            "TICKTHROTTLE_STATE_DIR to a folder that can be written"
        ) from error
    # Its Java belongs to an extra, of which the server is named first.
    from cli.local.preflight import check_parts

    with lock:
        check_ports(settings)
        check_memory()
        for old in folder.iterdir():
            if old.name != "lock":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        runner = Runner(settings, folder, stop, tape_form, venue)
        try:
            check_parts(settings, runner.environment.get("JAVA_HOME"), runner.topic())
            runner.start()
            runner.watch()
        finally:
            runner.stop()


class Runner:
    """The parts of one run.

    Without a feed it is up when the throttle is ready and the gateway answers: no
    trade is waited for. Its server has what it had when it is started again, unless it
    is not ``persistent``: then its end is the run's. ``overrides`` are environment
    variables of the parts that win over all others.
    """

    def __init__(
        self,
        settings: RunSettings,
        folder: Path,
        stop: threading.Event,
        tape_form: Sequence[str] = (),
        venue: Venue | None = None,
        *,
        has_feed: bool = True,
        persistent: bool = True,
        overrides: Mapping[str, str] | None = None,
        console: Console | None = None,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stop = stop
        self._has_feed = has_feed and not settings.follows_log
        self._persistent = persistent
        self._tape_form = tape_form
        self._keys = None if venue is None else SymbolKeys(venue)
        self._console = console or Console(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._parts: dict[str, ChildProcess] = {}
        self._restarts: defaultdict[str, deque[float]] = defaultdict(deque)
        self.incidents: list[str] = []
        """Which part ended and was started again, in words."""
        self._throttle_ready = threading.Event()
        self._last_events: dict[str, str] = {}
        self._is_up = False
        self.logs = folder / "logs"
        """Where every part has its log file."""
        self.logs.mkdir()
        (folder / "valkey").mkdir()
        self._metrics = folder / "metrics"
        self._metrics.mkdir()
        self._redis_port = free_port()
        self.redis_url = f"redis://127.0.0.1:{self._redis_port}/0"
        self._page = f"http://127.0.0.1:{settings.port}/"
        self._operators = f"http://127.0.0.1:{settings.port_for_operators}/"
        self._instruments_file: Path | None = None
        quiet_s = "6" if self._has_feed else "0"
        shared, self._ignored = inherited(os.environ, follows_log=settings.follows_log)
        self.environment: Mapping[str, str] = {
            **shared,
            "REDIS_URL": self.redis_url,
            "TICKTHROTTLE_STATE_DIR": str(folder),
            "TICKTHROTTLE_LOG_LEVEL": settings.log_level,
            # Read here, line by line.
            "TICKTHROTTLE_LOG_FORMAT": "json",
            # One scrape, the gateway's, shows all parts.
            "PROMETHEUS_MULTIPROC_DIR": str(self._metrics),
            "TICKTHROTTLE_METRICS_PORT": "0",
            "TICKTHROTTLE_OPERATORS_PORT": str(settings.port_for_operators),
            "TICKTHROTTLE_QUIET_S": shared.get("TICKTHROTTLE_QUIET_S", quiet_s),
            "PYTHONUNBUFFERED": "1",
            # What parts free goes back to the machine, not into pools of theirs.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "MALLOC_ARENA_MAX": "2",
            **self._log(),
            **self._instruments(),
            **self._archive(shared),
            "TICKTHROTTLE_INCIDENTS_FILE": self._beside("incidents", ".json"),
            **(overrides or {}),
        }
        """What the parts are told."""
        self._guardian = Guardian()

    @property
    def port(self) -> int:
        """Port of the page, REST and the stream."""
        return self._settings.port

    def start(self) -> None:
        """Start the parts in order and wait until the page is live."""
        self._say("starting", f"files in {self._folder}")
        self._say_what_is_odd()
        self._launch("valkey")
        server = self._wait("valkey", lambda: wait_for_server(self.redis_url, 1))
        pages = self._page, self.environment, self._operators
        leave_note(self._folder, os.getpid(), *pages)
        self._say("trade log", f"ready: {server} on 127.0.0.1:{self._redis_port}")
        self._load_instruments()
        self._launch("gateway")
        self._launch("throttle")
        self._say("gateway", "starting")
        self._say("throttle", "starting Spark and warming it up, about twenty seconds")
        self._wait("throttle", self._throttle_ready.is_set)
        self._say("throttle", "ready")
        if self._settings.follows_log:
            self._say("feed", f"none: {self._log_words()}")
        if self._has_feed:
            self._launch("feed")
            self._say("feed", f"ready: {self._feed_words()}")
        self._wait("gateway", self._is_live)
        self._is_up = True
        if self._settings.archive:
            self._launch("archive")
        self._say("operators", f"live: [bold]{self._operators}[/bold]")
        self._say("page", f"live: [bold]{self._page}[/bold]  (Ctrl-C stops everything)")
        if self._settings.analytics != "off":
            # Nobody waits for it, and until now it would have been in the way.
            self._launch("analytics")
            self._say("analytics", f"starting: {self._settings.analytics}")

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
        remove_note(self._folder)
        parts = list(self._parts.values())
        if any(part.exit_code() is None for part in parts):
            self._say("stopping", "")
        # The server last: the others should not see it go.
        others = [part for part in parts if part.name != "valkey"]
        for part in others:
            part.terminate()
        deadline = time.monotonic() + STOP_WITHIN_S
        while not all(p.has_ended() for p in others) and time.monotonic() < deadline:
            time.sleep(0.02)
        for part in parts:
            part.kill()
        # Nothing of it is wanted again, and it may be large.
        shutil.rmtree(self._folder / "valkey", ignore_errors=True)
        self._guardian.close()

    def processes(self) -> list[Named]:
        """Return what runs at the moment, by name; several may have the same."""
        found: list[Named] = []
        for name, part in list(self._parts.items()):
            find = job_family if name in ("throttle", "analytics") else members
            found += find(name, part.group)
        return found

    def topic(self) -> TopicSettings | None:
        """Return where the topic is that this run follows; None without one."""
        if self._settings.trade_log != "kafka" or not self._settings.follows_log:
            return None
        return TopicSettings(redis_url=self.redis_url, **self._log_options())

    def _log_options(self) -> dict[str, Any]:
        """Return what was said of a log that others append to."""
        names = ("trade_log", "kafka_servers", "kafka_topic", "kafka_config")
        options = {name: getattr(self._settings, name) for name in names}
        return {name: value for name, value in options.items() if value is not None}

    def _log(self) -> dict[str, str]:
        settings = self._settings
        if not settings.follows_log:
            return {}
        more = ("decoder", "schema_registry_url", "start")
        options = {**self._log_options(), **{n: getattr(settings, n) for n in more}}
        if settings.instruments_file is not None:
            # It is loaded: into the run's own table, not into somebody else's.
            options["kafka_instruments_topic"] = ""
        return {variable_name(k): str(v) for k, v in options.items() if v is not None}

    def _instruments(self) -> dict[str, str]:
        try:
            file = instruments_file_of(self._settings, self._folder, self._keys)
        except (BadInstruments, AdapterFault) as error:
            raise RunFailed(str(error)) from None
        if file is None:
            return {}
        self._instruments_file = file
        if self._settings.feed is not None:
            # An exchange's feed leaves names as they are, and tells of the day.
            return {}
        # Told once, from here: a simulator that starts again knows no better.
        return {"TICKTHROTTLE_LIST_INSTRUMENTS": "false"}

    def _archive(self, shared: Mapping[str, str]) -> dict[str, str]:
        if not self._settings.archive:
            return {}
        name = "TICKTHROTTLE_ARCHIVE_BYTES"
        return {
            "TICKTHROTTLE_ARCHIVE_DIR": self._beside("archive"),
            name: shared.get(name, str(ARCHIVE_BYTES)),
        }

    def _beside(self, what: str, ending: str = "") -> str:
        """Return a place beside the run's folder, which is emptied at every start."""
        name = f"{what}-{self._settings.port}{ending}"
        return str(self._settings.state_dir / name)

    def _load_instruments(self) -> None:
        if self._instruments_file is None:
            return
        namespace = self.environment.get(variable_of(TopicSettings, "namespace"), "tt")
        # In the run's own server, whatever the environment says.
        own = TopicSettings(
            redis_url=self.redis_url, namespace=namespace, kafka_instruments_topic=""
        )
        try:
            with closing(open_instrument_store(own)) as store:
                instruments = read_list(self._instruments_file, keys=self._keys)
                loaded = load_list(store, instruments, is_forced=True)
        except (BadInstruments, TableAway) as error:
            raise RunFailed(str(error)) from None
        self._say("instruments", f"{loaded.added:,} have names")

    def _launch(self, name: str) -> None:
        command = self._command(name)
        log_file = self.logs / f"{name}.log"
        environment = dict(self.environment)
        part = ChildProcess(name, command, environment, log_file, self._on_event)
        self._parts[name] = part
        self._guardian.watch(part.group)

    def _command(self, name: str) -> Sequence[str]:
        settings = self._settings
        # -P: a module of the working folder must not hide one of ours.
        program = [sys.executable, "-P", "-m", "tickthrottle"]
        if name == "valkey":
            folder = self._folder / "valkey"
            return valkey_command(self._redis_port, folder, keeps_data=self._persistent)
        if name == "gateway":
            return [*program, "gateway", "--port", str(settings.port)]
        if name == "analytics":
            return [*program, "analytics", "--only", settings.analytics]
        if name in ("throttle", "archive"):
            return [*program, name]
        if settings.exchange is not None:
            # The list that the gateway has: whatever is fed has a name there.
            instruments = str(self._instruments_file)
            chosen = settings.feed_symbols
            symbols = ["--symbols", chosen] if chosen and chosen != "*" else []
            feed = [*program, "feed", settings.exchange]
            return [*feed, "--instruments", instruments, *symbols]
        if settings.tape is not None:
            tape, speed = str(settings.tape.resolve()), str(settings.speed)
            form = list(self._tape_form)
            if settings.instruments_file is not None:
                form += ["--instruments", str(settings.instruments_file.resolve())]
            return [*program, "replay", tape, "--speed", speed, "--loop", "0", *form]
        return [*program, "simulate", "--rate", str(settings.rate)]

    def _say_what_is_odd(self) -> None:
        if self._ignored:
            self._say("ignored", in_words(self._ignored))
        warning = lacking_memory(self._settings.analytics != "off")
        if warning is not None:
            self._say("memory", f"warning: {warning}")

    def _log_words(self) -> str:
        topic = self.topic()
        if topic is None:
            return "append trades, for example with tickthrottle ingest"
        where = f"{topic.kafka_topic} at {topic.kafka_servers}"
        return f"trades come from the topic {where}"

    def _feed_words(self) -> str:
        settings = self._settings
        if settings.feed is not None:
            return f"live trades of {settings.feed}"
        if settings.tape is not None:
            return f"{settings.tape.name} at {settings.speed:g} times its speed"
        return f"simulated market, {settings.rate:g} trades/s"

    def _on_event(self, name: str, fields: dict[str, Any]) -> None:
        self._last_events[name] = fields["event"]
        if name == "throttle" and fields["event"] == "ready":
            self._throttle_ready.set()
        # Until all is up, a part that waits for another one is no news.
        elif fields.get("level") in (("warning", "error") if self._is_up else _ERROR):
            details = {k: v for k, v in fields.items() if k not in _HEAD}
            self._say(name, f"{fields['level']}: {fields['event']} {details or ''}")

    def _wait(self, name: str, ask: Callable[[], T]) -> T:
        """Return what ``ask`` does once it is true; raise RunFailed if a part dies.

        However long it takes: how busy the machine is, only its owner can know.
        """
        told_s = time.monotonic()
        while not (answer := ask()):
            if self._stop.is_set():
                raise SystemExit(0)
            time.sleep(0.05)
            for part in self._parts.values():
                if part.exit_code() is not None:
                    raise RunFailed(self._epitaph(part.name))
            if time.monotonic() > told_s + SAY_EVERY_S:
                told_s = time.monotonic()
                doing = self._last_events.get(name, "starting")
                log_file = self._parts[name].log_file
                self._say(name, f"not ready yet: {doing}; its log is {log_file}")
        return answer

    def _is_live(self) -> bool:
        # Ready is a gateway only when trades come.
        path = "health/ready" if self._has_feed else "health/live"
        try:
            with open_direct(f"{self._page}{path}", 1):
                return True
        except urllib.error.HTTPError as error:
            with error, suppress(ValueError):
                health = json.load(error)
                self._last_events["gateway"] = health.get("reason", error.reason)
        except OSError:
            pass
        return False

    def _handle_exit(self, name: str, code: int) -> None:
        forget_process(self._parts[name].group, self._metrics)
        if name == "feed" and code == 0:
            self._say("feed", "ended")
            del self._parts[name]
            return
        if name == "valkey" and not self._persistent:
            raise RunFailed(self._epitaph(name))
        died = self._restarts[name]
        died.append(time.monotonic())
        while died[0] < time.monotonic() - RESTARTS_WITHIN_S:
            died.popleft()
        if len(died) > RESTARTS_ALLOWED:
            if name not in ("archive", "analytics"):
                raise RunFailed(self._epitaph(name))
            # The stream and the page go on without it.
            self._say(name, f"given up: {self._epitaph(name)}")
            del self._parts[name]
            return
        self.incidents.append(f"the {name} ended ({_ending(code)})")
        self._say(name, f"ended ({_ending(code)}), starting it again")
        self._parts[name].kill()
        self._launch(name)

    def _epitaph(self, name: str) -> str:
        part = self._parts[name]
        code = part.exit_code() or 0
        lines = "\n  ".join(part.last_lines(5))
        end = f"the end of {part.log_file}:\n  {lines}"
        return f"the {name} ended ({_ending(code)}); {end}"

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
            f"http://127.0.0.1:{port}/ - stop it, or choose {ANOTHER_PORT}"
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
