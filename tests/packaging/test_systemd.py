"""The units on a machine with a systemd of its own, by the commands of their page.

The machine is a container without a network: what it needs is installed in its image.
"""

import json
from collections.abc import Iterator

import pytest

from tests.conftest import eventually
from tests.deploy.containers import build_systemd, image, images, podman
from tests.doc_pages import blocks
from tests.installed import build_wheels

__all__ = ["images"]

pytestmark = [
    pytest.mark.container,
    pytest.mark.e2e,
    # The first test may build the images, and waits for Spark.
    pytest.mark.timeout(800),
]

PAGE = "docs/services.md"
NAME = "tickthrottle-systemd"
ENABLED = ("gateway", "feed@market")
SPARK = ("throttle", "analytics")
OTHERS = ("archive", "intake")
TOKEN = "of-the-operators"
UNITS = "/etc/systemd/system"
PATIENT = "[Service]\nTimeoutStopSec=200"
FEED = "FEED=simulate --rate 50"


class Machine:
    """A booted machine."""

    def run(self, *words: str, within_s: float = 120) -> str:
        """Run a command on it; it must end well."""
        return podman("exec", NAME, *words, within_s=within_s)

    def shell(self, script: str, within_s: float = 120) -> str:
        """Run lines of a shell; each must end well."""
        return self.run("sh", "-ec", script, within_s=within_s)

    def write(self, file: str, text: str) -> None:
        """Write a file, and the folder that it is in."""
        self.run("sh", "-ec", 'mkdir -p "${1%/*}"; echo "$2" > "$1"', "sh", file, text)

    def boot(self) -> None:
        """Wait until systemd has started all that it shall."""
        eventually(lambda: self._state() in ("running", "degraded"), 60)

    def _state(self) -> str:
        # While it starts, the answer comes with an exit code.
        return self.shell("systemctl is-system-running || true").splitlines()[-1]

    def about(self, unit: str, key: str) -> str:
        """Return what systemd knows of a unit of ours."""
        asked = ("systemctl", "show", "--value", "--property", key)
        return self.run(*asked, f"tickthrottle-{unit}")

    def is_live(self) -> bool:
        """Tell whether a price of the last seconds can be had."""
        url = "http://127.0.0.1:8000"
        try:
            self.run("curl", "-fsS", f"{url}/health/ready")
            quotes = json.loads(self.run("curl", "-fsS", f"{url}/v1/quotes"))
        except AssertionError:
            return False
        return bool(quotes["data"])


@pytest.fixture(scope="module")
def machine(
    images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine on which the page's commands were typed, and its units run."""
    build_systemd()
    dist = tmp_path_factory.mktemp("wheels")
    build_wheels(dist)
    machine = Machine()
    podman("rm", "--force", "--ignore", "--time", "0", NAME)
    options = ("--network", "none", "--add-host", "redis.internal:127.0.0.1")
    podman(
        *("run", "--detach", "--systemd=always", "--privileged", "--name", NAME),
        *(*options, image("systemd")),
    )
    try:
        machine.boot()
        install, start = "\n".join(blocks(PAGE, "sh")).split("systemctl enable")
        podman("cp", dist, f"{NAME}:/root/dist")
        # What the wheels ask for is there: the image has installed it.
        pip = "export PIP_NO_INDEX=1 PIP_NO_DEPS=1 PIP_FORCE_REINSTALL=1"
        machine.shell(f"cd /root\n{pip}\n{install}")
        settings = blocks(PAGE, "")
        assert [text for text in settings if text.startswith("FEED=")]
        # The page's own feed is an exchange, which cannot be reached from here.
        machine.write("/etc/tickthrottle/tickthrottle-feed@market.env", FEED)
        [drop_in] = [text for text in settings if text.startswith("[Service]")]
        machine.write("/etc/tickthrottle/operators-token", TOKEN)
        machine.write(f"{UNITS}/tickthrottle-gateway.service.d/of-page.conf", drop_in)
        # This machine may be busy with other tests.
        machine.write(f"{UNITS}/tickthrottle-.service.d/patience.conf", PATIENT)
        machine.shell("systemctl daemon-reload")
        machine.shell(f"systemctl enable {start}", within_s=400)
        yield machine
    finally:
        podman("rm", "--force", "--time", "0", NAME)


def test_the_pages_commands_give_a_live_board(machine: Machine) -> None:
    """Each unit is ready when it says so, and with the settings of its own file."""
    eventually(machine.is_live, 60)
    assert "<title>" in machine.run("curl", "-fsS", "http://127.0.0.1:8000/")
    feed = "tickthrottle-feed@market.service"
    pid = machine.run("systemctl", "show", "--property", "MainPID", "--value", feed)
    words = machine.run("cat", f"/proc/{pid.strip()}/cmdline").split("\0")
    assert words[-4:-1] == FEED.removeprefix("FEED=").split()
    # systemd hands over the file that only root can read.
    words = ("curl", "-sS", "--output", "/dev/null", "--write-out", "%{http_code}")
    url = "http://127.0.0.1:8001/v1/settings"
    assert machine.run(*words, url) == "401"
    token = ("--header", f"Authorization: Bearer {TOKEN}")
    assert machine.run(*words, *token, url) == "200"


def test_every_other_unit_starts_and_keeps_what_it_has_to(machine: Machine) -> None:
    """In the folders that systemd makes for it, and nowhere else."""
    units = [f"tickthrottle-{unit}" for unit in (*OTHERS, "analytics")]
    machine.run("systemctl", "start", *units, within_s=400)
    for unit in (*ENABLED, *SPARK, *OTHERS):
        assert machine.about(unit, "ActiveState") == "active", unit
    machine.run("test", "-d", "/var/lib/tickthrottle-analytics/analytics")


def test_a_process_that_is_killed_is_started_again(machine: Machine) -> None:
    """By systemd, and prices come as before."""
    before = machine.about("gateway", "MainPID")
    machine.run("systemctl", "kill", "--signal", "KILL", "tickthrottle-gateway")

    def is_another() -> bool:
        is_active = machine.about("gateway", "ActiveState") == "active"
        return is_active and machine.about("gateway", "MainPID") != before

    eventually(is_another, 60)
    eventually(machine.is_live, 60)


def test_a_stop_ends_well_and_a_bad_setting_is_not_tried_again(
    machine: Machine,
) -> None:
    """SIGTERM is enough for each; exit code 2 is for somebody to mend."""
    stopped = (*SPARK, *OTHERS)
    machine.run("systemctl", "stop", *(f"tickthrottle-{unit}" for unit in stopped))
    for unit in stopped:
        assert machine.about(unit, "Result") == "success", unit
        assert machine.about(unit, "ExecMainStatus") == "0", unit
    machine.write(
        "/etc/tickthrottle/tickthrottle-intake.env", "TICKTHROTTLE_INTAKE_PORT=none"
    )
    machine.shell("systemctl start tickthrottle-intake || true")
    assert machine.about("intake", "ActiveState") == "failed"
    assert machine.about("intake", "ExecMainStatus") == "2"
    assert machine.about("intake", "NRestarts") == "0"


def test_what_is_enabled_runs_again_after_a_boot(machine: Machine) -> None:
    """And nothing else does. Without the job, which takes its time."""
    machine.run("systemctl", "disable", "tickthrottle-throttle")
    podman("restart", "--time", "30", NAME)
    machine.boot()
    for unit in ENABLED:
        assert machine.about(unit, "ActiveState") == "active", unit
    assert machine.about("archive", "ActiveState") == "inactive"
