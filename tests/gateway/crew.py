"""Gateways as processes of the installed program, of two workers or of one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.conftest import PATIENCE, eventually
from tests.gateway.servers import Gateway
from tests.ports import free_port

WORKERS = 2


class Crew:
    """A gateway that runs."""

    def __init__(
        self, process: subprocess.Popen[bytes], gateway: Gateway, workers: int
    ) -> None:
        self.process = process
        self.gateway = gateway
        self._workers = workers

    def reports(self) -> list[dict[str, Any]]:
        """Return what operators are told of the workers, in their order.

        A worker that has not answered in time is left out: it is asked again.
        """
        return eventually(self._whole, 40)

    def _whole(self) -> list[dict[str, Any]] | None:
        reports = self._answers()
        return reports if len(reports) == self._workers else None

    def _answers(self) -> list[dict[str, Any]]:
        status, body = self.gateway.operators.get("/v1/pipeline")
        assert status == 200
        workers: list[dict[str, Any]] = orjson.loads(body)["fanout"]["workers"]
        return sorted(workers, key=lambda worker: int(worker["worker"]))

    def reports_of(self, clients: int) -> list[dict[str, Any]] | None:
        """Return the reports if they have so many clients in all.

        Who answers may do so with what it has found out half a second ago.
        """
        reports = self.reports()
        are_new = sum(worker["clients"] for worker in reports) == clients
        return reports if are_new else None

    def are_there(self) -> bool:
        """Say whether all answer, and have read the stored state."""
        assert self.process.poll() is None, "the gateway has ended; its log says why"
        try:
            return (
                self._whole() is not None
                and self.gateway.count("reloads") >= self._workers
            )
        except OSError:
            return False

    def pids(self) -> list[int]:
        """Return the workers' process ids."""
        return [worker["pid"] for worker in self.reports()]

    def reports_without(self, pid: int) -> list[dict[str, Any]] | None:
        """Return all reports if none is of the worker with this process id."""
        reports = self._whole()
        if reports is None or pid in (worker["pid"] for worker in reports):
            return None
        return reports


@contextmanager
def crew(
    redis_url: str,
    folder: Path,
    *,
    workers: int = WORKERS,
    port: int = 0,
    **settings: object,
) -> Iterator[Crew]:
    """Run a gateway until the block ends."""
    port = port or free_port()
    named = {f"TICKTHROTTLE_{name.upper()}": str(v) for name, v in settings.items()}
    environment = {**os.environ, "REDIS_URL": redis_url, **named}
    command = [sys.executable, "-m", "tickthrottle", "gateway", "--port", str(port)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--workers", str(workers)], env=environment, stderr=log
        )
    running = Crew(process, Gateway("127.0.0.1", port, None), workers)
    try:
        eventually(running.are_there, 40)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(40 * PATIENCE)
        finally:
            process.kill()
            process.wait()
