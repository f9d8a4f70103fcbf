"""Run a feed from an exchange: what a command asked for becomes connections."""

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
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
from ingest.adapters.connection import BATCH, ExchangeFeed, ExchangePlan
from ingest.adapters.exchange_http import fetch
from ingest.adapters.feed_log import FeedLog
from ingest.adapters.intake import Intake
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
from ingest.feed.status_teller import telling_statuses
from ingest.feed.supply import Arrivals, Ended
from ingest.feed.table_news import tell_names, telling_days
from ingest.instrument_table.instrument_list import parse_list
from ingest.settings import IngestSettings
from ingest.sources.event import Refusals
from ingest.sources.exchange_options import ExchangeOptions

_MAX_LIST_BYTES = 64 * 2**20


def at_addresses(kind: type[Adapter], options: ExchangeOptions) -> type[Adapter]:
    """Return the adapter with the addresses that were asked for."""
    asked = {"url": options.url, "rest_url": options.rest_url}
    changed = {name: value for name, value in asked.items() if value is not None}
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
    plan = ExchangePlan(kind, instruments.symbols, secrets, options.silence_s)
    feed_log = FeedLog(
        *(kind.name, intake, instruments.symbols, options.max_ahead_ms, plan.hide)
    )
    tape, recorder = options.replay_raw, None
    if tape is None and options.record_raw is not None:
        recorder = RawRecorder(options.record_raw, kind.name, RAW_TAPE_BYTES)
    lines = encode_listing(kind, instruments).splitlines(keepends=True)
    entries = parse_list(lines).instruments
    by_list = {isin for s, isin in instruments.keys.items() if s in instruments.listed}
    listed = [entry for entry in entries if entry.isin in by_list]
    guessed = [entry for entry in entries if entry.isin not in by_list]

    def begin(arrivals: Arrivals) -> None:
        tell_names(settings, listed, guessed)
        with (
            telling_days(settings, intake.days),
            telling_statuses(settings, intake.statuses),
        ):
            if tape is not None:
                _play(tape, plan, intake, feed_log, arrivals)
                return
            feed = ExchangeFeed(plan, intake, arrivals, metrics, feed_log, recorder)
            with suppress(Ended):
                asyncio.run(feed.run())

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
    metrics.show(intake, 0, 0, False)
    return report


def _table_of(kind: type[Adapter]) -> RuleTable | None:
    try:
        return find_table(kind.conditions) if kind.conditions else None
    except BadTable as error:
        raise BadChoice(f"feed {kind.name}: conditions {error}") from None


def _play(
    tape: Path,
    plan: ExchangePlan,
    intake: Intake,
    feed_log: FeedLog,
    arrivals: Arrivals,
) -> None:
    adapters: dict[int, Adapter] = {}
    said: Counter[int] = Counter()
    batch = []
    for event in read_raw(tape):
        adapter = adapters.get(event.on)
        if adapter is None or isinstance(event, Opened):
            adapter = adapters[event.on] = plan.kind(plan.symbols, {})
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


def _symbols_of(path: Path) -> list[str]:
    opened = (event.symbols for event in read_raw(path) if isinstance(event, Opened))
    return list(dict.fromkeys(symbol for symbols in opened for symbol in symbols))


def _read_known(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _MAX_LIST_BYTES:
            raise BadChoice(f"over {_MAX_LIST_BYTES} bytes")
        return parse_known(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = str(error.strerror)
    except UnicodeDecodeError:
        rule = "must be UTF-8"
    except BadChoice as error:
        rule = str(error)
    raise BadChoice(f"instruments_file {path}: {rule}")
