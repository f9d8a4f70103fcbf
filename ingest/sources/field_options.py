"""What a record's fields become before they are a trade: the options. Pure."""

import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, InstanceOf

from ingest.conditions.table_choice import ChoiceOption
from ingest.decimals import plain_decimal
from ingest.files.file_form import FrozenOptions, read_by
from ingest.records.leave_out import Condition
from ingest.trade import ISIN_PATTERN, InvalidTrade, check_isin
from tickthrottle_client.key_v1 import Venue
from tickthrottle_client.trade_v1 import check_extra

NUMBERS = ("price", "size")
"""The fields that are decimals."""

_NAME = re.compile(r"[^=,\s][^=,]{0,99}")


def _parse_pairs(text: str, example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, is_pair, value = (side.strip() for side in part.partition("="))
        if not is_pair or not _NAME.fullmatch(name) or not value:
            raise ValueError(f"{part.strip()!r}: must be like {example}")
        if name in pairs:
            raise ValueError(f"{name!r}: is there twice")
        pairs[name] = value
    return pairs


def _parse_constants(value: str) -> dict[str, str]:
    pairs = _parse_pairs(value, "venue=XNAS")
    for name, text in pairs.items():
        if name in ("seq", "time"):
            raise ValueError(f"{name!r}: cannot be the same in all trades")
        try:
            check_extra(name, text)
            if name == "isin" and re.fullmatch(ISIN_PATTERN, text, re.ASCII):
                check_isin(text)
        except InvalidTrade as error:
            raise ValueError(str(error)) from None
    return pairs


def _parse_scale(value: str) -> dict[str, Decimal]:
    factors: dict[str, Decimal] = {}
    for name, text in _parse_pairs(value, "price=1e-9").items():
        _check_number(name)
        try:
            factors[name] = Decimal(plain_decimal(text))
        except ValueError as error:
            raise ValueError(f"{name} {text!r}: {error}") from None
        if not factors[name]:
            raise ValueError(f"{name} {text!r}: must be above zero")
    return factors


def _parse_unsigned(value: object) -> object:
    if not isinstance(value, list | str):
        return value
    text = value if isinstance(value, str) else ",".join(value)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        _check_number(name)
    return frozenset(names)


def _check_number(name: str) -> None:
    if name not in NUMBERS:
        raise ValueError(f"{name!r}: must be {' or '.join(NUMBERS)}")


def _parse_conditions(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    return tuple(Condition.parse(v) if isinstance(v, str) else v for v in value)


class FieldOptions(FrozenOptions):
    """What the fields of a record become."""

    fold: Literal["earlier", "later"] | None = None
    """Which one is meant of a local time that comes twice when summer time ends.
    Without it, such a time is refused.
    """

    set: Annotated[dict[str, str], read_by(_parse_constants)] = Field(
        default_factory=dict
    )
    """Fields that every trade gets, whatever its line says, as
    isin=KR7005930003,venue=XNAS. With date=2026-11-25, or a date that --map names, time
    is the time of that day.
    """

    scale: Annotated[dict[str, Decimal], read_by(_parse_scale)] = Field(
        default_factory=dict
    )
    """What price and size are multiplied by, exactly, as price=1e-9,size=0.001."""

    unsigned: Annotated[frozenset[str], BeforeValidator(_parse_unsigned)] = frozenset()
    """Leave out the sign of these fields, price or price,size: for sources whose sign
    says up or down.
    """

    leave_out: Annotated[
        tuple[InstanceOf[Condition], ...], BeforeValidator(_parse_conditions)
    ] = ()
    """Leave out what meets a condition, and count it: correction=8, a value;
    'conditions~T|U', a code in a list; 'sale~~TU', a character; cancels, anything but
    zero. May be given several times.
    """

    updates: ChoiceOption | None = None
    """Which trades set the last price, widen the range and add to the volume, by their
    sale conditions: a table, the field of the codes, and where they differ by tape that
    of the tape, as us_equities:conditions:tape. A table of your own is a path to it,
    ./table.csv; see docs/conditions.md.
    """

    venue: Annotated[InstanceOf[Venue], read_by(Venue.parse)] | None = None
    """The venue of symbols that have no ISIN: they get keys. XNAS, or XNAS=QM with
    letters of its own, from QM to QZ; see docs/keys.md.
    """
