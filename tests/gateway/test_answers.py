"""Bodies that are kept for all who ask for the same."""

from gateway.answers import MAX_PREPARED, Prepared
from gateway.board import Position
from tests.gateway.samples import EPOCH


def test_a_body_is_kept_until_the_stream_goes_on() -> None:
    """Another position forgets all of them."""
    prepared, here = Prepared(), Position(EPOCH, 1, 2_000)
    prepared.keep(here, "a", b"1")
    assert prepared.find(here, "a") == b"1"
    assert prepared.find(here, "b") is None
    assert prepared.find(Position(EPOCH, 2, 4_000), "a") is None
    prepared.keep(Position(EPOCH, 2, 4_000), "b", b"2")
    assert prepared.find(here, "a") is None


def test_only_so_many_are_kept() -> None:
    """Those who ask for something rare cannot fill the memory."""
    prepared, here = Prepared(), Position(EPOCH, 1, 2_000)
    for number in range(MAX_PREPARED + 1):
        prepared.keep(here, str(number), b"")
    assert prepared.find(here, "0") == b""
    assert prepared.find(here, str(MAX_PREPARED)) is None
