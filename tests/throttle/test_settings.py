"""What the job may be told, and what not."""

import pytest
from pydantic import ValidationError

from throttle.contract.session_calendar import SessionCalendar, SessionCalendars
from throttle.settings import AnalyticsSettings, ThrottleSettings


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("", ()),
        ("7-7", (7,)),
        ("3,1-4,2", (1, 2, 3, 4)),
        ("99999,007", (7, 99_999)),
    ],
)
def test_partitions_are_numbers_and_spans(
    text: str, partitions: tuple[int, ...]
) -> None:
    """In order and each once, however they were written."""
    assert ThrottleSettings(only_partitions=text).only() == partitions


@pytest.mark.parametrize(
    "text",
    ["a", "-1", "1--2", "1,,2", "1 2", "100000"],
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


@pytest.mark.parametrize("name", ["decode", "feed:", "feed:a:b", "1feed:a"])
def test_what_names_no_decoder_is_refused(name: str) -> None:
    """A module alone is not a function."""
    assert ThrottleSettings(decoder="my_feed.v2.wire:decode_trade").decoder
    with pytest.raises(ValidationError, match="decoder"):
        ThrottleSettings(decoder=name)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the log too, which others have as well."""
    for name, value in {
        "TICKTHROTTLE_ONLY_PARTITIONS": "1-2",
        "TICKTHROTTLE_KAFKA_MARGIN_MS": "70",
        "TICKTHROTTLE_TRADE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": "one:1,two:2",
        "TICKTHROTTLE_KAFKA_TOPIC": "deals",
    }.items():
        monkeypatch.setenv(name, value)
    settings = ThrottleSettings()
    assert (settings.only(), settings.kafka_margin_ms) == ((1, 2), 70)
    topic = settings.topic()
    assert topic is not None
    assert str(topic) == "topic 'deals' at one:1,two:2"


def test_a_heap_with_which_spark_would_not_start_is_refused() -> None:
    """By its name, before a JVM is asked."""
    assert ThrottleSettings(spark_memory_mb=480).spark_memory_mb == 480
    with pytest.raises(ValidationError, match="spark_memory_mb"):
        ThrottleSettings(spark_memory_mb=479)


def test_spark_options_are_json_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable holds as many as one likes."""
    text = '{"spark.cores.max": "4", "spark.driver.host": "10.0.0.1"}'
    monkeypatch.setenv("TICKTHROTTLE_SPARK_CONF", text)
    assert ThrottleSettings().spark_conf == {
        "spark.cores.max": "4",
        "spark.driver.host": "10.0.0.1",
    }


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("spark.cores.max=4", "should be a JSON object such as"),
        ("[]", "should be a valid dictionary"),
        ('{"cores": "4"}', "should match pattern"),
        ('{"spark.cores.max": 4}', "should be a valid string"),
        ('{"spark.master": "yarn"}', "may not be set: set spark_master"),
        ('{"spark.driver.memory": "1g"}', "may not be set: set spark_memory_mb"),
        ('{"spark.submit.deployMode": "cluster"}', "may not be set: the job is"),
        ('{"spark.sql.session.timeZone": "CET"}', "windows are computed in UTC"),
    ],
)
def test_an_option_that_cannot_be_set_is_refused_with_its_rule(
    monkeypatch: pytest.MonkeyPatch, text: str, rule: str
) -> None:
    """What would break the job, or is a setting of its own."""
    monkeypatch.setenv("TICKTHROTTLE_SPARK_CONF", text)
    with pytest.raises(ValidationError, match=rule):
        ThrottleSettings()


def test_a_bad_option_does_not_show_the_others() -> None:
    """There may be a password among them."""
    conf = {"spark.authenticate.secret": "hidden", "spark.master": "yarn"}
    with pytest.raises(ValidationError) as caught:
        ThrottleSettings(spark_conf=conf)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("master", ["", "local[2,2", "spark://", "yarn-client"])
def test_a_master_that_spark_would_not_know_is_refused(master: str) -> None:
    """Before Spark is started."""
    with pytest.raises(ValidationError, match="spark_master"):
        ThrottleSettings(spark_master=master)


@pytest.mark.parametrize(
    ("calendars", "rule"),
    [
        ("US=America/Gotham@09:30", "US: needs a time zone such as Asia/Seoul"),
        ("US=UTC@00:00,US=UTC@09:00", "names one of them twice"),
        ("US=UTC@24:00", "day_calendars"),
        ("NASDAQ=UTC@00:00", "day_calendars"),
        ("America/Gotham@09:30", "needs a time zone such as Asia/Seoul"),
        ("UTC@09:30,UTC@00:00", "names one of them twice"),
        ("", "day_calendars"),
    ],
)
def test_a_calendar_that_there_is_not_is_refused(calendars: str, rule: str) -> None:
    """Before anything is started; what is right becomes calendars."""
    with pytest.raises(ValidationError, match=rule):
        AnalyticsSettings(day_calendars=calendars)
    text = "US=America/New_York@09:30,Europe/Oslo@08:00"
    calendars = SessionCalendars.create(
        *AnalyticsSettings(day_calendars=text).calendars()
    )
    assert calendars.of("US0378331005").begins == "09:30"
    assert calendars.everyday == SessionCalendar("Europe/Oslo", "08:00")
    others = SessionCalendars.create(
        *AnalyticsSettings(day_calendars="US=UTC@09:30").calendars()
    )
    assert others.everyday == SessionCalendar("Asia/Seoul", "00:00")
