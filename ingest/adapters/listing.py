"""The instruments of an exchange's feed: symbols, their keys, their list. Pure.

The list has the columns of a gateway's instrument list, and ``symbol``, ``venue``,
``name_en`` and ``tick_size`` besides. It also tells which symbol a computed key is of.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    BadChoice,
    ExchangeInstrument,
    Fetch,
)
from ingest.instrument_table.instrument_entry import MAX_CHARS, visible
from ingest.series import code_of
from ingest.trade import InvalidTrade, check_isin
from tickthrottle_client.key_v1 import BadSymbol, keys_of

COLUMNS = (
    *("isin", "code", "name", "market", "sector", "prev_close"),
    *("symbol", "venue", "name_en", "tick_size"),
)
EVERYTHING = "*"
MOST_SYMBOLS = 20_000

_CODE_FORM = re.compile(r"[0-9A-Za-z._-]{1,11}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FeedInstruments:
    """The symbols a feed follows, in order, each with the ISIN it is logged under."""

    keys: Mapping[str, str]
    listed: Mapping[str, ExchangeInstrument] = field(default_factory=dict)

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self.keys)


def choose_instruments(
    kind: type[Adapter],
    symbols: Sequence[str],
    known: Mapping[str, str] | None,
    fetch: Fetch,
) -> FeedInstruments:
    """Return what a feed follows.

    ``symbols`` are those that were asked for, ``known`` ISINs by symbol of an
    instrument list. Without either it is what the adapter chooses of the exchange's own
    list; ``*`` is all of that list. Symbols become what the exchange's frames call
    them. Raises BadChoice, and AdapterFault as ``fetch`` does.
    """
    listed: dict[str, ExchangeInstrument] = {}
    is_all = tuple(symbols) == (EVERYTHING,)
    chosen = () if is_all else _in_form(kind, symbols)
    known = _known_in_form(kind, known or {})
    if is_all or not (chosen or known):
        listed = _own_list(kind, fetch)
        chosen = tuple(s for s in listed if is_all or kind.chosen(s))
    elif not chosen:
        chosen = _in_form(kind, known)
    if not chosen:
        raise BadChoice(
            f"{kind.name} has no list of its own: name symbols with --symbols, or give "
            "an instrument list with --instruments"
        )
    room = kind.symbols_a_connection * kind.most_connections
    for most, rule in (
        (MOST_SYMBOLS, f"at most {MOST_SYMBOLS} can be followed"),
        (room, f"{kind.name} gives one feed at most {room}"),
    ):
        if len(chosen) > most:
            raise BadChoice(f"{len(chosen)} symbols: {rule}")
    return FeedInstruments(_keys(kind, chosen, known), listed)


def _in_form(kind: type[Adapter], symbols: Iterable[str]) -> tuple[str, ...]:
    """Return symbols as the exchange writes them, each once. Raises BadChoice."""
    return tuple(dict.fromkeys(_canonical(kind, symbol) for symbol in symbols))


def _canonical(kind: type[Adapter], symbol: str) -> str:
    try:
        return kind.canonical(symbol)
    except BadChoice:
        raise
    except Exception as error:  # noqa: BLE001 - a user's adapter may raise anything
        words = f"{type(error).__name__}: {error}"
        raise BadChoice(f"symbol {symbol!r}: {words}") from None


def _known_in_form(kind: type[Adapter], known: Mapping[str, str]) -> dict[str, str]:
    """Return the ISINs of a list by the exchange's symbols.

    A symbol that cannot be the exchange's stays: it is refused if it is followed.
    """
    isins: dict[str, str] = {}
    for symbol, isin in known.items():
        try:
            name = _canonical(kind, symbol)
        except BadChoice:
            name = symbol
        if isins.setdefault(name, isin) != isin:
            raise BadChoice(f"symbol {name!r}: has two ISINs, {isins[name]} and {isin}")
    return isins


def parse_known(text: str) -> dict[str, str]:
    """Return an instrument list's ISINs by symbol, or by code where it has none.

    Raises BadChoice.
    """
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    known: dict[str, str] = {}
    owners: dict[str, str] = {}
    try:
        header = [name.strip() for name in next(rows, [])]
        by = "symbol" if "symbol" in header else "code"
        if "isin" not in header or by not in header:
            raise BadChoice("line 1: must have the columns isin and symbol, or code")
        for cells in rows:
            if not cells:
                continue
            if len(cells) != len(header):
                raise BadChoice(f"line {rows.line_num}: has {len(cells)} cells")
            symbol = cells[header.index(by)].strip()
            isin = check_isin(cells[header.index("isin")].strip())
            if not symbol:
                continue
            if symbol in known or owners.setdefault(isin, symbol) != symbol:
                raise BadChoice(
                    f"line {rows.line_num}, {by} {symbol!r}: is there twice"
                )
            known[symbol] = isin
    except InvalidTrade as error:
        raise BadChoice(f"line {rows.line_num}, {error}") from None
    except csv.Error as error:
        raise BadChoice(f"line {rows.line_num}: not CSV: {error}") from None
    return known


def encode_listing(kind: type[Adapter], instruments: FeedInstruments) -> str:
    """Return the instrument list of a feed as CSV with a header."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    owners: dict[str, str] = {}
    for symbol, isin in instruments.keys.items():
        if owners.setdefault(isin, symbol) != symbol:
            # Of another venue.
            continue
        instrument = instruments.listed.get(symbol, ExchangeInstrument(symbol))
        code = code_of(symbol) if _CODE_FORM.fullmatch(code_of(symbol)) else ""
        texts = (
            instrument.name or symbol,
            instrument.sector,
            instrument.name_en,
            instrument.tick_size,
        )
        # One odd name in an exchange's list costs no other instrument its name.
        name, sector, *others = (visible(text)[:MAX_CHARS] for text in texts)
        row = (isin, code, name, kind.venue, sector, "", symbol, kind.venue)
        writer.writerow((*row, *others))
    return text.getvalue()


def _own_list(kind: type[Adapter], fetch: Fetch) -> dict[str, ExchangeInstrument]:
    try:
        return {instrument.symbol: instrument for instrument in kind.listed(fetch)}
    except AdapterFault:
        raise
    except Exception as error:  # noqa: BLE001 - a user's adapter may raise anything
        told = str(error) or type(error).__name__
        raise BadChoice(f"its list of symbols cannot be read: {told}") from None


def _keys(
    kind: type[Adapter], symbols: Iterable[str], known: Mapping[str, str]
) -> dict[str, str]:
    # An instrument of several venues is in a list once.
    isins = {
        s: known.get(s) or known.get(code_of(s)) or kind.isin_of(s) for s in symbols
    }
    without = [symbol for symbol, isin in isins.items() if isin is None]
    if without and not kind.prefix:
        raise BadChoice(
            f"symbol {without[0]!r}: has no ISIN by rule; give an instrument list with "
            "--instruments that has it"
        )
    try:
        made = keys_of(kind.prefix, without)
    except BadSymbol as error:
        raise BadChoice(str(error)) from None
    keys = {symbol: isin or made[symbol] for symbol, isin in isins.items()}
    owners: dict[str, str] = {}
    for symbol, isin in keys.items():
        if code_of(owners.setdefault(isin, symbol)) != code_of(symbol):
            raise BadChoice(f"symbols {owners[isin]!r} and {symbol!r}: both are {isin}")
    return keys
