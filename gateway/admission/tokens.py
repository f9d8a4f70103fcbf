"""Tokens: who may have a stream, of what, how often and until when.

JSON Web Tokens (RFC 7519), signed with the one algorithm and the one key configured.
The claim ``exp`` is required; the claim ``tick`` may narrow what the bearer gets, or
give it the right to write trades::

    {"exp": 1774000000, "tick": {"keys": ["KR7005930003"], "min_interval_ms": 4000}}
    {"exp": 1774000000, "tick": {"write": true}}
    {"exp": 1774000000, "tick": {"keys": ["KR7005930003"], "trades": true}}

A ticket is a token that may stand in an address, where others can read it: it has
``open_until``, and opens nothing after it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jwt

from gateway.settings import Algorithm
from ingest.instrument_table.known_instruments import MARKET, SECTOR, Instruments
from ingest.series import instrument_of
from tickthrottle_client.tick_v1 import ALL, ALL_GROUPS, is_group

CLOCK_SKEW_S = 10
"""The clock of whoever issues tokens may be off by this much."""

MIN_SECRET_BYTES = 32
"""A secret for HS256 is at least as long as its hash (RFC 7518, 3.2)."""

MAX_TOKEN_CHARS = 8_192
"""A longer token is refused unread."""

LONGEST_INTERVAL_MS = 86_400_000
"""A token may allow one price of an instrument a day, and no fewer."""

LONGEST_TICKET_S = 300
"""A ticket opens streams for so long at most."""

LAST_EXP_S = 253_402_300_799
"""A token may last to the end of the year 9999."""

TIME_RULE = f"must be a number of seconds, up to {LAST_EXP_S}"

MAX_RULE_CHARS = 80
"""A refusal repeats this much of what the library says; a stranger may have chosen it.
"""

_UNREADABLE = (
    *(jwt.PyJWTError, ValueError, TypeError, LookupError),
    *(AttributeError, ArithmeticError, RecursionError),
)


class TokenRefused(ValueError):
    """A token that is none of ours, or says what we do not understand."""


class TokenExpired(TokenRefused):
    """A token that was good."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a client may have. ``keys`` is None for every key.

    ``expires_us`` is the time of day, None for never. ``may_write`` is the right to
    append trades of these keys, ``may_follow_trades`` that to have every trade of
    them. ``holder`` tells those who hold tokens apart: by the
    claims ``iss`` and ``sub``, which a renewed token has again, or without ``sub`` by
    the token itself. It is empty where there is no token. ``open_until_s`` is the time
    of day from which it opens nothing more, None if that is ``expires_us``.
    """

    keys: frozenset[str] | None = None
    min_interval_ms: int = 0
    expires_us: int | None = None
    may_write: bool = False
    holder: str = ""
    open_until_s: float | None = None
    may_follow_trades: bool = False

    def allows_trades(self, isin: str) -> bool:
        """Say whether every trade of an instrument may be had.

        A price per interval is none of every trade.
        """
        return self.may_follow_trades and not self.min_interval_ms and self.allows(isin)

    def allows(self, key: str) -> bool:
        """Say whether the key may be watched: who may have all of it, has a part."""
        if self.keys is None or key in self.keys or instrument_of(key) in self.keys:
            return True
        return ALL_GROUPS in self.keys and is_group(key)

    def allows_instrument(self, isin: str, instruments: Instruments) -> bool:
        """Say whether an instrument may be had, by itself, its market or its sector."""
        return self.allows(isin) or any(map(self.allows, _groups_of(isin, instruments)))

    def encode_keys(self) -> bytes:
        """Return what tells the keys from those of other grants."""
        return b"*" if self.keys is None else ",".join(sorted(self.keys)).encode()

    @property
    def allows_everything(self) -> bool:
        """Whether every instrument may be watched, also those yet to come."""
        return self.allows(ALL)


EVERYTHING = TokenGrant(may_follow_trades=True)
"""What a client may have where no tokens are asked for."""


class TokenReader:
    """Checks tokens. Raises ValueError for a key that does not fit the algorithm."""

    def __init__(
        self,
        key: str,
        algorithm: Algorithm,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        if algorithm == "HS256" and len(key.encode()) < MIN_SECRET_BYTES:
            raise ValueError(
                f"a key for HS256 has at least {MIN_SECRET_BYTES} bytes, "
                f"this one has {len(key.encode())}"
            )
        try:
            self._key = jwt.get_algorithm_by_name(algorithm).prepare_key(key)
        except (jwt.InvalidKeyError, ValueError, TypeError) as error:
            raise ValueError(f"not a public key for {algorithm}: {error}") from None
        self._algorithm = algorithm
        self._audience = audience
        self._issuer = issuer

    def read(self, token: str) -> TokenGrant:
        """Return what the token grants.

        Raises TokenExpired, or TokenRefused with the rule that it breaks.
        """
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenRefused(
                f"the token has {len(token)} characters, {MAX_TOKEN_CHARS} are the most"
            )
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[self._algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=CLOCK_SKEW_S,
                options={
                    "require": ["exp"],
                    "verify_aud": self._audience is not None,
                },
            )
        except jwt.ExpiredSignatureError:
            raise TokenExpired("the token has expired") from None
        except _UNREADABLE as error:
            rule = str(error).encode("ascii", "backslashreplace").decode()
            raise TokenRefused(
                f"the token is refused: {rule[:MAX_RULE_CHARS]}"
            ) from None
        grant = _read_grant(claims, _holder(claims, token))
        if _seconds_left(grant) < 0:
            raise TokenExpired("the ticket opens nothing more: its open_until is over")
        return grant

    def read_ticket(self, token: str) -> TokenGrant:
        """Return what a token in an address grants. Raises as ``read`` does."""
        grant = self.read(token)
        if grant.open_until_s is None:
            raise TokenRefused(
                "ticket: a token in an address has the claim tick.open_until; "
                "others show it in the header Authorization"
            )
        if _seconds_left(grant) > LONGEST_TICKET_S + 2 * CLOCK_SKEW_S:
            raise TokenRefused(
                "ticket: its tick.open_until must be within the next "
                f"{LONGEST_TICKET_S} s"
            )
        return grant


def _seconds_left(grant: TokenGrant) -> float:
    """Return for how long it opens streams; negative once it does not."""
    if grant.open_until_s is None:
        return 0
    return grant.open_until_s + CLOCK_SKEW_S - time.time()


def _holder(claims: dict[str, Any], token: str) -> str:
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not isinstance(subject, str) or not subject:
        return f"token {_digest(token)}"
    # Repeated as ASCII: text of a stranger may hold what UTF-8 has no bytes for.
    return f"subject {_digest(f'{issuer!a} {subject!a}')}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _groups_of(isin: str, instruments: Instruments) -> Iterator[str]:
    """Yield the market and the sector that the table says an instrument is of."""
    entry = instruments.get(instrument_of(isin))
    if entry is not None and entry.market is not None:
        yield MARKET + entry.market
    if entry is not None and entry.sector is not None:
        yield SECTOR + entry.sector


def _read_grant(claims: dict[str, Any], holder: str) -> TokenGrant:
    exp, wishes = claims["exp"], claims.get("tick", {})
    if not _is_time(exp):
        raise TokenRefused(f"the token's exp: {TIME_RULE}")
    if not isinstance(wishes, dict):
        raise TokenRefused("the token's tick: must be an object")
    keys, interval = wishes.get("keys"), wishes.get("min_interval_ms", 0)
    if keys is not None and (
        not isinstance(keys, list) or not all(isinstance(key, str) for key in keys)
    ):
        raise TokenRefused("the token's tick.keys: must be a list of text")
    if keys is not None and not all(map(_is_text, keys)):
        raise TokenRefused("the token's tick.keys: half of a character is no text")
    if type(interval) is not int or not 0 <= interval <= LONGEST_INTERVAL_MS:
        raise TokenRefused(
            f"the token's tick.min_interval_ms: must be from 0 to {LONGEST_INTERVAL_MS}"
        )
    rights = {name: wishes.get(name, False) for name in ("write", "trades")}
    for name, right in rights.items():
        if type(right) is not bool:
            raise TokenRefused(f"the token's tick.{name}: must be true or false")
    open_until = wishes.get("open_until")
    if open_until is not None and not _is_time(open_until):
        raise TokenRefused(f"the token's tick.open_until: {TIME_RULE}")
    return TokenGrant(
        None if keys is None or ALL in keys else frozenset(keys),
        interval,
        int((exp + CLOCK_SKEW_S) * 1_000_000),
        rights["write"],
        holder,
        open_until,
        rights["trades"],
    )


def _is_time(value: Any) -> bool:
    """Say whether a claim is a time, in seconds since 1970."""
    return type(value) in (int, float) and bool(value <= LAST_EXP_S)


def _is_text(key: str) -> bool:
    """Say whether a key can be written: JSON may name one half of a surrogate pair."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
