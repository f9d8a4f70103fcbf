"""The command line: help worth reading, and bad input in one sentence."""

import signal
from collections.abc import Iterator

import pytest
import structlog
from typer.testing import CliRunner

from deploy.cli import app

runner = CliRunner()


@pytest.fixture(autouse=True)
def _process_left_as_it_was() -> Iterator[None]:
    """Undo what a command does to its process: logging and signal handlers."""
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in stops}
    yield
    structlog.reset_defaults()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "command", ["run", "simulate", "replay", "throttle", "gateway", "topic", "issues"]
)
def test_every_command_explains_itself_and_its_options(command: str) -> None:
    """Each option has words of its own."""
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.stdout.split("Options:")[0].splitlines()) > 3
    for line in result.stdout.split("Options:")[1].splitlines():
        if line.strip().startswith("--") and "--help" not in line:
            assert len(line.split()) > 2, line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--port", "99999"], "port 99999: Input should be less than or equal"),
        (["run", "--tape", "/missing"], "tape /missing: Path does not point to a file"),
        (["run", "--rate", "0"], "rate 0.0: Input should be greater than 0"),
        (["throttle", "--window-ms", "5"], "window_ms 5: Input should be greater"),
        (["throttle", "--job", "a b"], "job a b: String should match pattern"),
        (["throttle", "--master", "mesos://h"], "spark_master mesos://h: String sho"),
        (["gateway", "--port", "-1"], "port -1: Input should be greater than or equal"),
        (["simulate", "--malformed", "2"], "malformed 2.0: must be from 0 to 1"),
        (["simulate", "--kafka-topic", "a b"], "kafka_topic a b: String should match"),
        (["topic", "--partitions", "0"], "partitions 0: Input should be greater"),
        (["topic", "--replication", "0"], "replication 0: must be from 1 to 100"),
        (["topic", "--retention-s", "5"], "retention_s 5: must be from 60 to"),
        (["issues", "--issues", "0"], "issues 0: must be from 1 to 20,000"),
        (["replay", "/missing", "--speed", "0"], "speed 0.0: must be from 0.001"),
        (["simulate", "--profile", "900:9"], "part '900:9': must be RATE:TIME"),
        (["simulate", "--profile", "9", "--rate", "9"], "profile 9: is in place of"),
        (["replay", "/missing", "--profile", "9:0s"], "part '9:0s': the time 0s must"),
        (["replay", "/missing", "--repeats", "2"], "repeats 2.0: must be from 0 to 1"),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_sentence(
    arguments: list[str], sentence: str
) -> None:
    """The sentence names the setting, its value and the rule; the exit code is 2."""
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tickthrottle: {sentence}")
    assert len(result.stderr.splitlines()) == 1


def test_a_bad_variable_is_named_like_a_bad_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings from the environment follow the same rules."""
    monkeypatch.setenv("TICKTHROTTLE_PARTITIONS", "0")
    result = runner.invoke(app, ["throttle"])
    assert result.exit_code == 2
    assert result.stderr.startswith("tickthrottle: partitions 0: Input should be")


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    """One sentence with the address; the exit code is 1."""
    arguments = ["simulate", "--redis-url", "redis://:secret@127.0.0.1:1"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("tickthrottle: ")
    assert "redis://127.0.0.1:1" in last
    assert "secret" not in result.stderr
