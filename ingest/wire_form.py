"""The form in which nearly all trades are written, known at a glance. Pure.

``Trade.from_wire`` is the rule. What is recognised here is valid by it; whatever is not
may be valid all the same, and has to be asked there. It takes a third of the time.
"""

import re

from ingest.trade import (
    FRACTION_PATTERN,
    ISIN_PATTERN,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    REQUIRED,
    RESERVED,
    WHOLE_PATTERN,
    InvalidTrade,
    check_isin,
)
from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS
from tickthrottle_client.updates_v1 import FIELD, PATTERN

_DECIMAL = f"{WHOLE_PATTERN}(?:{FRACTION_PATTERN})?"
_RULED = (*REQUIRED, *RESERVED, FIELD, CANCELS, CORRECTS)
_OTHER_NAME = rf"(?!(?:{'|'.join(_RULED)})\")[a-z0-9_]++"
_TEXT_OR_INTEGER = rf'(?:"[ !#-\[\]-~]*+"|0|-?{WHOLE_PATTERN})'
_WIRE_FORM = re.compile(
    rf'\{{"isin":"({ISIN_PATTERN})","time":([1-9][0-9]{{15}}),'
    rf'"seq":(0|{WHOLE_PATTERN}),"price":"{_DECIMAL}","size":"{_DECIMAL}"'
    rf'(?:,(?:"{_OTHER_NAME}":{_TEXT_OR_INTEGER}|{PATTERN}))*+\}}'.encode()
)


def read_wire(
    payload: bytes, max_bytes: int = MAX_PAYLOAD_BYTES
) -> tuple[str, int, int] | None:
    """Return ISIN, time (us) and seq of a trade that is surely valid, else None."""
    form = _WIRE_FORM.fullmatch(payload)
    if form is None or len(payload) > min(max_bytes, MAX_PAYLOAD_BYTES):
        return None
    isin, time_us, seq = form[1].decode(), int(form[2]), int(form[3])
    if time_us >= LATEST_TIME_US:
        return None
    try:
        return check_isin(isin), time_us, seq
    except InvalidTrade:
        return None
