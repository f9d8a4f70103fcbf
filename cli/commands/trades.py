"""The command that shows trades of the log, and refused ones.

Prices and sizes keep their text: a row's JSON is passed on as bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from cli.commands.arguments import (
    BadArgument,
    FromPlace,
    Isin,
    Limit,
    Place,
    check_number,
    format_moment,
    parse_moment_or_place,
)
from cli.commands.setting_options import WITH_JOB, AsJson
from cli.commands.tables import print_json, print_table, shorten
from ingest.trade import REASONS, InvalidTrade, Trade, encode_fields
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from throttle.audit.log_entries import LogEntries
    from throttle.audit.published import PublishedHistory
    from throttle.audit.recompute import Entry, WindowRule
    from throttle.contract.dead_letter import DeadLetter
    from throttle.window.decoder import Decoder, Judged

    JudgedEntry = tuple[Entry, Judged | None]


@WITH_JOB
def trades(
    *,
    dead: Annotated[
        bool, typer.Option("--dead", help="Show refused trades, from dead letters.")
    ] = False,
    from_: FromPlace = None,
    partition: Annotated[
        int | None, typer.Option(help="Only this partition of the log.")
    ] = None,
    isin: Isin = None,
    reason: Annotated[
        str | None, typer.Option(help="Only trades refused for this reason.")
    ] = None,
    limit: Limit = 20,
    raw: Annotated[
        bool, typer.Option("--raw", help="Show the entries' bytes, without a decoder.")
    ] = False,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Show trades of the log, or refused ones, the newest last.

    A position is printed as <partition>:<position>; the same trade has the same one in
    the log and among the dead letters.
    """
    from cli.commands.open_history import check_instrument, open_past
    from throttle.audit.recompute import WindowRule

    with open_past(settings) as past:
        check_number("limit", limit)
        check_instrument(isin)
        start = parse_moment_or_place("from", from_)
        wanted = TradeQuery(start, partition, isin, reason, limit)
        source = past.log()
        decoder, raw = _find_decoder(settings.decoder, raw=raw)
        if dead:
            letters = pick_dead_letters(past.history, source, settings.job, wanted)
        else:
            rule = WindowRule(
                settings.window_ms,
                settings.max_ahead_ms,
                decoder,
                settings.max_entry_bytes,
            )
            entries = pick_trades(source, wanted, None if raw else rule)
    if dead and json:
        for letter in letters:
            print_json(letter_object(letter))
    elif dead:
        print_letters(letters)
    elif json:
        for entry in entries:
            is_decoded = decoder is not None
            print_json(trade_object(*entry, is_decoded=is_decoded))
    else:
        print_trades(entries)


@dataclass(frozen=True, slots=True)
class TradeQuery:
    """Which trades: from where on, and only those of a partition, instrument or reason.

    Without ``start`` the newest ones are meant.
    """

    start: int | Place | None
    partition: int | None
    isin: str | None
    reason: str | None
    limit: int

    def partitions(self, count: int) -> list[int]:
        """Return the partitions to look into, of a log with so many.

        Raises BadArgument for what such a log cannot hold.
        """
        if self.reason is not None and self.reason not in REASONS:
            raise BadArgument(
                f"reason {self.reason}: must be one of {', '.join(REASONS)}"
            )
        start = self.start.partition if isinstance(self.start, Place) else None
        for option, partition in (("partition", self.partition), ("from", start)):
            if partition is not None and not 0 <= partition < count:
                raise BadArgument(
                    f"{option} {self.start if option == 'from' else partition}: "
                    f"the log has the partitions 0 to {count - 1}"
                )
        asked = {p for p in (self.partition, start) if p is not None}
        if len(asked) > 1:
            raise BadArgument(
                f"partition {self.partition}: --from {self.start} is in another one"
            )
        return sorted(asked) or list(range(count))

    def after(
        self,
        partitions: Sequence[int],
        positions_before: Callable[[int, Iterable[int]], Mapping[int, int]],
    ) -> Mapping[int, int]:
        """Return the positions after which to begin; none for the very beginning.

        ``positions_before`` tells them of a moment (``LogEntries``).
        """
        if self.start is None:
            return {}
        if isinstance(self.start, Place):
            # The place before the first one of a topic is -1.
            return dict.fromkeys(partitions, self.start.position - 1)
        return positions_before(self.start, partitions)

    def has(self, judged: Judged | None, payload: bytes) -> bool:
        """Tell if a trade is wanted; a refused one may only name its instrument."""
        if isinstance(judged, Trade):
            return self.reason is None and self.isin in (None, judged.isin)
        reason = judged.reason if isinstance(judged, InvalidTrade) else None
        return self.reason in (None, reason) and self.is_named(payload)

    def is_named(self, payload: bytes) -> bool:
        """Tell if the wanted instrument appears in the bytes of a refused trade."""
        return self.isin is None or self.isin.encode() in payload


def pick_trades(
    log: LogEntries, query: TradeQuery, rule: WindowRule | None
) -> list[JudgedEntry]:
    """Return the wanted trades of a log, newest last; its entries without a rule.

    An entry comes once for each trade it holds.
    """
    from cli.commands.open_history import newest_last

    partitions = query.partitions(log.info.partitions)
    newest_first = query.start is None
    after = query.after(partitions, log.positions_before)
    entries = log.trades(partitions, after, newest_first)
    judged = (
        (entry, one)
        for entry in entries
        for one in ([None] if rule is None else _in_order(rule.judge(entry), query))
    )
    found = (pair for pair in judged if query.has(pair[1], pair[0].payload))
    return newest_last(found, query.limit, newest_first=newest_first)


def pick_dead_letters(
    history: PublishedHistory, log: LogEntries, job: str, query: TradeQuery
) -> list[DeadLetter]:
    """Return a job's wanted dead letters of a log, newest last."""
    from cli.commands.open_history import newest_last

    partitions = query.partitions(log.info.partitions)
    newest_first = query.start is None
    after = query.after(partitions, log.positions_before)
    letters = history.dead_letters(job, partitions, after, newest_first)
    found = (
        letter
        for letter in letters
        if query.reason in (None, letter.reason) and query.is_named(letter.payload)
    )
    return newest_last(found, query.limit, newest_first=newest_first)


def _in_order(held: Sequence[Judged], query: TradeQuery) -> Sequence[Judged]:
    """Return what an entry holds in the direction in which entries come."""
    return held[::-1] if query.start is None else held


def _find_decoder(name: str, *, raw: bool) -> tuple[Decoder | None, bool]:
    """Return the job's decoder, and whether to look without one.

    The log can be looked at where the user's module is not installed.
    """
    from throttle.window.decoder import NoDecoder, find_decoder

    if raw:
        return None, True
    try:
        return find_decoder(name), False
    except NoDecoder as error:
        typer.echo(f"tickthrottle: {error}; entries are shown as they are", err=True)
        return None, True


def trade_object(
    entry: Entry, judged: Judged | None, *, is_decoded: bool = False
) -> bytes:
    """Return an entry of the log for JSON: its trade, or why it is none.

    What is not JSON in the log (``is_decoded``) is shown as what it stands for.
    """
    head = _place_object(entry)
    if isinstance(judged, Trade):
        wire = judged.to_wire() if is_decoded else entry.payload
        return orjson.dumps({**head, "trade": orjson.Fragment(wire)})
    why = {}
    if isinstance(judged, InvalidTrade):
        why = {"reason": judged.reason, "error": str(judged)}
    elif judged is not None:
        why = {"skipped": judged.name}
    return orjson.dumps({**head, **why, **_payload_object(entry.payload)})


def print_trades(entries: Sequence[JudgedEntry]) -> None:
    """Print some entries of the log, one a line."""
    print_table(
        ["position", "appended", "isin", "time", "seq#", "price#", "size#", "more"],
        [
            (
                Place(entry.partition, entry.position),
                format_moment(entry.append_ms),
                *trade_cells(judged, entry.payload),
            )
            for entry, judged in entries
        ],
    )


def letter_object(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter for JSON; its bytes as text, or else in base 64.

    Of a long one only the beginning was kept: then its length and digest, too.
    """
    whole = {"bytes": letter.length, "sha256": letter.sha256}
    is_cut = letter.length is not None
    return {
        **_place_object(letter),
        "reason": letter.reason,
        "error": letter.error,
        **_payload_object(letter.payload),
        **(whole if is_cut else {}),
    }


def print_letters(letters: Sequence[DeadLetter]) -> None:
    """Print some dead letters, one a line."""
    print_table(
        ["position", "appended", "reason", "error", "bytes#", "payload"],
        [
            (
                Place(letter.partition, letter.position),
                format_moment(letter.append_ms),
                *(letter.reason, letter.error, letter.size),
                shorten(letter.payload),
            )
            for letter in letters
        ],
    )


def trade_cells(judged: Judged | None, payload: bytes) -> tuple[object, ...]:
    """Return ISIN, time, seq, price, size and what else is said of an entry's trade."""
    if judged is None:
        return ("", "", "", "", "", shorten(payload))
    if isinstance(judged, InvalidTrade):
        return ("", "", "", "", "", f"refused, {judged.reason}: {judged}")
    if not isinstance(judged, Trade):
        return ("", "", "", "", "", f"skipped, {judged.name}: {shorten(payload)}")
    return (
        *(judged.isin, judged.time_us, judged.seq, judged.price, judged.size),
        encode_fields(judged.extra).decode() if judged.extra else "",
    )


def _place_object(one: Entry | DeadLetter) -> dict[str, Any]:
    place = str(Place(one.partition, one.position))
    return {"position": place, "append_ms": one.append_ms}


def _payload_object(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": b64encode(payload).decode()}
