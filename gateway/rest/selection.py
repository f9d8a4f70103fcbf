"""Which instruments a request means: by ISIN, code, market or sector. Pure."""

from dataclasses import dataclass

from gateway.http.authorization import Caller
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.protocol.market_instruments import refusal_of
from gateway.protocol.messages import check_key, split_list
from ingest.instrument_table.known_instruments import Instruments, has_members
from ingest.series import code_of
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import ALL

MOST_NAMED = 1_000
"""This many instruments one parameter may name."""


NO_CODES = "codes are not known here; ask by ISIN"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request asks for, as it was written; None is what it does not say."""

    isins: str | None = None
    codes: str | None = None
    market: str | None = None
    sector: str | None = None

    def encode(self) -> bytes:
        """Return what tells it from others; names may stand in any order."""
        named = (
            None if text is None else sorted(set(split_list(text)))
            for text in (self.isins, self.codes)
        )
        return repr((*named, self.market, self.sector)).encode()


def select(wish: Wish, instruments: Instruments) -> frozenset[str] | None:
    """Return the ISINs that fit all that is said; None for every instrument there is.

    Raises Problem for what is no ISIN, or that no instrument is called.
    """
    sets: list[frozenset[str]] = []
    if wish.isins is not None:
        names = _split("isins", wish.isins)
        sets.append(frozenset(instruments.isin_of(n) or check_isin(n) for n in names))
    if wish.codes is not None:
        codes = _split("codes", wish.codes)
        sets.append(frozenset(_find_code(code, instruments) for code in codes))
    for field, name in (("market", wish.market), ("sector", wish.sector)):
        if name is not None:
            sets.append(_find_members(field, name, instruments))
    return frozenset.intersection(*sets) if sets else None


def check_named(wish: Wish, caller: Caller) -> None:
    """Return if all instruments that are named singly may be had. Raises Problem."""
    for text in (wish.isins, wish.codes):
        for name in sorted(set(split_list(text or ""))):
            caller.check_allowed(caller.instruments.isin_of(name) or name, name)


def _split(field: str, text: str) -> tuple[str, ...]:
    names = split_list(text)
    if len(names) > MOST_NAMED:
        detail = f"{field}: {len(names)} are named, {MOST_NAMED} at most"
        raise Problem(400, "bad_request", detail)
    return names


def resolve(key: str, instruments: Instruments) -> str:
    """Return the ISIN of an instrument that is named by its ISIN or its code.

    Raises Problem: 400 for a bad ISIN, 404 for a code that no instrument has, and for
    an instrument that is not served here.
    """
    refusal = refusal_of(key, instruments)
    if refusal is not None:
        raise Problem(404, "not_served", f"{shorten(key)}: {refusal}")
    if len(code_of(key)) == ISIN_CHARS:
        return check_isin(key)
    isin = instruments.isin_of(key)
    if isin is None:
        rule = "neither an ISIN nor the code of an instrument"
        rule = rule if len(instruments) else NO_CODES
        raise Problem(404, "unknown_key", f"{shorten(key)}: {rule}")
    return isin


def check_isin(text: str) -> str:
    """Return ``text`` if it is an ISIN. Raises Problem."""
    rejection = check_key(text)
    if text == ALL:
        rule = "leave isins out to get every instrument"
    elif has_members(text):
        rule = "is no ISIN; ask with market= or sector="
    elif rejection is not None:
        rule = rejection.message
    else:
        return text
    raise Problem(400, "bad_isin", f"{shorten(text)}: {rule}")


def _find_code(code: str, instruments: Instruments) -> str:
    isin = instruments.isin_of(code)
    if isin is None:
        rule = "the code of no instrument" if len(instruments) else NO_CODES
        raise Problem(400, "unknown_key", f"codes: {shorten(code)}: {rule}")
    return isin


def _find_members(field: str, name: str, instruments: Instruments) -> frozenset[str]:
    key = f"{field}:{name}"
    isins = instruments.members(key)
    if isins is None:
        refusal = refusal_of(key, instruments)
        code = "unknown_key" if refusal is None else "not_served"
        rule = refusal or f"the {field} of no instrument"
        raise Problem(400, code, f"{field}: {shorten(name)}: {rule}")
    return isins
