"""Which issues a request means: by ISIN, code, market or sector. Does no I/O."""

from dataclasses import dataclass

from gateway.issues import Issues
from gateway.problems import Problem
from gateway.protocol import check_key, split_list
from gateway.views import ALL

ISIN_CHARS = 12

MAX_SHOWN_CHARS = 60
"""So much of what was asked for is in the answer that refuses it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request asks for, as it was written; None is what it does not say."""

    isins: str | None = None
    codes: str | None = None
    market: str | None = None
    sector: str | None = None

    def encode(self) -> bytes:
        """Return what tells it from others."""
        return repr((self.isins, self.codes, self.market, self.sector)).encode()


def select(wish: Wish, issues: Issues) -> frozenset[str] | None:
    """Return the ISINs that fit all that is said; None for every issue there is.

    Raises Problem for what is no ISIN, or that no issue is called.
    """
    sets: list[frozenset[str]] = []
    if wish.isins is not None:
        sets.append(frozenset(check_isin(isin) for isin in split_list(wish.isins)))
    if wish.codes is not None:
        sets.append(frozenset(_find_code(c, issues) for c in split_list(wish.codes)))
    if wish.market is not None:
        sets.append(_known("market", wish.market, issues.of_market(wish.market)))
    if wish.sector is not None:
        sets.append(_known("sector", wish.sector, issues.of_sector(wish.sector)))
    return frozenset.intersection(*sets) if sets else None


def resolve(key: str, issues: Issues) -> str:
    """Return the ISIN of an issue that is named by its ISIN or its code.

    Raises Problem: 400 for a bad ISIN, 404 for a code that no issue has.
    """
    if len(key) == ISIN_CHARS:
        return check_isin(key)
    issue = issues.of_code(key)
    if issue is None:
        rule = _without(issues, "codes") or "neither an ISIN nor the code of an issue"
        raise Problem(404, "unknown_key", f"{_shown(key)}: {rule}")
    return issue.isin


def check_isin(text: str) -> str:
    """Return ``text`` if it is an ISIN. Raises Problem."""
    rejection = check_key(text)
    if text == ALL:
        raise Problem(400, "bad_isin", f"{ALL}: leave isins out to get every issue")
    if rejection is not None:
        raise Problem(400, "bad_isin", f"{_shown(text)}: {rejection.message}")
    return text


def _find_code(code: str, issues: Issues) -> str:
    issue = issues.of_code(code)
    if issue is None:
        rule = _without(issues, "codes") or "the code of no issue"
        raise Problem(400, "unknown_key", f"codes: {_shown(code)}: {rule}")
    return issue.isin


def _known(field: str, name: str, found: frozenset[str] | None) -> frozenset[str]:
    if found is None:
        raise Problem(
            400, "unknown_key", f"{field}: {_shown(name)}: the {field} of no issue"
        )
    return found


def _without(issues: Issues, what: str) -> str | None:
    """Say why nothing can be found here at all, None if something can."""
    return None if len(issues) else f"{what} are not known here; ask by ISIN"


def _shown(text: str) -> str:
    is_short = len(text) <= MAX_SHOWN_CHARS
    return text if is_short else text[:MAX_SHOWN_CHARS] + "..."
