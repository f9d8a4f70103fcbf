"""The command that shows trades of the log, and refused ones.

Prices and sizes keep their text: a row's JSON is passed on as bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

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
from cli.commands.tables import print_items, shorten
from ingest.trade import REASONS, InvalidTrade, Trade, encode_fields
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from throttle.audit.log_entries import LogEntries
    from throttle.audit.published import PublishedHistory
    from throttle.audit.recompute import Entry, WindowRule
    from throttle.contract.dead_letter import DeadLetter
    from throttle.window.decoder import Decoder, Judged

    JudgedEntry = tuple[Entry, Judged | None]

T = TypeVar("T")

_OF_LETTERS = ("position", "appended", "reason", "error", "bytes#", "payload")


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
        decoder = None
        if not raw:
            decoder, raw = _find_decoder(settings)
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
    if dead:
        print_items(letters, json, letter_object, _OF_LETTERS, _letter_cells)
        return
    is_decoded = decoder is not None
    print_items(
        entries,
        json,
        lambda pair: trade_object(*pair, is_decoded=is_decoded),
        ["position", "appended", "isin", "time", "seq#", "price#", "size#", "more"],
        lambda pair: (*_place_cells(pair[0]), *trade_cells(pair[1], pair[0].payload)),
    )


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
        asked = {}
        if self.partition is not None:
            asked[self.partition] = f"partition {self.partition}"
        if isinstance(self.start, Place):
            asked.setdefault(self.start.partition, f"from {self.start}")
        for partition, option in asked.items():
            if not 0 <= partition < count:
                raise BadArgument(
                    f"{option}: the log has the partitions 0 to {count - 1}"
                )
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

    def pick(
        self,
        log: LogEntries,
        read: Callable[[list[int], Mapping[int, int], bool], Iterable[T]],
    ) -> list[T]:
        """Return what is read of a log, newest last, up to ``limit``.

        ``read`` gets the partitions, the positions after which to begin, and whether to
        read the newest first.
        """
        from cli.commands.open_history import newest_last

        partitions = self.partitions(log.info.partitions)
        newest_first = self.start is None
        after = self.after(partitions, log.positions_before)
        items = read(partitions, after, newest_first)
        return newest_last(items, self.limit, newest_first=newest_first)

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

    def read(
        partitions: list[int], after: Mapping[int, int], newest_first: bool
    ) -> Iterable[JudgedEntry]:
        for entry in log.trades(partitions, after, newest_first):
            every = [None] if rule is None else rule.judge(entry)
            for judged in reversed(every) if newest_first else every:
                if query.has(judged, entry.payload):
                    yield entry, judged

    return query.pick(log, read)


def pick_dead_letters(
    history: PublishedHistory, log: LogEntries, job: str, query: TradeQuery
) -> list[DeadLetter]:
    """Return a job's wanted dead letters of a log, newest last."""

    def read(
        partitions: list[int], after: Mapping[int, int], newest_first: bool
    ) -> Iterable[DeadLetter]:
        for letter in history.dead_letters(job, partitions, after, newest_first):
            is_reason = query.reason in (None, letter.reason)
            if is_reason and query.is_named(letter.payload):
                yield letter

    return query.pick(log, read)


def _find_decoder(settings: ThrottleSettings) -> tuple[Decoder | None, bool]:
    """Return the job's decoder, and whether to look without one.

    The log can be looked at where the user's module is not installed.
    """
    from throttle.window.decoder import NoDecoder, find_decoder

    try:
        return find_decoder(settings.decoder, settings.schema_registry_url), False
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


def letter_object(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter for JSON; its bytes as text, or else in base 64.

    Of a long one only the beginning was kept: then its length and digest, too.
    """
    whole = {"bytes": letter.length, "sha256": letter.sha256}
    return {
        **_place_object(letter),
        **{"reason": letter.reason, "error": letter.error},
        **_payload_object(letter.payload),
        **(whole if letter.length is not None else {}),
    }


def _letter_cells(letter: DeadLetter) -> tuple[object, ...]:
    cells = letter.reason, letter.error, letter.size, shorten(letter.payload)
    return (*_place_cells(letter), *cells)


def _place_cells(one: Entry | DeadLetter) -> tuple[object, ...]:
    return Place(one.partition, one.position), format_moment(one.append_ms)


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
