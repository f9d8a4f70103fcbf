"""Runs the intake: a server for requests, and a feed that appends what they hold."""

import threading
import time

import structlog
from prometheus_client import CollectorRegistry

from gateway.named_files import create_token_reader
from gateway.server import BACKLOG, PortTaken, bind_public, create_server, url_of
from gateway.server import stop_signals_end_quietly as quietly
from ingest.feed.run import FeedError, run_supply
from ingest.instrument_table.instrument_list import read_symbols
from ingest.sources.trade_lines import LineOptions, LineReader
from intake.intake_app import (
    ANSWER_S,
    REQUEST_BYTES,
    IntakeMetrics,
    IntakeState,
    create_app,
)
from intake.room import WAITING_BYTES, Room
from intake.settings import IntakeSettings
from intake.waiting_requests import Requests
from tickthrottle_client.redis_primary import connect_async

_APPENDED_WITHIN_S = 10.0

log = structlog.get_logger()


class IntakeFailed(RuntimeError):
    """The intake cannot run or cannot go on; the message says why."""


def run_intake(
    settings: IntakeSettings,
    *,
    waiting_bytes: int = WAITING_BYTES,
    answer_s: float = ANSWER_S,
) -> None:
    """Serve until SIGINT or SIGTERM; what was taken in is appended first.

    Raises IntakeFailed if its port cannot be taken, if a file named in the settings
    cannot be read, or if the log cannot be used.
    """
    registry = CollectorRegistry()
    requests = Requests()
    bounds = settings.bounds()
    try:
        tokens, reader = create_token_reader(settings), _create_reader(settings)
        sock = bind_public(bounds)
    except (ValueError, PortTaken) as error:
        raise IntakeFailed(str(error)) from error
    state = IntakeState(
        settings,
        requests,
        reader,
        tokens,
        connect_async(settings.redis_url, socket_timeout=3),
        IntakeMetrics(registry),
        Room(waiting_bytes),
        answer_s,
    )
    # From now on a request waits; whoever reads the log's line may send one.
    sock.listen(BACKLOG)
    server = create_server(
        *(create_app(state), bounds, state.counters),
        max_body_bytes=REQUEST_BYTES,
    )
    stop = threading.Event()
    faults: list[Exception] = []

    def opened() -> None:
        state.is_open = True
        log.info("intake listening", url=url_of(sock))

    def append() -> None:
        try:
            run_supply(
                *("intake", settings, requests, stop, registry),
                on_open=opened,
                on_append=requests.acknowledged,
            )
        except FeedError as error:
            faults.append(error)
        finally:
            requests.give_up()
            server.should_exit = True

    feed = threading.Thread(target=append, name="intake", daemon=True)
    with quietly(server):
        # It says that it is ready: whoever waited for that may send the signal at once.
        feed.start()
        server.run(sockets=[sock])
    stop.set()
    feed.join(_APPENDED_WITHIN_S)
    log.info("intake stopped")
    if faults:
        raise IntakeFailed(str(faults[0])) from faults[0]


def _create_reader(settings: IntakeSettings) -> LineReader:
    options = LineOptions.model_validate({"venue": settings.intake_venue or None})
    instruments = read_symbols(settings.instruments_file, options.venue)
    return LineReader(options, _now_us(), _now_us, instruments, numbers_missing=True)


def _now_us() -> int:
    return time.time_ns() // 1_000
