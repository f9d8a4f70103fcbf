"""The instrument table at the command line: loaded, shown, its changes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from cli.command_line import app
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list, read_on
from tests.gateway.samples import HYNIX, INSTRUMENT_LIST, NAVER, SAMSUNG, make_isins
from tickthrottle_client.key_v1 import key_of

pytestmark = pytest.mark.redis


class Table:
    """The commands of the instrument table, against one server."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.file = folder / "instruments.csv"

    def run(self, *arguments: str, code: int = 0, text: str | None = None) -> str:
        """Run a command; return what it prints, or its sentence if it fails."""
        result = CliRunner().invoke(
            app, ["instruments", *arguments, "--redis-url", self.url], input=text
        )
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    def load(self, text: str, *options: str, code: int = 0) -> str:
        self.file.write_text(text, "utf-8")
        return self.run("load", str(self.file), *options, code=code)


@pytest.fixture
def table(redis_url: str, tmp_path: Path) -> Table:
    return Table(redis_url, tmp_path)


def test_a_list_is_loaded_and_shown(table: Table, client: redis.Redis) -> None:
    """What is the same is not written again."""
    assert table.load(INSTRUMENT_LIST) == "3 added, 0 changed, 0 removed, 0 unchanged\n"
    assert table.load(INSTRUMENT_LIST) == "0 added, 0 changed, 0 removed, 3 unchanged\n"
    assert client.xlen("tt:instruments") == 3
    lines = table.run("show").splitlines()
    assert lines[0].split()[:3] == ["isin", "code", "name"]
    assert [line.split()[0] for line in lines[1:]] == [HYNIX, SAMSUNG, NAVER]
    [one] = table.run("show", "005930", "--json").splitlines()
    assert json.loads(one)["name"] == "Samsung Electronics"
    shown = table.run("show", "--market", "KOSPI", "--csv")
    assert [i.isin for i in parse_list(shown.splitlines(True)).instruments] == [
        HYNIX,
        SAMSUNG,
    ]
    assert "\n" not in table.run("show", "--sector", "none", "--json")
    assert "instrument 1: not in the table of 3 instruments" in table.run(
        "show", "1", code=3
    )


def test_what_is_shown_can_be_loaded_again(table: Table) -> None:
    table.load(INSTRUMENT_LIST)
    assert table.load(table.run("show", "--csv")).endswith(" 3 unchanged\n")


def test_an_update_changes_only_what_the_file_has(table: Table) -> None:
    """As every morning: new previous closes, all else stays."""
    table.load(INSTRUMENT_LIST)
    closes = f"isin,prev_close\n{SAMSUNG},201000\n{NAVER},0.50\n"
    updated = table.load(closes, "--update")
    assert updated == "0 added, 2 changed, 0 removed, 1 unchanged\n"
    [one] = table.run("show", "035420", "--json").splitlines()
    assert '"name":"NAVER"' in one
    assert '"prev_close":0.50' in one
    assert table.load(f"isin,status\n{SAMSUNG},halted\n", "--update")[:19] == (
        "0 added, 1 changed,"
    )
    [first, second, third] = table.run("history", "005930", "--json").splitlines()
    assert json.loads(first)["instrument"]["prev_close"] == "199400"
    assert json.loads(second)["instrument"]["prev_close"] == "201000"
    assert json.loads(third)["instrument"]["status"] == "halted"
    assert json.loads(third)["changed_ms"] >= json.loads(first)["changed_ms"] > 1e12


def test_an_instrument_may_leave_and_come_back(table: Table) -> None:
    table.load(INSTRUMENT_LIST)
    kept = "".join(INSTRUMENT_LIST.splitlines(True)[:3])
    assert table.load(kept) == "0 added, 0 changed, 1 removed, 2 unchanged\n"
    table.load(INSTRUMENT_LIST)
    lines = table.run("history", NAVER).splitlines()
    assert len(lines) == 4
    assert "removed" in lines[2]
    assert "never had it" in table.run("history", "KR7000000001", code=3)


def test_a_code_has_the_history_of_the_instrument_that_had_it_last(
    table: Table,
) -> None:
    """Also when it has left the table, and when another instrument has the code now."""

    def history(instrument: str) -> list[tuple[str, bool]]:
        lines = map(json.loads, table.run("history", instrument, "--json").splitlines())
        return [(line["isin"], line["instrument"] is None) for line in lines]

    table.load(INSTRUMENT_LIST)
    kept = "".join(INSTRUMENT_LIST.splitlines(True)[:3])
    table.load(kept)
    assert history("035420") == [(NAVER, False), (NAVER, True)]
    table.load(f"isin,code\n{HYNIX},035420\n", "--update")
    assert history("035420") == [(HYNIX, False)] * 2
    assert history("000660") == [(HYNIX, False)] * 2
    assert history(NAVER) == [(NAVER, False), (NAVER, True)]


def test_an_update_gives_nobody_a_code_that_another_instrument_has(
    table: Table,
) -> None:
    """What it stands for would be decided by chance; two may change theirs at once."""
    table.load(INSTRUMENT_LIST)
    taken = f"isin,code\n{SAMSUNG},000660\n"
    rule = (
        f"code '000660': {HYNIX} and {SAMSUNG} would both have it; nothing was changed"
    )
    assert rule in table.load(taken, "--update", code=3)
    assert table.run("history", SAMSUNG, "--json").count("\n") == 1
    swapped = f"{taken}{HYNIX},005930\n"
    assert table.load(swapped, "--update")[:19] == "0 added, 2 changed,"


def test_a_bad_list_changes_nothing(table: Table, client: redis.Redis) -> None:
    table.load(INSTRUMENT_LIST)
    for text, words in (
        ("", "line 1, header '': must have a column isin"),
        (f"isin\n{SAMSUNG[:-1]}4\n", "line 2, isin 'KR7005930004': check digit is 3"),
        (f"isin,code\n{SAMSUNG},1\n{HYNIX},1\n", "line 3, code '1': is on line 2"),
        (f"isin,name\n{SAMSUNG},a\n{SAMSUNG},b\n", "line 3, isin 'KR7005930003'"),
        (f'isin,name\n{SAMSUNG},"a\nb"\n', "name 'a\\nb': must have no control"),
        ("isin\n", "the list has no instrument: --force loads it; nothing was changed"),
        (
            f"isin\n{make_isins(1)[0]}\n",
            "is without 3 of the table's 3 instruments: --force loads it; nothing",
        ),
    ):
        sentence = table.load(text, code=3)
        assert words in sentence
        assert len(sentence.splitlines()) == 1
    assert client.xlen("tt:instruments") == 3


def test_a_list_may_be_forced(table: Table) -> None:
    table.load(INSTRUMENT_LIST)
    assert table.load("isin\n", "--force")[:30] == "0 added, 0 changed, 3 removed,"


def test_without_a_server_there_is_one_sentence(tmp_path: Path) -> None:
    nowhere = Table("redis://:secret@127.0.0.1:1", tmp_path)
    for arguments in (("show",), ("history", SAMSUNG)):
        sentence = nowhere.run(*arguments, code=3)
        assert len(sentence.splitlines()) == 1
        assert "no Redis or Valkey server answers at redis://127.0.0.1:1 " in sentence
        assert "`tickthrottle run`" in sentence
        assert "secret" not in sentence


def test_a_loader_that_is_killed_leaves_the_old_list_or_the_new(
    table: Table, redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    isins = make_isins(3_000)
    files = []
    for number in range(2):
        path = tmp_path / f"{number}.csv"
        rows = (f"{isin},name {number}\n" for isin in isins)
        path.write_text("isin,name\n" + "".join(rows), "utf-8")
        files.append(path)
    load_list(
        RedisInstrumentStore(client, "tt"),
        parse_list(files[0].read_text("utf-8").splitlines(True)),
        is_forced=True,
    )
    # Without the loader's start, which takes a second, most would be killed in it.
    program = (
        "import sys, redis\n"
        "from pathlib import Path\n"
        "from ingest.instrument_table.instrument_list import read_list\n"
        "from ingest.instrument_table import redis_instrument_store\n"
        "from ingest.instrument_table.table_loader import load_list\n"
        "client = redis.Redis.from_url(sys.argv[1])\n"
        "store = redis_instrument_store.RedisInstrumentStore(client, 'tt')\n"
        "lists = [read_list(Path(name)) for name in sys.argv[2:]]\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for wanted in lists:\n"
        "        load_list(store, wanted, is_forced=True)\n"
    )
    seen = set()
    for turn in range(4):
        command = [sys.executable, "-c", program, redis_url, *map(str, files)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.05 + turn * 0.06)
            os.kill(process.pid, signal.SIGKILL)
        known, refused = read_on(RedisInstrumentStore(client, "tt"), Instruments())
        names = {instrument.name for instrument in known}
        assert (len(known), len(names), refused) == (3_000, 1, 0)
        seen |= names
    assert seen <= {"name 0", "name 1"}


def test_a_list_of_symbols_is_loaded_with_a_venue(table: Table) -> None:
    """A bad venue is refused before the server is asked."""
    text = "code,name\nBTC,Bitcoin\n"
    assert "--venue makes keys" in table.load(text, code=3)
    assert "venue 'X Y': must be" in table.load(text, "--venue", "X Y", code=2)
    assert table.load(text, "--venue", "XMKT").startswith("1 added")
    assert table.run("show", "BTC").splitlines()[1].split()[0] == key_of("QX", "BTC")
