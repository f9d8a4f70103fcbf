"""Run a feed against a real log: the shell around simulator, replay and pacer."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from types import FrameType

import redis
import structlog
from prometheus_client import CollectorRegistry

from ingest.feed.metrics import FeedMetrics
from ingest.feed.open_writer import Outlet, open_outlet
from ingest.feed.pacer import FeedProgress, FeedReport, run_feed
from ingest.feed.progress import log_report, open_display
from ingest.feed.supply import Arrivals, Ended, Entries, Supply
from ingest.feed.table_news import tell_names
from ingest.feed.tape_recorder import BadTapeFile, TapeFile
from ingest.instrument_table.instrument_list import parse_list, read_symbols
from ingest.process.prometheus import MetricsUnavailable, exposed
from ingest.process.redis_fault import explain
from ingest.process.service_manager import tell_ready
from ingest.settings import IngestSettings
from ingest.sources.event import Event, Refusals
from ingest.sources.faults import Faults
from ingest.sources.market import encode_instruments
from ingest.sources.replay import Replay, ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import PipeOptions, read_pipe, read_tape
from ingest.sources.trade_lines import LineOptions, LineReader
from ingest.tradelog.contract import LogAway, LogUnusable
from tickthrottle_client.receipt_v1 import ReceiptFile

_PUMP_ENDS_WITHIN_S = 2.0

log = structlog.get_logger()


Pump = Callable[[Arrivals], None]
"""Hands over a source's entries as they come, until the source ends, in a thread.

What it raises ends the feed, once all that came before is appended; ``Ended``, from
``Arrivals.put``, tells it that the feed has ended.
"""


class FeedError(RuntimeError):
    """A feed that cannot run; the message says what to do about it."""


def run_simulator(
    settings: IngestSettings,
    simulator: Simulator,
    stop: threading.Event | None = None,
    report_to: Path | None = None,
    record_to: Path | None = None,
) -> FeedReport:
    """Append a simulated market to the log until it closes or is stopped.

    Without ``stop``, SIGINT and SIGTERM end the feed. ``report_to`` is a file to keep
    the feed's receipt in, ``record_to`` one for a tape of what it appended. Raises
    FeedError when the log's server cannot be reached or refuses the log.
    """
    total = None if simulator.total == inf else simulator.total

    @contextmanager
    def named() -> Iterator[Iterable[Event]]:
        # Before the feed's clock starts.
        listed = encode_instruments(simulator.listing()).splitlines(keepends=True)
        tell_names(settings, parse_list(listed).instruments)
        yield simulator.events(_now_us())

    return _run(
        *("simulator", settings, named(), Refusals(), stop, report_to, record_to),
        total=total,
    )


def run_replay(
    settings: IngestSettings,
    tapes: Sequence[Path],
    options: ReplayOptions,
    stop: threading.Event | None = None,
    report_to: Path | None = None,
    faults: Faults | None = None,
    record_to: Path | None = None,
    lines: LineOptions | None = None,
) -> FeedReport:
    """Append recorded tapes to the log until they end or are stopped.

    ``stop``, ``report_to`` and ``record_to`` are as for ``run_simulator``; ``faults``
    are injected into the tapes' trades, ``lines`` says how the tapes are written.
    Raises TapeError for a tape that cannot be played, BadInstruments for the instrument
    list, and FeedError.
    """
    lines = lines or LineOptions()
    refusals = _tally_for(lines)
    instruments = read_symbols(lines.instruments_file, lines.venue)
    read = partial(read_tape, options=lines, instruments=instruments)
    played = Replay(tapes, options, read, tell=log.warning)
    events = played.events(_now_us(), refusals)
    if faults is not None:
        events = faults.inject(events)
    # The tape first: a wrong path is told before a server is asked for.
    source = nullcontext(chain([next(events)], events))
    return _run("replay", settings, source, refusals, stop, report_to, record_to)


def run_pipe(
    settings: IngestSettings,
    path: Path,
    options: PipeOptions,
    stop: threading.Event | None = None,
    report_to: Path | None = None,
    record_to: Path | None = None,
) -> FeedReport:
    """Append what comes out of a pipe until it ends or the feed is stopped.

    ``stop``, ``report_to`` and ``record_to`` are as those of the other feeds. Raises
    PipeError for what cannot be read, BadInstruments, and FeedError as they do.
    """
    instruments = read_symbols(options.instruments_file, options.venue)
    refusals = _tally_for(options)
    reader = LineReader(
        *(options, _now_us(), _now_us, instruments),
        unknown=refusals.unknown_conditions,
        is_whole=path.is_file(),
    )

    def pump(arrivals: Arrivals) -> None:
        for entries in read_pipe(path, reader, refusals, follow=options.follow):
            arrivals.put(entries)

    return run_arrivals(
        "ingest", settings, pump, refusals, stop, report_to, record_to=record_to
    )


def _tally_for(lines: LineOptions) -> Refusals:
    # At the end a condition that nothing has met is told, too.
    return Refusals(left_out=Counter({c.text: 0 for c in lines.leave_out}))


def run_arrivals(
    title: str,
    settings: IngestSettings,
    pump: Pump,
    refusals: Refusals,
    stop: threading.Event | None = None,
    report_to: Path | None = None,
    registry: CollectorRegistry | None = None,
    record_to: Path | None = None,
) -> FeedReport:
    """Append what ``pump`` hands over, at once, until its source ends.

    ``title`` names the feed in logs. The pump starts when the log is open. Without
    ``stop``, SIGINT and SIGTERM end the feed: what it was handed is appended first.
    ``refusals`` is the pump's tally; ``registry`` may have metrics of its own. Raises
    what the pump raises, and FeedError as the other feeds do.
    """
    return _run(
        *(title, settings, _pumped(title, pump), refusals, stop, report_to, record_to),
        registry,
    )


@contextmanager
def _pumped(title: str, pump: Pump) -> Iterator[Arrivals]:
    """Yield what a thread hands over; it is told to end on leaving."""
    arrivals = Arrivals(time.monotonic)

    def work() -> None:
        error: BaseException | None = None
        try:
            pump(arrivals)
        except Ended:
            pass
        except BaseException as raised:  # noqa: BLE001 - it is raised in the feed
            error = raised
        arrivals.close(error)

    # A read of a pipe that nobody writes to cannot be interrupted.
    thread = threading.Thread(target=work, name=title, daemon=True)
    thread.start()
    try:
        yield arrivals
    finally:
        arrivals.stop()
        thread.join(_PUMP_ENDS_WITHIN_S)


def run_supply(
    title: str,
    settings: IngestSettings,
    supply: Supply,
    stop: threading.Event,
    registry: CollectorRegistry,
    on_open: Callable[[], None],
    on_append: Callable[[float], None],
) -> FeedReport:
    """Append what a supply gives until it is over. Raises FeedError as other feeds do.

    ``on_open`` is called once the log is open, ``on_append`` after each append.
    """

    @contextmanager
    def opened() -> Iterator[Supply]:
        on_open()
        yield supply

    return _run(
        *(title, settings, opened(), Refusals(), stop),
        registry=registry,
        on_append=on_append,
    )


def _run(
    title: str,
    settings: IngestSettings,
    source: AbstractContextManager[Iterable[Event] | Supply],
    refusals: Refusals,
    stop: threading.Event | None,
    report_to: Path | None = None,
    record_to: Path | None = None,
    registry: CollectorRegistry | None = None,
    total: float | None = None,
    on_append: Callable[[float], None] | None = None,
) -> FeedReport:
    registry = registry or CollectorRegistry()
    metrics = FeedMetrics(registry)
    try:
        with (
            exposed(settings, registry),
            open_outlet(settings) as outlet,
            _stopping(stop) as flag,
        ):
            if settings.trade_log == "redis":
                metrics.capped_at(settings.trade_log_cap)
            log.info(f"{title}: started", **outlet.place)
            tell_ready()
            with (
                _receipt(report_to, outlet) as keep_receipt,
                _recording(record_to) as keep,
                open_display(title, total) as display,
                source as supply,
            ):
                said: set[str] = set()

                def show(progress: FeedProgress) -> None:
                    display(progress)
                    keep_receipt()
                    _warn_of_unknown(title, refusals, said)
                    metrics.show(progress, refusals, outlet.writer, time.time())

                report = run_feed(
                    supply,
                    outlet.writer,
                    clock=time.monotonic,
                    sleep=time.sleep,
                    stop=flag,
                    on_progress=show,
                    refusals=refusals,
                    on_append=on_append,
                    keep=keep,
                )
    except redis.RedisError as error:
        raise FeedError(explain(settings.redis_url, error)) from error
    except LogAway as error:
        rule = "start one, or set TICKTHROTTLE_KAFKA_SERVERS to where it is"
        raise FeedError(f"{error}; {rule}") from error
    except (LogUnusable, MetricsUnavailable) as error:
        raise FeedError(str(error)) from error
    log_report(title, report)
    return report


@contextmanager
def _receipt(path: Path | None, outlet: Outlet) -> Iterator[Callable[[], None]]:
    """Yield what keeps the receipt new; the last one is written on leaving."""
    if path is None:
        yield lambda: None
        return
    try:
        file = ReceiptFile(
            *(path, outlet.info, outlet.writer, _now_ms()),
            on_failure=lambda error: log.warning(
                "the report cannot be written", error=str(error)
            ),
        )
    except OSError as error:
        raise FeedError(f"report {path}: {error.strerror}") from error
    try:
        yield lambda: file.renew(_now_ms())
    finally:
        file.finish(_now_ms())


def _warn_of_unknown(title: str, refusals: Refusals, said: set[str]) -> None:
    for name in refusals.unknown_conditions.keys() - said:
        said.add(name)
        log.warning(
            f"{title}: unknown sale condition {name}: its trades count for the volume "
            "alone; a table of your own can say more, see docs/conditions.md"
        )


@contextmanager
def _recording(path: Path | None) -> Iterator[Callable[[Entries], None] | None]:
    if path is None:
        yield None
        return
    try:
        tape = TapeFile(path)
    except BadTapeFile as error:
        raise FeedError(str(error)) from None
    with closing(tape):
        yield tape.add


def _now_us() -> int:
    return time.time_ns() // 1_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def _stopping(given: threading.Event | None) -> Iterator[threading.Event]:
    """Yield what ends the feed: the caller's event, or one that signals set."""
    stop = given or threading.Event()
    if given or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    received: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        # Event.set is not reentrant: a second signal must not interrupt it and wait
        # for itself.
        if not received:
            received.append(number)
            stop.set()

    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
