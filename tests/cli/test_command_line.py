"""The command line: help worth reading, and bad input in one sentence."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.core import TyperGroup as Group
from typer.main import get_command
from typer.testing import CliRunner

from cli.command_line import app, held_object
from cli.examples import EXAMPLES
from ingest.tradelog.speedups import speedups_version
from tests.gateway.samples import SAMSUNG
from tests.tidy import check
from throttle.contract.bars import Bar

runner = CliRunner()


@pytest.fixture(autouse=True)
def _process_left_as_it_was() -> Iterator[None]:
    """Undo what a command does to its process's signal handlers."""
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in stops}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_every_command_explains_itself_and_its_options() -> None:
    check(line for command in EXAMPLES for line in unexplained(command))


def unexplained(command: str) -> Iterator[str]:
    result = runner.invoke(app, [*command.split(), "-h"])
    about, _, rest = result.stdout.partition("Options:")
    options, _, examples = rest.partition("Examples:")
    if result.exit_code or len(about.splitlines()) <= 3:
        yield f"{command}: is not explained"
    if [line.strip() for line in examples.split("\n") if line] != [*EXAMPLES[command]]:
        yield f"{command}: does not show its examples"
    for line in options.splitlines():
        is_own = line.strip().startswith("--") and "--help" not in line
        if is_own and len(line.split()) <= 2:
            yield f"{command}: {line}"


def test_an_example_is_a_command_with_options_that_it_has() -> None:
    for example in [example for lines in EXAMPLES.values() for example in lines]:
        name, *arguments = shlex.split(example.partition("tickthrottle ")[2])
        part = get_command(app)
        while isinstance(part, Group):
            part = part.commands[name]
            if isinstance(part, Group):
                name, *arguments = arguments
        part.make_context(name, arguments)


def test_every_command_has_examples() -> None:
    assert set(_commands(get_command(app))) == EXAMPLES.keys()


def _commands(command: object, *names: str) -> Iterator[str]:
    if not isinstance(command, Group):
        yield " ".join(names)
        return
    for name, part in command.commands.items():
        yield from _commands(part, *names, name)


def test_the_program_says_its_version() -> None:
    result = runner.invoke(app, ["--version"])
    compiled = speedups_version()
    speedups = f", speedups {compiled}" if compiled else ""
    assert result.stdout == f"tickthrottle {version('tickthrottle')}{speedups}\n"


def test_a_shell_can_complete_commands_and_options() -> None:
    environment = {
        **os.environ,
        "_TICKTHROTTLE_COMPLETE": "complete_bash",
        "COMP_WORDS": "tickthrottle rec",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tickthrottle"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["reconcile"], done.stderr


BAD_SETTINGS: list[tuple[list[str], str]] = [
    (["run", "--port", "99999"], "port 99999: Input should be less than or equal"),
    (["run", "--port", "65535"], "port 65535: the one after it is for operators"),
    (["gateway", "--redis-url", "redis://h/x"], "redis_url redis://h/x: the data"),
    (
        ["ledger", "--redis-url", "rediss+cluster://:secret@h/0"],
        "redis_url rediss+cluster://h/0: Redis Cluster is not supported; give",
    ),
    (["run", "--tape", "/missing"], "tape /missing: Path does not point to a file"),
    (["run", "--rate", "0"], "rate 0.0: Input should be greater than 0"),
    (["throttle", "--job", "a b"], "job a b: String should match pattern"),
    (["throttle", "--master", "mesos://h"], "spark_master mesos://h: String sho"),
    (["gateway", "--port", "-1"], "port -1: Input should be greater than or equal"),
    (["simulate", "--malformed", "2"], "malformed 2.0: Input should be less"),
    (["topic", "--kafka-topic", "a b"], "kafka_topic a b: String should match"),
    (["topic", "--partitions", "0"], "partitions 0: Input should be greater"),
    (["topic", "--replication", "0"], "replication 0: Input should be greater"),
    (["topic", "--retention-s", "5"], "retention_s 5: Input should be greater"),
    (
        ["instruments", "simulated", "--instruments", "0"],
        "instruments 0: Input should be greater",
    ),
    (["replay", "/missing", "--speed", "0"], "speed 0.0: Input should be greater"),
    (["simulate", "--profile", "900:9"], "profile 900:9: part '900:9': must"),
    (["simulate", "--profile", "9", "--rate", "9"], "profile: is in place of"),
    (["replay", "/missing", "--profile", "9:0s"], "profile 9:0s: part '9:0s': the"),
    (["replay", "/missing", "--repeats", "2"], "repeats 2.0: Input should be less"),
]


def test_a_bad_setting_stops_the_start_with_one_sentence() -> None:
    """The sentence names the setting, its value and the rule; the exit code is 2."""
    for arguments, sentence in BAD_SETTINGS:
        result = runner.invoke(app, arguments)
        assert result.exit_code == 2, arguments
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


def test_a_gateway_that_cannot_start_ends_like_every_command(tmp_path: Path) -> None:
    variables = {"TICKTHROTTLE_TOKEN_KEY_FILE": str(tmp_path / "missing")}
    result = runner.invoke(app, ["gateway", "--port", "0"], env=variables)
    assert result.exit_code == 3
    assert result.stderr.startswith("tickthrottle: token_key_file /")
    assert len(result.stderr.splitlines()) == 1


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    """One sentence with the address; the exit code is 3."""
    arguments = ["simulate", "--redis-url", "redis://:secret@127.0.0.1:1"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 3
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("tickthrottle: ")
    assert "redis://127.0.0.1:1" in last
    assert "secret" not in result.stderr


def test_the_state_does_not_say_whether_a_bar_is_closed() -> None:
    """It has no clock: each bar was said to be open, also what was published closed."""
    one = Decimal(1)
    bar = Bar(SAMSUNG, 0, 60_000, one, one, one, one, one, one, 1, False, 6)
    shown = held_object(bar)
    assert "closed" not in shown
    assert shown.keys() | {"closed"} == bar.to_object().keys()
    assert shown["revision"] == 6


def test_the_state_of_an_unknown_product_is_refused_at_once() -> None:
    result = runner.invoke(app, ["state", "--product", "candles"])
    assert result.exit_code == 2
    assert (
        "product 'candles': must be one of bars, movers, bursts, moves" in result.output
    )
