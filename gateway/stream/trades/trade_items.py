"""Entries of the trade log as clients get them, by instrument. Pure."""

from collections.abc import Iterable, Set

from ingest.trade import InvalidTrade, Trade

_HEAD = b'{"isin":"'
_ISIN = slice(len(_HEAD), len(_HEAD) + 12)


def trades_by_instrument(
    entries: Iterable[tuple[int, bytes]], isins: Set[str], window_ms: int
) -> dict[str, list[bytes]]:
    """Return the trades of some instruments as JSON objects, in the log's order.

    An entry is its append time, ms, and its bytes. A trade has all its fields, price
    and size as numbers, and ``window``, the end of the window that it was appended in.
    What takes a trade back is among them; what breaks the rules of a trade is not.
    """
    found: dict[str, list[bytes]] = {}
    for append_ms, payload in entries:
        # Nearly all begin so: what is of others is not taken apart.
        if payload.startswith(_HEAD):
            isin = payload[_ISIN].decode("ascii", "replace")
            if isin not in isins:
                continue
        try:
            trade = Trade.from_wire(payload)
        except InvalidTrade:
            continue
        if trade.isin in isins:
            body = trade.to_row() if trade.is_trade else trade.to_wire()
            window = append_ms - append_ms % window_ms + window_ms
            item = b'%b,"window":%d}' % (body[:-1], window)
            found.setdefault(trade.isin, []).append(item)
    return found
