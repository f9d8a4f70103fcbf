"""A packed window comes back byte for byte, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.contract.packed_window import pack_window, unpack_window
from tests.gateway.samples import HYNIX, SAMSUNG, make_row, make_snapshot
from throttle.contract.snapshot import Row, body_of
from throttle.contract.trade_order import encode_version

positions = st.integers(0, 2**63 - 1)
times, seqs = st.integers(0, 10**15), st.integers(0, 2**63 - 1)
ends = st.lists(
    st.sampled_from(
        ['"price":0.30', '"size":7', '"side":"B2"', '"none":null', '"low":-5', "\0"]
    ),
    min_size=1,
)


@given(st.lists(st.tuples(positions, times, seqs, ends), min_size=1, max_size=20))
def test_a_window_comes_back(rows: list[tuple[int, int, int, list[str]]]) -> None:
    """With positions of any log, and however many numbers each row has."""
    message = make_snapshot(
        1,
        *(
            Row(
                SAMSUNG,
                encode_version(time_us, seq, position),
                b"7",
                b'{"isin":"%b","time":%d,"seq":%d,%b}'
                % (SAMSUNG.encode(), time_us, seq, ",".join(end).encode()),
            )
            for position, time_us, seq, end in rows
        ),
    ).encode()
    assert unpack_window(pack_window(message)) == message


@given(positions, times, seqs, st.integers(1, 9_999))
def test_a_row_of_which_trades_were_taken_back_comes_back(
    position: int, time_us: int, seq: int, revision: int
) -> None:
    """Its version begins with the revision that its body ends with."""
    begin = b'{"isin":"%b","time":%d,"seq":%d' % (SAMSUNG.encode(), time_us, seq)
    body = b'%b,"price":0.30,"size":7,"revision":%d}' % (begin, revision)
    version = encode_version(time_us, seq, position, revision)
    message = make_snapshot(1, Row(SAMSUNG, version, b"7", body)).encode()
    packed = pack_window(message)
    assert unpack_window(packed) == message
    assert version not in packed


@given(positions, times, seqs)
def test_rows_that_are_not_as_they_should_be_come_back(
    position: int, time_us: int, seq: int
) -> None:
    """They disagree with their version, or are none of a throttle's."""
    right = encode_version(time_us, seq, position)
    body = b'{"isin":"%b","time":%d,"seq":%d,"price":0.30}' % (
        SAMSUNG.encode(),
        time_us,
        seq,
    )
    good = Row(SAMSUNG, right, b"7", body)
    for odd in (
        Row(HYNIX, right, b"7", body),
        Row(SAMSUNG, encode_version(time_us + 1, seq, position), b"7", body),
        Row(SAMSUNG, b"odd", b"1", b'{"a b":"= \\n"}'),
    ):
        for rows in ((good, odd), (odd,)):
            message = make_snapshot(1, *rows).encode()
            assert unpack_window(pack_window(message)) == message


def test_a_series_comes_back_as_a_row_of_its_key() -> None:
    """In columns, as an instrument does; what it names is no pattern's matter."""
    row = make_row()
    series = [
        row._replace(isin=key, body=body_of(key, row.body))
        for key in (f"{SAMSUNG}@KRX-regular", f"{SAMSUNG}@NXT")
    ]
    message = make_snapshot(1, row, *series).encode()
    packed = pack_window(message)
    assert not packed.startswith(b"=")
    assert unpack_window(packed) == message


def test_a_packed_window_is_shorter() -> None:
    """What rows have in common is told once."""
    message = make_snapshot(1, make_row(), make_row(HYNIX)).encode()
    assert len(pack_window(message)) < len(message) - 2 * 60


def test_a_quiet_window_is_its_header() -> None:
    message = make_snapshot(1).encode()
    assert pack_window(message) == message


@pytest.mark.parametrize(
    "packed", [b"\n\n1", b"\n\na\n\n0", b"\n\na\n\n9" + b"\n\n1" * 6, b"\n1 2 3 {}"]
)
def test_what_was_never_packed_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="is no window of"):
        unpack_window(b"{}" + packed)
