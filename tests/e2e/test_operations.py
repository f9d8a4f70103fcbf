"""Operators learn what died: from page and readiness at once, then by the right alert.

Everything is real: the server, the job, the feed and the gateway are processes that
are killed; a Prometheus scrapes them and weighs the rules of ``deploy/prometheus``; the
page is open in a browser.
"""

import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from playwright.sync_api import Browser, Page

from gateway.health.finding_codes import CODES
from tests.conftest import PATIENCE, eventually, skip_or_fail
from tests.e2e.processes import running_command
from tests.e2e.rig import Rig, create_rig
from tests.gateway.servers import Gateway
from tests.paths import ROOT
from tests.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.browser]

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
WINDOW_MS = 2_000
# Three windows, and what a look and a busy machine add.
WITHIN_S = 3 * WINDOW_MS / 1_000 + 4
LATE = [CODES[code].text for code in ("publish_late", "fanout_late")]
# Two pages that are open for minutes: painting them would take half of a core.
SMALL: Any = {
    "viewport": {"width": 360, "height": 240},
    "reduced_motion": "reduce",
}
# However rarely it is scraped.
PAGED_WITHIN_S = 60


@dataclass
class Watched:
    """All that an operator looks at."""

    gateway: Gateway
    prometheus_port: int
    operations: Page
    board: Page

    def reasons(self) -> list[str]:
        """Return the codes of readiness."""
        body = json.loads(self.gateway.get("/health/ready")[1])
        return [reason["code"] for reason in body["reasons"]]

    def alerts(self) -> set[str]:
        """Return the names of the alerts that fire and are to wake somebody."""
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/alerts"
        with urllib.request.urlopen(url, timeout=5) as answer:
            alerts: list[dict[str, Any]] = json.load(answer)["data"]["alerts"]
        firing = [a["labels"] for a in alerts if a["state"] == "firing"]
        return {a["alertname"] for a in firing if a["severity"] == "page"}

    def verdict(self) -> str:
        """Return what the operations view says first."""
        return self.operations.locator("#verdict").inner_text(timeout=5_000)

    def board_state(self) -> str:
        """Return the state that the market board shows."""
        return self.board.locator("body").get_attribute("data-state") or ""

    def complaints(self) -> list[object]:
        """Return what is not as it should be: all but windows that are merely late.

        On a machine that is busy with other tests they may be, for minutes.
        """
        verdict, board = self.verdict(), self.board_state()
        is_well = any(words in verdict for words in ("All is well", *LATE))
        return [
            *self.reasons(),
            *self.alerts(),
            *([] if is_well else [verdict]),
            *([] if board == "live" else [f"board: {board}"]),
        ]

    def wait_until_well(self, within_s: float) -> None:
        """Wait until nothing complains any more."""
        last: list[object] = []

        def is_well() -> bool:
            last[:] = self.complaints()
            return not last

        try:
            eventually(is_well, within_s)
        except AssertionError:
            raise AssertionError(f"still after {within_s} s: {last}") from None


@contextmanager
def scraping(folder: Path, targets: list[int]) -> Iterator[int]:
    """Run a Prometheus that scrapes each second; yield its port."""
    program = shutil.which("prometheus")
    if program is None:
        skip_or_fail("no prometheus on PATH (on Debian: apt install prometheus)")
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(ALERTS)],
                "scrape_configs": [
                    {
                        "job_name": "tickthrottle",
                        "static_configs": [
                            {"targets": [f"127.0.0.1:{target}" for target in targets]}
                        ],
                    }
                ],
            }
        )
    )
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running_command(folder / "logs", "prometheus", command) as process:
        process.wait_for("Server is ready")
        yield port


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A server that outlives being killed, a feed's tape and a place for logs."""
    with create_rig(tmp_path, WINDOW_MS, is_watched=False) as rig:
        yield rig


@pytest.mark.timeout(400)
def test_what_dies_is_named_everywhere_and_its_return_is_seen(
    rig: Rig, browser: Browser
) -> None:
    """Redis, the job's Java and the feed are killed in turn."""
    port, feed_port, job_port = free_port(), free_port(), free_port()
    # Each process is scraped by itself, as on machines of their own.
    rig.environment |= {
        "TICKTHROTTLE_QUIET_S": "3",
        "TICKTHROTTLE_MARKET_HOURS": "UTC Mon-Sun 00:00-24:00",
    }

    def job() -> Any:
        return rig.job(TICKTHROTTLE_METRICS_PORT=str(job_port))

    def feed() -> Any:
        return rig.process(
            "simulate", "--rate", "50", TICKTHROTTLE_METRICS_PORT=str(feed_port)
        )

    took: list[str] = []
    with ExitStack() as stack:
        gateway_process = stack.enter_context(
            rig.process("gateway", "--port", str(port))
        )
        feeding = stack.enter_context(feed())
        working = stack.enter_context(job())
        targets = [port + 1, feed_port, job_port]
        prometheus_port = stack.enter_context(scraping(rig.folder, targets))
        working.wait_for("ready", 120)
        watched = Watched(
            Gateway("127.0.0.1", port, None),
            prometheus_port,
            browser.new_page(**SMALL),
            browser.new_page(**SMALL),
        )
        watched.operations.goto(f"http://127.0.0.1:{port + 1}/")
        watched.board.goto(f"http://127.0.0.1:{port}/")
        watched.wait_until_well(60)

        def trouble(
            name: str, kill: Callable[[], object], code: str, alert: str, word: str
        ) -> None:
            killed_s = time.monotonic()
            kill()
            seen: dict[str, float] = {}

            def is_seen(name: str, sign: bool) -> bool:
                if sign:
                    seen.setdefault(name, time.monotonic() - killed_s)
                return sign

            eventually(
                lambda: is_seen("readiness", code in watched.reasons()), WITHIN_S
            )
            eventually(lambda: is_seen("page", word in watched.verdict()), WITHIN_S)
            eventually(
                lambda: is_seen("alert", alert in watched.alerts()), PAGED_WITHIN_S
            )
            took.append(
                f"{name}: " + ", ".join(f"{k} {v:.1f} s" for k, v in seen.items())
            )

        trouble("Redis killed", rig.kill_server, "redis_down", *SIGNS["redis"])
        assert watched.alerts() == {"TickthrottleRedisDown"}
        eventually(lambda: watched.board_state() == "stale", WITHIN_S)
        rig.start_server()
        watched.wait_until_well(60)

        # Its Java alone: the job ends by itself then, and says so.
        java = psutil.Process(working.java_pid())
        trouble("job killed", java.kill, "feed_stale", *SIGNS["job"])
        assert working.process.wait(timeout=20 * PATIENCE) == 3, working.log()
        assert working.log().splitlines()[-1].startswith("tickthrottle: ")
        eventually(lambda: watched.board_state() == "stale", WITHIN_S)
        working = stack.enter_context(job())
        watched.wait_until_well(120)

        trouble("feed killed", feeding.kill, "quiet", *SIGNS["feed"])
        quiet = watched.board.locator("#notice")
        eventually(lambda: "no trade since" in quiet.inner_text(), WITHIN_S)
        assert watched.board_state() == "live"
        stack.enter_context(feed())
        watched.wait_until_well(60)
        eventually(lambda: quiet.inner_text() == "", WITHIN_S)
        assert gateway_process.process.poll() is None
    # Shown by pytest -rP.
    sys.stdout.write("\n".join(took))


SIGNS = {
    "redis": ("TickthrottleRedisDown", "Redis"),
    "job": ("TickthrottleNoWindow", "job"),
    "feed": ("TickthrottleFeedQuiet", "trade"),
}
