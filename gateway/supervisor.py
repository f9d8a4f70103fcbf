"""Runs several workers of one gateway: replaces those that die or stand still.

Each worker is a process with an event loop of its own. On Linux each listens at the
public port for itself, and the system spreads the connections over them; elsewhere they
share one socket. The operators' socket is shared: whoever answers asks the others.
"""

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import structlog

from gateway.admission.shared_figures import Seat, Tally, take_seat
from gateway.app import create_app
from gateway.named_files import check_files
from gateway.server import (
    GatewayFailed,
    PortTaken,
    bind,
    bind_public,
    listen_at,
    url_of,
)
from gateway.settings import GatewaySettings
from gateway.stream.counters import CounterTotals
from gateway.workers.pulse import BEAT_S, Pulse
from ingest.process.prometheus import forget_process, keep_metrics_as

STOP_S = 10.0
"""A worker that has not stopped after this long is killed."""

STEADY_S = 10.0
"""A worker that lived for less begins again late: after 1, 2, 4, 5 seconds."""

MOST_DELAY_S = 5.0

HAS_OWN_SOCKETS = sys.platform == "linux"
"""Whether the system spreads connections over all who listen at a port."""

Prepare = Callable[[GatewaySettings], None]

log = structlog.get_logger()

_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Post:
    """All that a worker is given. Without ``public`` it takes the port itself."""

    settings: GatewaySettings
    seat: Seat
    folder: Path
    public: socket.socket | None
    operators: socket.socket
    prepare: Prepare


@dataclass(slots=True)
class WorkerProcess:
    """A worker that runs, or begins again at ``due_s``; ``deaths`` without a pause."""

    post: Post
    pulse: Pulse
    process: BaseProcess | None = None
    began_s: float = 0.0
    due_s: float = 0.0
    deaths: int = 0

    def begin(self, now_s: float) -> None:
        """Start the process."""
        with _interrupts_held():
            process = _spawn.Process(
                target=work, args=(self.post,), name=f"worker {self.post.seat.worker}"
            )
            process.start()
        self.process, self.began_s = process, now_s
        self.pulse.begin()

    def kill_if_frozen(self) -> None:
        """Look at its pulse; a process that stands still dies at once."""
        process, worker = self.process, self.post.seat.worker
        if process is not None and self.pulse.look():
            log.error("worker frozen, killed", worker=worker, pid=process.pid)
            process.kill()

    def end(self, now_s: float) -> None:
        """Clear up after the process, which has died; say when to begin again."""
        process, seat = self.process, self.post.seat
        assert process is not None
        process.join()
        has_lasted = now_s - self.began_s >= STEADY_S
        self.deaths = 0 if has_lasted else self.deaths + 1
        delay_s = 0 if has_lasted else min(MOST_DELAY_S, 2.0 ** (self.deaths - 1))
        self.due_s = now_s + delay_s
        log.error(
            "worker died",
            worker=seat.worker,
            pid=process.pid,
            exit_code=process.exitcode,
            again_in_s=delay_s,
        )
        forget_process(seat.name, self.post.settings.metrics_dir)
        clear(seat)
        self.pulse.lose(time.time_ns() // 1_000_000)
        self.process = None
        process.close()


def run_workers(settings: GatewaySettings, prepare: Prepare) -> None:
    """Run ``settings.workers`` of them until SIGINT or SIGTERM.

    ``prepare`` is called in each before anything else: a function that can be imported.
    Raises GatewayFailed if a port cannot be taken, or if a file named in the settings
    cannot be read.
    """
    with ExitStack() as stack:
        try:
            # What is wrong is told once, and here.
            check_files(settings)
            public, operators = bind(settings)
            stack.enter_context(operators)
            ports = public.getsockname()[1], operators.getsockname()[1]
            update = {"port": ports[0], "operators_port": ports[1]}
            settings = settings.model_copy(update=update)
            if HAS_OWN_SOCKETS:
                # Nobody else has it. From now on it is kept, and never listened at.
                public.close()
                public = bind_public(settings, is_shared=True)
            stack.enter_context(public)
        except (PortTaken, ValueError) as error:
            raise GatewayFailed(str(error)) from error
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if settings.metrics_dir is None:
            # Where each can show the metrics of all.
            metrics = folder / "metrics"
            metrics.mkdir()
            settings = settings.model_copy(update={"metrics_dir": metrics})
        wakes = stack.enter_context(_stop_signals())
        first = take_seat(len(CounterTotals.NAMES), settings.workers, _spawn.RawArray)
        shared = None if HAS_OWN_SOCKETS else public
        workers = []
        for number in range(settings.workers):
            seat = replace(first, worker=number, name=f"{os.getpid()}-{number}")
            post = Post(settings, seat, folder, shared, operators, prepare)
            workers.append(WorkerProcess(post, Pulse(seat)))
        log.info(
            "gateway listening",
            url=url_of(public),
            operators=url_of(operators),
            workers=len(workers),
        )
        _watch(workers, wakes)
        _stop(workers)
    log.info("gateway stopped")


def work(post: Post) -> None:
    """Serve as one of the workers until told to stop, or until the supervisor ends."""
    post.prepare(post.settings)
    _name_worker_in_log(post.seat.worker)
    assert post.settings.metrics_dir is not None
    keep_metrics_as(post.seat.name, post.settings.metrics_dir)
    threading.Thread(target=_stop_with_supervisor, daemon=True).start()
    try:
        public = post.public or bind_public(post.settings, is_shared=True)
    except PortTaken as error:
        log.error("a worker cannot listen", error=str(error))
        sys.exit(1)
    app = create_app(post.settings, post.seat, post.folder)
    listening = listen_at(public, post.operators, app, post.settings)
    listening.run()
    if app.has_failed:
        sys.exit(1)


def clear(seat: Seat) -> None:
    """Count nothing of a worker that has died, but keep what it had counted."""
    first = seat.worker * Tally.WIDTH
    for counts in (seat.streams, seat.connections):
        for cell in range(first, first + Tally.WIDTH):
            counts[cell] = 0
    width, counters = len(CounterTotals.NAMES), seat.counters
    for cell in range(seat.worker * width, (seat.worker + 1) * width):
        counters[seat.workers * width + cell % width] += counters[cell]
        counters[cell] = 0


def _watch(workers: list[WorkerProcess], wakes: int) -> None:
    """Begin workers, replace those that are lost, until a stop signal wakes this."""
    looked_s = time.monotonic()
    while True:
        now_s = time.monotonic()
        is_look = now_s - looked_s >= BEAT_S
        looked_s = now_s if is_look else looked_s
        for worker in workers:
            if is_look:
                worker.kill_if_frozen()
            if worker.process is not None and not worker.process.is_alive():
                worker.end(now_s)
            if worker.process is None and worker.due_s <= now_s:
                worker.begin(now_s)
        running = [w.process.sentinel for w in workers if w.process is not None]
        due_s = [w.due_s - now_s for w in workers if w.process is None]
        next_look_s = looked_s + BEAT_S - now_s
        if wakes in wait([*running, wakes], min([*due_s, next_look_s])):
            return


def _stop(workers: list[WorkerProcess]) -> None:
    processes = [w.process for w in workers if w.process is not None]
    for process in processes:
        process.terminate()
    until_s = time.monotonic() + STOP_S
    for process in processes:
        process.join(max(0.0, until_s - time.monotonic()))
        if process.is_alive():
            log.error("worker killed", worker=process.name, pid=process.pid)
            process.kill()
            process.join()


@contextmanager
def _stop_signals() -> Iterator[int]:
    """Give a descriptor that can be read from after SIGINT or SIGTERM."""
    stops = (signal.SIGINT, signal.SIGTERM)
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = {stop: signal.signal(stop, lambda *_: None) for stop in stops}
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    try:
        yield reads
    finally:
        signal.set_wakeup_fd(-1)
        for stop, handler in before.items():
            signal.signal(stop, handler)
        os.close(reads)
        os.close(writes)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes that no Ctrl-C reaches: they are told by the supervisor."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop_with_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    assert supervisor is not None
    wait([supervisor.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _name_worker_in_log(worker: int) -> None:
    def add_worker(
        logger: Any, method: str, line: structlog.typing.EventDict
    ) -> Mapping[str, Any]:
        return {**line, "worker": worker}

    processors = structlog.get_config()["processors"]
    structlog.configure(processors=[add_worker, *processors])
