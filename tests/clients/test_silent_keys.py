"""What is said of keys of which nothing has come."""

from tickthrottle_client.silent_keys import SHOWN, silence_of


def test_ten_keys_are_named_and_the_others_counted() -> None:
    """A whole list of instruments does not fill a screen."""
    keys = [f"key{n}" for n in range(SHOWN + 2)]
    named = ", ".join(keys[:SHOWN])
    since = "not traded since the stream began; the next trade will be told"
    assert silence_of(keys, has_begun=True) == (
        f"nothing yet of {named} and 2 more: {since}"
    )
    assert silence_of(["005930"], has_begun=True) == f"nothing yet of 005930: {since}"


def test_a_stream_that_has_not_begun_is_no_matter_of_the_instrument() -> None:
    """Nothing of anything is there."""
    assert silence_of(["*"], has_begun=False) == (
        "nothing yet of *: the stream has not begun; its first window will be told"
    )
