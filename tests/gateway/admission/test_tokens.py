"""Tokens: what is believed, and what a bearer may have."""

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.admission.tokens import (
    CLOCK_SKEW_S,
    EVERYTHING,
    LONGEST_TICKET_S,
    TokenExpired,
    TokenReader,
    TokenRefused,
)
from gateway.settings import Algorithm
from tests.gateway.issuer import ODD_TOKENS, SECRET, make_token
from tests.gateway.samples import HYNIX, SAMSUNG


def make_reader(**options: Any) -> TokenReader:
    """Return a reader of the tests' tokens."""
    return TokenReader(SECRET, "HS256", **options)


def test_a_token_without_wishes_grants_everything() -> None:
    """Until it expires, and a little longer: clocks differ."""
    grant = make_reader().read(make_token(exp=2_000_000_000))
    assert grant.allows_everything
    assert grant.allows(SAMSUNG)
    assert grant.expires_us == (2_000_000_000 + CLOCK_SKEW_S) * 1_000_000


def test_a_token_may_name_keys_and_an_interval() -> None:
    """Its bearer gets those keys and no others."""
    wishes = {"keys": [SAMSUNG], "min_interval_ms": 4_000}
    grant = make_reader().read(make_token(tick=wishes))
    assert grant.allows(SAMSUNG)
    assert not grant.allows(HYNIX)
    assert not grant.allows_everything
    assert grant.min_interval_ms == 4_000
    assert make_reader().read(make_token(tick={"keys": ["*"]})).allows_everything
    assert not make_reader().read(make_token(tick={"keys": []})).allows(SAMSUNG)


def test_a_refusal_names_the_rule() -> None:
    """Whoever issues tokens can mend them."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, "exp"),
        ({"nbf": time.time() + 3_600}, "not yet valid"),
        ({"tick": "all"}, "tick: must be an object"),
        ({"tick": {"keys": SAMSUNG}}, "tick.keys: must be a list"),
        ({"tick": {"keys": [1]}}, "tick.keys: must be a list of text"),
        ({"tick": {"min_interval_ms": -1}}, "tick.min_interval_ms: must be from 0"),
        ({"tick": {"min_interval_ms": True}}, "tick.min_interval_ms"),
        ({"tick": {"open_until": "soon"}}, "tick.open_until: must be a number"),
        ({"tick": {"open_until": float("nan")}}, "tick.open_until: must be a number"),
        ({"iss": "somebody else"}, "issuer"),
        ({"aud": "another service"}, "udience"),
    ]
    for claims, rule in cases:
        reader = make_reader(audience="prices", issuer="us")
        claims = {"iss": "us", "aud": "prices", **claims}
        with pytest.raises(TokenRefused, match=rule):
            reader.read(make_token(**claims))


def test_an_expired_token_is_told_from_a_bad_one() -> None:
    """With a newer one, its bearer may come back."""
    with pytest.raises(TokenExpired):
        make_reader().read(make_token(-CLOCK_SKEW_S - 5))


def ticket(within_s: float) -> str:
    """Return a ticket that opens streams for so long."""
    return make_token(3_600, tick={"open_until": time.time() + within_s})


def test_a_ticket_opens_nothing_after_its_time() -> None:
    """Neither in an address nor in a header; what it has opened lasts until exp."""
    reader = make_reader()
    grant = reader.read_ticket(ticket(30))
    assert grant.expires_us is not None
    assert grant.expires_us > (time.time() + 3_000) * 1_000_000
    for read in (reader.read, reader.read_ticket):
        with pytest.raises(TokenExpired, match="open_until is over"):
            read(ticket(-CLOCK_SKEW_S - 5))


def test_what_may_be_read_in_an_address_is_short_lived() -> None:
    """Proxies write addresses into their logs. Times are counted from now."""
    cases: list[tuple[dict[str, float], str]] = [
        ({}, "has the claim tick.open_until"),
        ({"open_until": LONGEST_TICKET_S + 60}, "within the next 300 s"),
        ({"open_until": 9e10}, "within the next 300 s"),
    ]
    for wishes, rule in cases:
        token = make_token(tick={n: time.time() + s for n, s in wishes.items()})
        assert make_reader().read(token).allows_everything
        with pytest.raises(TokenRefused, match=rule):
            make_reader().read_ticket(token)


def test_a_forged_token_is_refused() -> None:
    """Another secret, another algorithm, or none at all: RFC 8725, 3.1."""
    cases: list[str] = [
        "",
        "x",
        "a.b.c",
        "\ud800",
        make_token(key="another secret, which is also long enough"),
        jwt.encode({"exp": 2_000_000_000}, None, algorithm="none"),
        make_token(key=SECRET * 2, algorithm="HS512"),
    ]
    for token in cases:
        with pytest.raises(TokenRefused):
            make_reader().read(token)


def test_an_odd_token_is_refused_in_a_short_sentence() -> None:
    """Whatever its header or its claims hold; it is not repeated at any length."""
    cases: list[str] = list(ODD_TOKENS)
    for token in cases:
        with pytest.raises(TokenRefused) as caught:
            make_reader().read(token)
        assert len(str(caught.value)) <= 120
        assert str(caught.value).isascii()


def test_a_public_key_is_enough() -> None:
    """The gateway can check tokens and not issue any."""
    cases: list[tuple[Algorithm, Any]] = [
        ("RS256", rsa.generate_private_key(65_537, 2_048)),
        ("ES256", ec.generate_private_key(ec.SECP256R1())),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
    ]
    for algorithm, private in cases:
        form = PublicFormat.SubjectPublicKeyInfo
        public = private.public_key().public_bytes(Encoding.PEM, form).decode()
        token = make_token(key=private, algorithm=algorithm)
        assert TokenReader(public, algorithm).read(token).allows_everything
        with pytest.raises(TokenRefused):
            TokenReader(public, algorithm).read(make_token())


def test_a_key_that_does_not_fit_is_named() -> None:
    """At the start, not with the first client."""
    cases: list[tuple[str, Algorithm, str]] = [
        ("short", "HS256", "at least 32 bytes, this one has 5"),
        ("", "HS256", "at least 32 bytes"),
        ("not a key", "RS256", "not a public key for RS256"),
        ("not a key", "ES256", "not a public key for ES256"),
    ]
    for key, algorithm, rule in cases:
        with pytest.raises(ValueError, match=rule):
            TokenReader(key, algorithm)


def test_a_holder_is_told_by_issuer_and_subject() -> None:
    """A renewed token is the same holder's; without a subject it is its own."""
    reader = TokenReader(SECRET, "HS256")

    def holder(**claims: Any) -> str:
        return reader.read(make_token(**claims)).holder

    alice = holder(iss="a", sub="alice")
    assert holder(iss="a", sub="alice", jti="renewed") == alice
    others = [
        holder(iss="b", sub="alice"),
        holder(sub="alice"),
        holder(iss="a", sub="\ud800"),
        holder(iss="a"),
        holder(iss="a", jti="another"),
        "",
    ]
    assert len({alice, *others}) == 7
    assert EVERYTHING.holder == ""
    assert len(holder(sub="x" * 4_000)) == len(alice)
