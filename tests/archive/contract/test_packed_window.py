"""A packed window comes back byte for byte, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.contract.packed_window import pack_window, unpack_window
from tests.gateway.samples import HYNIX, SAMSUNG, make_row, make_snapshot
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version

positions = st.integers(0, 2**63 - 1)


@given(positions, st.integers(0, 10**15), st.integers(0, 2**63 - 1))
def test_a_window_comes_back(position: int, time_us: int, seq: int) -> None:
    """With positions of any log, and with rows that agree with their version or not."""
    body = b'{"isin":"%b","time":%d,"seq":%d,"price":0.30}' % (
        SAMSUNG.encode(),
        time_us,
        seq,
    )
    rows = (
        Row(SAMSUNG, encode_version(time_us, seq, position), 7, body),
        Row(HYNIX, encode_version(time_us, seq, position), 7, body),
        Row(SAMSUNG, encode_version(time_us + 1, seq, position), 7, body),
        Row(SAMSUNG, b"odd", 1, b'{"a b":"= \\n"}'),
    )
    message = make_snapshot(1, *rows).encode()
    assert unpack_window(pack_window(message)) == message


def test_a_packed_window_is_shorter() -> None:
    """A version is told once."""
    message = make_snapshot(1, make_row(), make_row(HYNIX)).encode()
    assert len(pack_window(message)) < len(message) - 2 * 45


def test_a_quiet_window_is_its_header() -> None:
    message = make_snapshot(1).encode()
    assert pack_window(message) == message


@pytest.mark.parametrize("line", [b"1 2 3", b"1 2 3 {}", b"x y 3 {}"])
def test_what_was_never_packed_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack_window(b"{}\n" + line)
