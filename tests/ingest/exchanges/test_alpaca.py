"""A broker with a key: logged in, refused, told apart."""

import gzip
from http import HTTPStatus
from pathlib import Path

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.adapter import Limit
from ingest.exchanges.alpaca import Alpaca
from tests.conftest import eventually
from tests.ingest.adapters.exchange import Session, exchanging
from tests.ingest.adapters.feeding import feeding, wait_for
from tests.ingest.adapters.frames import alpaca, deals

pytestmark = pytest.mark.redis

SECRETS = {"key": "K", "secret": "S"}
CONNECTED = '[{"T":"success","msg":"connected"}]'


class Quick(Alpaca):
    """Without its limit of connections."""

    connects = Limit(100, 1.0)


def log_in(session: Session) -> None:
    """Take any key."""
    session.send(CONNECTED)
    session.hear()
    session.send('[{"T":"success","msg":"authenticated"}]')
    session.hear()
    session.send('[{"T":"subscription","trades":["AAPL"],"quotes":[]}]')


def test_trades_come_after_the_login(redis_url: str, client: redis.Redis) -> None:
    """Equal ids of two exchanges are two trades; one that comes again is one."""

    def first(session: Session) -> None:
        log_in(session)
        session.send(alpaca(*deals("AAPL", [1, 2])))
        session.send(alpaca(*deals("AAPL", [1]), exchange="V"))

    def second(session: Session) -> None:
        log_in(session)
        session.send(alpaca(*deals("AAPL", [2, 3], price="126.550")))
        session.wait()

    with (
        exchanging(first, second) as exchange,
        feeding(redis_url, Quick, SECRETS, url=exchange.url, symbols="AAPL"),
    ):
        found = wait_for(client, 4)
    assert [(t["trade_id"], t["exchange"]) for t in found] == [
        *((1, "D"), (2, "D"), (1, "V"), (3, "D"))
    ]
    # Ids are no order: trades are newer as they come.
    assert sorted(t["seq"] for t in found) == [t["seq"] for t in found]
    assert found[-1]["price"] == "126.550"
    assert found[0]["conditions"] == "@ I"


def test_a_wrong_key_ends_the_feed(redis_url: str) -> None:
    """Without the key in the sentence."""

    def script(session: Session) -> None:
        session.send(CONNECTED)
        session.hear()
        session.send('[{"T":"error","code":402,"msg":"auth failed"}]')
        session.wait()

    with (
        exchanging(script) as exchange,
        feeding(redis_url, Quick, SECRETS, url=exchange.url, symbols="AAPL") as running,
    ):
        eventually(running.ended)
    assert str(running.errors[0]) == (
        "feed alpaca: the exchange refuses: code 402: auth failed; is the key right?"
    )


def test_a_key_that_the_exchange_repeats_is_hidden(
    redis_url: str, tmp_path: Path
) -> None:
    """In sentences, in log lines, on a raw tape."""
    secrets = {"key": "PUBLIC-PART", "secret": "SECRET-PART"}

    def script(session: Session) -> None:
        session.send(CONNECTED)
        said = session.hear().replace('"', "'")
        session.send(f'[{{"T":"error","code":500,"msg":"{said}"}}]')
        session.send(f'[{{"T":"error","code":402,"msg":"{said}"}}]')
        session.wait()

    raw = tmp_path / "raw.jsonl.gz"
    options = {"symbols": "AAPL", "record_raw": raw}
    with (
        capture_logs() as logs,
        exchanging(script) as exchange,
        feeding(redis_url, Quick, secrets, url=exchange.url, **options) as running,
    ):
        eventually(running.ended)
    [said] = [e for e in logs if e["event"] == "alpaca: the exchange says"]
    tape = gzip.decompress(raw.read_bytes()).decode()
    for text in (str(said), str(running.errors[0]), tape):
        assert "'key': '...', 'secret': '...'" in text
        assert "-PART" not in text


def test_a_key_that_is_refused_at_the_handshake_ends_the_feed(redis_url: str) -> None:
    """As some brokers do it."""
    with (
        exchanging(HTTPStatus.UNAUTHORIZED) as exchange,
        feeding(redis_url, Quick, SECRETS, url=exchange.url, symbols="AAPL") as running,
    ):
        eventually(running.ended)
    told = str(running.errors[0])
    assert "refuses the connection with HTTP 401" in told
    assert told.endswith("is the key right?")
