"""A gateway, or a relay of one, that may be killed and begun again at its port."""

from contextlib import ExitStack, suppress
from pathlib import Path

from tests.e2e.processes import Running, running
from tests.gateway.servers import Gateway
from tests.ports import free_port


class GatewayNode:
    """A gateway that may be killed and begun again at its port."""

    def __init__(self, stack: ExitStack, folder: Path, **environment: str) -> None:
        self.port = free_port()
        self._stack, self._folder = stack, folder
        operators = {"TICKTHROTTLE_OPERATORS_PORT": str(free_port())}
        self._environment = operators | environment
        self._process: Running | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start the process."""
        port = "--port", str(self.port)
        run = running(self._folder, "gateway", *port, **self._environment)
        self._process = self._stack.enter_context(run)

    def kill(self) -> None:
        """End it as a lost machine does."""
        assert self._process is not None
        self._process.kill()

    def is_live(self) -> bool:
        """Say whether it answers."""
        with suppress(OSError):
            return Gateway("127.0.0.1", self.port, None).get("/health/live")[0] == 200
        return False
