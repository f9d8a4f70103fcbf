"""When a client has an answer already, and what is kept for all who ask the same."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.http.conditional import MAX_PREPARED, Prepared, is_known, make_etag
from gateway.stream.board import Position
from tests.gateway.samples import EPOCH

TAG = make_etag(b"k3x9", b"7")


def test_a_tag_is_strong_and_names_its_identity() -> None:
    """The same identity has the same tag, and where its parts end counts."""
    assert re.fullmatch(r'"[0-9a-f]{24}"', TAG)
    assert make_etag(b"k3x9", b"7") == TAG
    others = [make_etag(b"k3x97"), make_etag(b"k3x", b"97"), make_etag(b"k3x9", b"8")]
    assert len({TAG, *others}) == 4


def test_what_a_client_may_say_of_what_it_has() -> None:
    """Lists, weak tags and the star; what is not well formed matches nothing."""
    for fields, known in [
        ([], False),
        ([TAG], True),
        ([f" {TAG}\t"], True),
        ([f"W/{TAG}"], True),
        ([f'"other", W/"a,b",{TAG}'], True),
        (['"other"', TAG], True),
        (["*"], True),
        ([" * "], True),
        (['"*"'], False),
        ([TAG.strip('"')], False),
        ([f"w/{TAG}"], False),
        ([f'other, {TAG}"'], False),
        ([""], False),
        ([TAG[:-1]], False),
    ]:
        assert is_known(TAG, fields) is known


@given(st.lists(st.text(max_size=40), max_size=4))
def test_whatever_is_sent_is_answered(fields: list[str]) -> None:
    """No field is a fault."""
    assert isinstance(is_known(TAG, fields), bool)


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
