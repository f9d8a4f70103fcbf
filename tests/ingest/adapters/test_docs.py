"""The page of adapters says what is so; its example works as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from ingest.adapters.raw_tape import RAW_TAPE_BYTES
from ingest.exchanges.known import BUILT_IN
from tests.conftest import eventually
from tests.ingest.adapters.exchange import Session, exchanging
from tests.ingest.adapters.feeding import wait_for
from tests.paths import ROOT
from tickthrottle_client.key_v1 import OWN_VENUES, key_of

PAGE = (ROOT / "docs" / "adapters.md").read_text("utf-8")
KEYS_PAGE = (ROOT / "docs" / "instruments.md").read_text("utf-8")


def test_every_adapter_is_in_the_table() -> None:
    """With its key's variables and its letters."""
    for name, kind in BUILT_IN.items():
        assert f"| `{name}` |" in PAGE
        if kind.prefix:
            assert f"| `{kind.venue}` | `{kind.prefix}` |" in KEYS_PAGE
            assert OWN_VENUES[kind.venue] == kind.prefix
        for secret in kind.secrets:
            assert f"`TICKTHROTTLE_{name.upper()}_{secret.upper()}`" in PAGE


def test_the_keys_of_the_examples_are_right() -> None:
    assert key_of("QN", "BTCUSDT")[:-1] in PAGE
    assert key_of("QU", "KRW-BTC")[:-1] in PAGE


def test_every_bound_is_said() -> None:
    assert RAW_TAPE_BYTES == 1_000_000_000
    assert "1,000 MB" in PAGE
    assert "(5 s)" in PAGE


@pytest.mark.redis
def test_the_example_of_an_own_adapter_works_as_it_stands(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """Copied from the page, started as the page says."""
    [example] = re.findall(r"```python\n(# my_feed.py.*?)```", PAGE, re.S)
    (tmp_path / "my_feed.py").write_text(example, encoding="utf-8")
    [command] = re.findall(r"^tickthrottle (feed my_feed:.*)$", PAGE, re.M)
    row = '{"id":%d,"ms":1773964800000,"px":1.50,"qty":6E-8}'

    def script(session: Session) -> None:
        assert session.hear() == '{"op": "subscribe", "symbols": ["ABC", "DEF"]}'
        good = [row % number for number in (1, 2, 4)]
        # A row without its fields costs itself.
        rows = ",".join([good[0], '{"id":7}', *good[1:]])
        session.send('{"kind":"hello"}', "half", '{"odd":1}')
        session.send(f'{{"kind":"trades","symbol":"ABC","rows":[{rows}]}}')
        session.send(f'{{"kind":"trades","symbol":"ABC","rows":[{row % 4}]}}')
        session.wait()

    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "REDIS_URL": redis_url,
        "TICKTHROTTLE_NAMESPACE": "test",
        "TICKTHROTTLE_LOG_FORMAT": "json",
    }
    with exchanging(script) as exchange:
        program = [sys.executable, "-P", "-m", "tickthrottle", *command.split()]
        process = subprocess.Popen(
            [*program, "--url", exchange.url],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            found = wait_for(client, 3)
            eventually(lambda: process.poll() is None)
        finally:
            process.terminate()
            _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert [trade["seq"] for trade in found] == [1, 2, 4]
    assert found[0]["isin"] == key_of("QX", "ABC")
    assert found[0]["price"] == "1.50"
    assert found[0]["size"] == "0.00000006"
    assert found[0]["venue"] == "MYX"
    assert '"refused": {"not_json": 1, "not_decoded": 2}' in told
    assert "trades are missing" in told
