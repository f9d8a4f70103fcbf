"""``tickthrottle ingest``: every example of its page, as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from ingest.trade import Trade
from tests.conftest import PATIENCE
from tests.doc_pages import section_of
from tests.ingest.feed.test_run import logged
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "feeding.md").read_text("utf-8")
CONDITIONS = section_of("docs/rows.md", "Sale conditions")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
PRICES = (
    *(["71900"], ["71900", "72000"], ["71900"], ["71900"], ["71900"]),
    *(["71900.50"], ["71900", "72000", "72100"], ["71900"], ["71900", "72000"]),
)

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]


def run(command: str, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if "TICKTHROTTLE" not in k}
    programs = Path(sys.executable).parent
    environment |= {
        "PATH": f"{programs}:{environment['PATH']}",
        "REDIS_URL": url,
        "TICKTHROTTLE_NAMESPACE": "test",
        "TICKTHROTTLE_PARTITIONS": "1",
    }
    return subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_of_the_page_puts_its_trades_into_the_log(
    number: int, redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    done = run(BLOCKS[number], tmp_path, redis_url)

    assert done.returncode == 0, done.stderr
    trades = [Trade.from_wire(payload) for payload in logged(client)]
    assert [trade.price for trade in trades] == PRICES[number], done.stderr
    assert {trade.isin for trade in trades} == {"KR7005930003"}


def test_the_example_of_sale_conditions_is_right(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """All trades are there, and only one of them is a price."""
    [block] = re.findall(r"```sh\n(.*?)```", CONDITIONS, re.DOTALL)
    done = run(block, tmp_path, redis_url)

    assert done.returncode == 0, done.stderr
    trades = [Trade.from_wire(payload) for payload in logged(client)]
    told = [(t.isin, t.price, t.updates.encode()) for t in trades]
    assert told == [
        ("US0378331005", "230.2", "last,range,volume"),
        ("US0378331005", "150", "volume"),
    ]


def test_the_example_of_a_decoder_is_right(redis_url: str, tmp_path: Path) -> None:
    [block] = re.findall(r"```python\n(.*?)```", CONDITIONS, re.DOTALL)
    (tmp_path / "example.py").write_text(block)
    done = run("python example.py", tmp_path, redis_url)
    assert done.stdout.split() == re.findall(r"# (\S+)", block), done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("printf 'isin,px\\n' | tickthrottle ingest -", 3, "no column 'time'"),
        ("tickthrottle ingest none", 3, "none: cannot be read: No such file"),
        ("tickthrottle ingest - --map price < /dev/null", 2, "must be like price=px"),
        (
            "tickthrottle ingest - --instruments x < /dev/null",
            2,
            "instruments_file x: No such",
        ),
        ("tickthrottle ingest - < /dev/null", 0, "ingest: finished"),
        (
            "printf 'isin,time,price,size,corr\\nBTC,1,1,1,8\\n' |"
            " tickthrottle ingest - --form leave-out=corr=8 --form leave-out='corr~~x'",
            0,
            '"left_out": {"corr=8": 1, "corr~~x": 0}',
        ),
        (
            "printf 'isin,time,price,size,conditions\\nKR7005930003,"
            "1795617000000000,1,1,99\\n' |"
            " tickthrottle ingest - --updates us_equities_numeric",
            0,
            '"unknown_conditions": {"99": 1}',
        ),
        (
            "tickthrottle ingest - --updates us < /dev/null",
            2,
            "updates us: 'us': is no table; there are krx, us_equities, us_equities_nu",
        ),
        (
            "tickthrottle ingest - --form leave-out==8 < /dev/null",
            2,
            "leave_out ['=8']: '=8': must be like correction=8",
        ),
        (
            "tickthrottle ingest - --form set=isin=KR7005930004 < /dev/null",
            2,
            "digit is 3",
        ),
    ],
)
def test_how_it_ends(
    command: str, code: int, said: str, redis_url: str, tmp_path: Path
) -> None:
    done = run(command, tmp_path, redis_url)

    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
