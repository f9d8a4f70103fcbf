"""Who listens."""

from collections import Counter

import pytest

from loadtest.client_mix import Audience, parse_mix

INSTRUMENTS = [f"KR{number:010d}" for number in range(500)]


def test_a_mix_is_shares_or_counts() -> None:
    """Whatever they add up to; all clients are of some kind."""
    assert parse_mix("watch:90,slow:10") == {"watch": 90, "slow": 10}
    assert Audience(10, parse_mix("watch:2, market:1")).counts() == {
        "watch": 7,
        "market": 3,
    }
    assert Audience(3, parse_mix("sse:0.5,polling:0.5")).counts() == {
        "sse": 2,
        "polling": 1,
    }


def test_a_bad_mix_or_audience_is_refused() -> None:
    """With the part or the field, its value and the rule."""
    for text, fault in (
        ("", "mix '': a kind is one of watch, compact"),
        ("watch:1,fast:2", "mix 'fast:2': a kind is one of"),
        ("watch:1,watch:2", "mix 'watch:2': watch is there twice"),
        ("watch", "mix 'watch': after the colon, a number above 0"),
        ("watch:-1", "mix 'watch:-1': after the colon"),
        ("watch:nan", "mix 'watch:nan': after the colon"),
    ):
        with pytest.raises(ValueError, match=fault):
            parse_mix(text)
    for fields, fault in (
        ({"clients": 0}, "clients 0: has to be at least 1"),
        ({"keys": 0}, "keys 0: has to be at least 1"),
        ({"poll_every_s": 0}, "poll_every_s 0: has to be above 0"),
        ({"clients": 125_001}, "at most 250 addresses"),
    ):
        with pytest.raises(ValueError, match=fault):
            Audience(**{"clients": 1, **fields})


def test_members_watch_what_trades_most() -> None:
    """Distinct instruments, popular ones more often; equal arguments, equal members."""
    audience = Audience(600, keys=20)
    members = audience.members(INSTRUMENTS)
    assert members == audience.members(INSTRUMENTS)
    assert all(len(set(member.keys)) == 20 for member in members)
    watched = Counter(key for member in members for key in member.keys)
    assert watched[INSTRUMENTS[0]] > 300 > 30 > watched[INSTRUMENTS[400]] > 0
    assert Counter(member.address for member in members) == {
        "127.0.0.2": 500,
        "127.0.0.3": 100,
    }


def test_a_list_may_hold_nearly_every_instrument() -> None:
    (member,) = Audience(1, keys=500).members(INSTRUMENTS)
    assert sorted(member.keys) == INSTRUMENTS
    with pytest.raises(ValueError, match="keys 501: there are 500 instruments"):
        Audience(1, keys=501).members(INSTRUMENTS)


def test_kinds_have_their_own_pace_and_keys() -> None:
    """Slow and stalled ones watch the market, or they would not back up."""
    kinds = "watch,compact,market,slow,stalled,reconnecting,sse,polling"
    mix = parse_mix(",".join(f"{kind}:1" for kind in kinds.split(",")))
    audience = Audience(8, mix, poll_every_s=1, reconnect_every_s=2, slow_pause_s=3)
    members = {member.kind: member for member in audience.members(INSTRUMENTS)}
    paces = {kind: member.every_s for kind, member in members.items()}
    assert paces == {
        "watch": 0,
        "compact": 0,
        "market": 0,
        "slow": 3,
        "stalled": 30,
        "reconnecting": 2,
        "sse": 0,
        "polling": 1,
    }
    everything = {kind for kind, member in members.items() if member.keys == ("*",)}
    assert everything == {"market", "slow", "stalled"}
