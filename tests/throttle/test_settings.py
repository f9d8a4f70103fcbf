"""The job's settings: Spark's options are read and checked."""

import pytest
from pydantic import ValidationError

from throttle.settings import ThrottleSettings


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


@pytest.mark.parametrize(
    "master",
    ["", "local[", "local[2,2", "spark://", "mesos://h", "yarn-client", "spark://a b"],
)
def test_a_master_that_spark_would_not_know_is_refused(master: str) -> None:
    """Before Spark is started."""
    with pytest.raises(ValidationError, match="spark_master"):
        ThrottleSettings(spark_master=master)
