"""The published message."""

import pytest

from ingest.redis_keys import Keys
from throttle.contract.group import GroupFigures, market_key, sector_key, units
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

ROW = Row(
    "KR7005930003",
    encode_version(1, 2, 3),
    b"37,9170,1829145000,199600,199300",
    b'{"price":0.30}',
)


def test_a_message_survives_the_wire_with_its_price_text() -> None:
    """What is decoded equals what was encoded, to the byte of a price."""
    snapshot = WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, (ROW, ROW))
    assert WindowSnapshot.decode(snapshot.encode()) == snapshot


def test_groups_travel_in_the_header_with_all_their_digits() -> None:
    """What a double would round comes as it was sent; so does the table's version."""
    figures = GroupFigures()
    figures.add_trades(2, units("0.1"), units("123456789012345678901234567890.12"))
    groups = tuple(
        figures.encode(key, 4_000)
        for key in (market_key('a "name",\\'), sector_key(None))
    )
    snapshot = WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, (ROW,), groups, 7)
    assert WindowSnapshot.decode(snapshot.encode()) == snapshot
    assert b'"value":123456789012345678901234567890.12,' in snapshot.encode()


def test_a_table_without_groups_in_a_window_is_told() -> None:
    """A quiet window was joined, too."""
    snapshot = WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, (), (), 7)
    assert WindowSnapshot.decode(snapshot.encode()) == snapshot
    assert snapshot.encode().endswith(b',"instruments":7,"groups":[]}')


@pytest.mark.parametrize(
    "message",
    [
        b"garbage",
        b'{"epoch":"a"}',
        b'{"epoch":"a","offset":1,"window":2,"windows":1,"published":3,"groups":[7]}',
        b'{"epoch":"a","offset":1,"window":2,"windows":1,"published":3}\nx',
    ],
)
def test_a_foreign_message_is_a_value_error(message: bytes) -> None:
    """Whatever comes over the channel, there is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        WindowSnapshot.decode(message)


def test_a_last_value_is_decoded_from_its_field() -> None:
    """The table holds version, offset and the row's bytes."""
    value = encode_version(1, 2, 3) + b' 17 {"a": "b c"}'
    decoded = LastValue.decode(b"KR7005930003", value)
    assert decoded == LastValue(
        "KR7005930003", encode_version(1, 2, 3), 17, b'{"a": "b c"}'
    )


def test_every_key_starts_with_the_namespace() -> None:
    """Two streams share a server by their namespaces, two jobs a stream."""
    keys = Keys("krx")
    names = [keys.meta, keys.last, keys.groups, keys.windows, keys.updates]
    names += [keys.market_updates(market) for market in ("KOSPI", "KOSDAQ")]
    for job in ("throttle", "other"):
        names += [keys.lease(job), keys.ledger(job), keys.batches(job), keys.dead(job)]
    assert all(name.startswith("krx:") for name in names)
    assert len(set(names)) == len(names)


def test_the_trades_of_a_series_are_those_of_its_instrument() -> None:
    """They are in two rows, and counted once."""
    rows = ROW, ROW._replace(isin="KR7005930003@NXT")
    assert WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, rows).trades == 37
