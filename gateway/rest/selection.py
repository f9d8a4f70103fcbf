"""Which issues a request means: by ISIN, code, market or sector. Pure."""

from dataclasses import dataclass

from gateway.http.authorization import Caller
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.protocol.market_issues import refusal_of
from gateway.protocol.messages import check_key, split_list
from ingest.issue_table.known_issues import Issues, has_members
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import ALL

MOST_NAMED = 1_000
"""This many issues one parameter may name."""


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


def select(wish: Wish, issues: Issues) -> frozenset[str] | None:
    """Return the ISINs that fit all that is said; None for every issue there is.

    Raises Problem for what is no ISIN, or that no issue is called.
    """
    sets: list[frozenset[str]] = []
    if wish.isins is not None:
        names = _split("isins", wish.isins)
        sets.append(frozenset(issues.isin_of(n) or check_isin(n) for n in names))
    if wish.codes is not None:
        sets.append(
            frozenset(_find_code(c, issues) for c in _split("codes", wish.codes))
        )
    if wish.market is not None:
        sets.append(_find_members("market", wish.market, issues))
    if wish.sector is not None:
        sets.append(_find_members("sector", wish.sector, issues))
    return frozenset.intersection(*sets) if sets else None


def check_named(wish: Wish, caller: Caller) -> None:
    """Return if all issues that are named one by one may be had. Raises Problem."""
    for text in (wish.isins, wish.codes):
        for name in sorted(set(split_list(text or ""))):
            caller.check_allowed(caller.issues.isin_of(name) or name, name)


def _split(field: str, text: str) -> tuple[str, ...]:
    names = split_list(text)
    if len(names) > MOST_NAMED:
        detail = f"{field}: {len(names)} are named, {MOST_NAMED} at most"
        raise Problem(400, "bad_request", detail)
    return names


def resolve(key: str, issues: Issues) -> str:
    """Return the ISIN of an issue that is named by its ISIN or its code.

    Raises Problem: 400 for a bad ISIN, 404 for a code that no issue has, and for an
    issue that is not served here.
    """
    refusal = refusal_of(key, issues)
    if refusal is not None:
        raise Problem(404, "not_served", f"{shorten(key)}: {refusal}")
    if len(key) == ISIN_CHARS:
        return check_isin(key)
    isin = issues.isin_of(key)
    if isin is None:
        rule = _without(issues, "codes") or "neither an ISIN nor the code of an issue"
        raise Problem(404, "unknown_key", f"{shorten(key)}: {rule}")
    return isin


def check_isin(text: str) -> str:
    """Return ``text`` if it is an ISIN. Raises Problem."""
    rejection = check_key(text)
    if text == ALL:
        raise Problem(400, "bad_isin", f"{ALL}: leave isins out to get every issue")
    if has_members(text):
        detail = f"{shorten(text)}: is no ISIN; ask with market= or sector="
        raise Problem(400, "bad_isin", detail)
    if rejection is not None:
        raise Problem(400, "bad_isin", f"{shorten(text)}: {rejection.message}")
    return text


def _find_code(code: str, issues: Issues) -> str:
    isin = issues.isin_of(code)
    if isin is None:
        rule = _without(issues, "codes") or "the code of no issue"
        raise Problem(400, "unknown_key", f"codes: {shorten(code)}: {rule}")
    return isin


def _find_members(field: str, name: str, issues: Issues) -> frozenset[str]:
    key = f"{field}:{name}"
    isins = issues.members(key)
    if isins is None:
        refusal = refusal_of(key, issues)
        code = "unknown_key" if refusal is None else "not_served"
        rule = refusal or f"the {field} of no issue"
        raise Problem(400, code, f"{field}: {shorten(name)}: {rule}")
    return isins


def _without(issues: Issues, what: str) -> str | None:
    """Say why nothing can be found here at all, None if something can."""
    return None if len(issues) else f"{what} are not known here; ask by ISIN"
