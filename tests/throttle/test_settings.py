"""What the job may be told, and what not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from throttle.settings import ThrottleSettings


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("", ()),
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("7-7", (7,)),
        ("0-2,14", (0, 1, 2, 14)),
        ("14,0-2", (0, 1, 2, 14)),
        ("3,1-4,2", (1, 2, 3, 4)),
        ("007", (7,)),
        ("99999", (99_999,)),
    ],
)
def test_partitions_are_numbers_and_spans(
    text: str, partitions: tuple[int, ...]
) -> None:
    """In order and each once, however they were written."""
    assert ThrottleSettings(only_partitions=text).only() == partitions


@pytest.mark.parametrize(
    "text",
    ["a", "-1", "1-", "-", "1--2", "1,", ",1", "1,,2", "1 2", "1, 2", "0x1", "100000"],
)
def test_what_names_no_partitions_is_refused(text: str) -> None:
    """At the start, not at the first window."""
    with pytest.raises(ValidationError, match="only_partitions"):
        ThrottleSettings(only_partitions=text)


@pytest.mark.parametrize("text", ["5-2", "0-3,9-8"])
def test_a_span_that_goes_down_is_refused(text: str) -> None:
    """Read as nothing, it would leave its partitions to nobody."""
    with pytest.raises(ValidationError, match="goes down, it must go up"):
        ThrottleSettings(only_partitions=text)


@given(st.sets(st.integers(0, 400), min_size=1))
def test_any_partitions_can_be_named(partitions: set[int]) -> None:
    """One by one, in any order."""
    text = ",".join(map(str, partitions))
    assert ThrottleSettings(only_partitions=text).only() == tuple(sorted(partitions))


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_new_job_begins_with_the_past_or_without_it(start: str) -> None:
    """There is nothing in between."""
    assert ThrottleSettings(start=start).start == start
    with pytest.raises(ValidationError, match="start"):
        ThrottleSettings(start=start.upper())


@pytest.mark.parametrize("name", ["", "feed:decode", "my_feed.v2.wire:decode_trade"])
def test_a_decoder_is_named_by_module_and_function(name: str) -> None:
    """Or there is none."""
    assert ThrottleSettings(decoder=name).decoder == name


@pytest.mark.parametrize(
    "name", ["decode", "feed:", ":decode", "feed:a.b", "feed:a:b", "1feed:a", "a b:c"]
)
def test_what_names_no_decoder_is_refused(name: str) -> None:
    """A module alone is not a function."""
    with pytest.raises(ValidationError, match="decoder"):
        ThrottleSettings(decoder=name)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the log too, which others have as well."""
    for name, value in {
        "TICKTHROTTLE_ONLY_PARTITIONS": "1-2",
        "TICKTHROTTLE_KAFKA_MARGIN_MS": "70",
        "TICKTHROTTLE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": "one:1,two:2",
        "TICKTHROTTLE_KAFKA_TOPIC": "deals",
    }.items():
        monkeypatch.setenv(name, value)
    settings = ThrottleSettings()
    assert (settings.only(), settings.kafka_margin_ms) == ((1, 2), 70)
    topic = settings.topic()
    assert topic is not None
    assert str(topic) == "topic 'deals' at one:1,two:2"
