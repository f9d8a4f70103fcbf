"""Entity tags: when a client has an answer already."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.etag import is_known, make_etag

TAG = make_etag(b"k3x9", b"7")


def test_a_tag_is_strong_and_names_its_identity() -> None:
    """The same identity has the same tag, and where its parts end counts."""
    assert re.fullmatch(r'"[0-9a-f]{24}"', TAG)
    assert make_etag(b"k3x9", b"7") == TAG
    others = [make_etag(b"k3x97"), make_etag(b"k3x", b"97"), make_etag(b"k3x9", b"8")]
    assert len({TAG, *others}) == 4


@pytest.mark.parametrize(
    ("fields", "known"),
    [
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
    ],
)
def test_what_a_client_may_say_of_what_it_has(fields: list[str], known: bool) -> None:
    """Lists, weak tags and the star; what is not well formed matches nothing."""
    assert is_known(TAG, fields) is known


@given(st.lists(st.text(max_size=40), max_size=4))
def test_whatever_is_sent_is_answered(fields: list[str]) -> None:
    """No field is a fault."""
    assert isinstance(is_known(TAG, fields), bool)
