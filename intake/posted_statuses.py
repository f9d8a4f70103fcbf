"""What a request to add trading statuses holds, and what of it is refused. Pure."""

from typing import Any

from gateway.admission.tokens import TokenGrant
from ingest.sources.trade_lines import exact_json
from ingest.statuses.trading_status import TradingStatus, check_status_not_ahead
from ingest.trade import InvalidTrade
from intake.bodies import NOT_ALLOWED, BadBody, ReadBody, items_of

MOST_STATUSES = 500
"""Most statuses of one request."""


def read_statuses(
    body: bytes, content_type: str, grant: TokenGrant, now_us: int
) -> tuple[list[tuple[int, TradingStatus]], ReadBody]:
    """Return a body's statuses by their indexes, and what of it is refused.

    Raises BadBody if it cannot be read as a whole.
    """
    statuses: list[tuple[int, TradingStatus]] = []
    refused = ReadBody()
    for index, item in enumerate(items_of(body, content_type, "statuses")):
        if index >= MOST_STATUSES:
            raise BadBody(413, f"a request may have {MOST_STATUSES} statuses")
        try:
            status = _read(item)
            check_status_not_ahead(status, now_us)
        except InvalidTrade as error:
            refused.refuse(index, error.reason, str(error))
            continue
        if grant.allows(status.isin):
            statuses.append((index, status))
        else:
            refused.refuse(index, NOT_ALLOWED, f"isin {status.isin}: not in your token")
    if not statuses and not refused.reasons:
        raise BadBody(400, "the body holds no status")
    return statuses, refused


def _read(item: Any) -> TradingStatus:
    if isinstance(item, InvalidTrade):
        raise item
    if isinstance(item, bytes):
        try:
            item = exact_json(item)
        except (ValueError, RecursionError) as error:
            raise InvalidTrade("not_json", "status", item, str(error)) from None
    if not isinstance(item, dict):
        raise InvalidTrade("not_object", "status", item, "is not a JSON object")
    return TradingStatus.from_fields(item)
