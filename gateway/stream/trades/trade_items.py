"""An entry of the trade log as clients get it who follow every trade. Pure."""

from collections.abc import Set

from ingest.trade import InvalidTrade, Trade

_HEAD = b'{"isin":"'
_ISIN = slice(len(_HEAD), len(_HEAD) + 12)


def encode_entry(
    append_ms: int, payload: bytes, isins: Set[str], window_ms: int
) -> tuple[str, bytes] | None:
    """Return the instrument and the JSON object of an entry, None if it is of no use.

    A trade has all its fields, price and size as numbers, and ``window``, the end of
    the window that it was appended in. What takes a trade back is one, too; what is of
    none of ``isins``, or breaks the rules of a trade, is of no use.
    """
    # Nearly all begin so: what is of others is not taken apart.
    if payload.startswith(_HEAD):
        isin = payload[_ISIN].decode("ascii", "replace")
        if isin not in isins:
            return None
    try:
        trade = Trade.from_wire(payload)
    except InvalidTrade:
        return None
    if trade.isin not in isins:
        return None
    body = trade.to_row() if trade.is_trade else trade.to_wire()
    window = append_ms - append_ms % window_ms + window_ms
    return trade.isin, b'%b,"window":%d}' % (body[:-1], window)
