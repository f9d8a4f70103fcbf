"""Run a feed from an exchange: what a command asked for becomes connections."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    BadChoice,
    Reconnect,
    Told,
    TurnedAway,
)
from ingest.adapters.adapter_metrics import AdapterMetrics
from ingest.adapters.connection import BATCH, ExchangePlan, pump_exchange
from ingest.adapters.exchange_http import fetch
from ingest.adapters.feed_log import FeedLog
from ingest.adapters.intake import Entry, Intake
from ingest.adapters.listing import (
    FeedInstruments,
    choose_instruments,
    encode_listing,
    parse_known,
)
from ingest.adapters.raw_tape import RAW_TAPE_BYTES, Opened, RawRecorder, read_raw
from ingest.conditions.known_tables import find_table
from ingest.conditions.rule_table import BadTable, RuleTable
from ingest.feed.pacer import FeedReport
from ingest.feed.run import run_arrivals
from ingest.feed.supply import Arrivals
from ingest.feed.table_news import tell_names, telling_days
from ingest.instrument_table.instrument_list import parse_list
from ingest.settings import IngestSettings
from ingest.sources.event import Refusals
from ingest.sources.exchange_options import ExchangeOptions

_MAX_LIST_BYTES = 64 * 2**20


def at_addresses(kind: type[Adapter], options: ExchangeOptions) -> type[Adapter]:
    """Return the adapter with the addresses that were asked for."""
    own = {"url": options.url, "rest_url": options.rest_url}
    changed = {name: value for name, value in own.items() if value is not None}
    return type(kind.__name__, (kind,), changed) if changed else kind


def find_instruments(kind: type[Adapter], options: ExchangeOptions) -> FeedInstruments:
    """Return what the feed follows. Asks the exchange only if nothing else tells it.

    Raises AdapterFault, or BadChoice for a wrong option; both name the feed.
    """
    symbols = [s for s in (part.strip() for part in options.symbols.split(",")) if s]
    try:
        known = None
        if options.instruments_file is not None:
            known = _read_known(options.instruments_file)
        if options.replay_raw is not None and not symbols and known is None:
            symbols = _symbols_of(options.replay_raw)
        return choose_instruments(kind, symbols, known, fetch)
    except BadChoice as error:
        raise BadChoice(f"feed {kind.name}: {error}") from None
    except AdapterFault as error:
        raise AdapterFault(f"feed {kind.name}: {error}") from None


def run_exchange(
    settings: IngestSettings,
    kind: type[Adapter],
    instruments: FeedInstruments,
    options: ExchangeOptions,
    secrets: Mapping[str, str],
    stop: threading.Event | None = None,
    report_to: Path | None = None,
    record_to: Path | None = None,
) -> FeedReport:
    """Append an exchange's trades, or those of a raw tape, until stopped.

    Raises BadChoice for a table of sale conditions that cannot be used, AdapterFault
    for an exchange that cannot be reached at the start or refuses the feed,
    RawTapeError, and FeedError as the other feeds do.
    """
    refusals, registry = Refusals(), CollectorRegistry()
    table = options.updates or _table_of(kind)
    intake = Intake(kind.venue, kind.numbering, instruments.keys, refusals, table)
    metrics = AdapterMetrics(registry)
    plan = ExchangePlan(
        kind, instruments.symbols, secrets, options.silence_s, options.max_ahead_ms
    )
    feed_log = FeedLog(
        *(kind.name, intake, instruments.symbols, options.max_ahead_ms, plan.hide)
    )
    recorder = None
    if options.replay_raw is not None:
        pump = _pump_tape(kind, instruments, intake, feed_log, options.replay_raw)
    else:
        if options.record_raw is not None:
            recorder = RawRecorder(options.record_raw, kind.name, RAW_TAPE_BYTES)
        pump = pump_exchange(plan, intake, metrics, feed_log, recorder)
    lines = encode_listing(kind, instruments).splitlines(keepends=True)
    entries = parse_list(lines).instruments
    by_list = {
        instruments.keys[s] for s in instruments.symbols if s in instruments.listed
    }
    listed = [entry for entry in entries if entry.isin in by_list]
    guessed = [entry for entry in entries if entry.isin not in by_list]

    def begin(arrivals: Arrivals) -> None:
        tell_names(settings, listed, guessed)
        with telling_days(settings, intake.days):
            pump(arrivals)

    try:
        report = run_arrivals(
            kind.name, settings, begin, refusals, stop, report_to, registry, record_to
        )
    except AdapterFault as error:
        words = plan.hide(str(error))
        raise AdapterFault(f"feed {kind.name}: {words}") from error.__cause__
    finally:
        feed_log.say_end()
        if recorder is not None:
            recorder.close()
    metrics.show(intake, 0, 0)
    return report


def _table_of(kind: type[Adapter]) -> RuleTable | None:
    try:
        return find_table(kind.conditions) if kind.conditions else None
    except BadTable as error:
        raise BadChoice(f"feed {kind.name}: conditions {error}") from None


def _pump_tape(
    kind: type[Adapter],
    instruments: FeedInstruments,
    intake: Intake,
    feed_log: FeedLog,
    path: Path,
) -> Callable[[Arrivals], None]:
    def pump(arrivals: Arrivals) -> None:
        adapters: dict[int, Adapter] = {}
        said: Counter[int] = Counter()
        batch: list[Entry] = []
        for event in read_raw(path):
            adapter = adapters.get(event.on)
            if adapter is None or isinstance(event, Opened):
                adapter = adapters[event.on] = kind(instruments.symbols, {})
            if isinstance(event, Opened):
                continue
            entries, others = intake.read(adapter, event.frame, event.at_us)
            batch += entries
            for piece in others:
                if isinstance(piece, (Told, Reconnect, TurnedAway)):
                    said[event.on] += 1
                    feed_log.exchange_says(piece.words, said[event.on])
            if len(batch) >= BATCH:
                arrivals.put(batch)
                batch = []
        arrivals.put(batch)

    return pump


def _symbols_of(path: Path) -> list[str]:
    opened = (event.symbols for event in read_raw(path) if isinstance(event, Opened))
    return list(dict.fromkeys(symbol for symbols in opened for symbol in symbols))


def _read_known(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _MAX_LIST_BYTES:
            raise BadChoice(f"over {_MAX_LIST_BYTES} bytes")
        return parse_known(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadChoice(f"instruments_file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadChoice(f"instruments_file {path}: must be UTF-8") from None
    except BadChoice as error:
        raise BadChoice(f"instruments_file {path}: {error}") from None
