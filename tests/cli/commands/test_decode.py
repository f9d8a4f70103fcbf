"""A decoder tried on entries of a file, without a broker."""

import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.running import run
from tests.doc_pages import blocks, text_of
from throttle.window.decoder import find_decoder

DECODER = """
import json

def decode(value):
    row = json.loads(value, parse_float=str)
    if row["kind"] != "trade":
        return row["kind"]
    if row["px"] == "?":
        raise KeyError("no price")
    return {"isin": "KR7005930003", "time": row["ms"] * 1000, "seq": row["id"],
            "price": row["px"], "size": row["qty"]}
"""
ENTRIES = """{"kind":"trade","ms":1773964800001,"id":1,"px":71.250,"qty":3}
{"kind":"book"}
{"kind":"trade","ms":1773964800002,"id":2,"px":-1,"qty":3}\r
{"kind":"trade","ms":1773964800003,"id":3,"px":"?","qty":3}
not json
{"kind":"book"}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_form.py").write_text(DECODER)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_form:decode"
    find_decoder.cache_clear()
    sys.modules.pop("own_form", None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "values.jsonl"
    path.write_text(ENTRIES)
    return path


def test_trades_and_refusals_are_shown_and_counted(file: Path, module: str) -> None:
    done = run("decode", file, "--decoder", module)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    first = "1 KR7005930003 1773964800001000 1 71.250 3"
    assert " ".join(lines[1].split()) == first
    assert "skipped, book" in lines[2]
    assert "refused, bad_price" in lines[3]
    assert "not_decoded" in lines[4]
    assert "KeyError" in lines[4]
    assert lines[-1] == (
        "6 entries, 2 skipped as book, 2 refused as not_decoded, 1 trades, "
        "1 refused as bad_price"
    )


def test_the_decoders_of_the_page_read_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page's own line; and a form of bytes, as one entry."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for block in blocks("docs/kafka.md", "python"):
        for name in re.findall(r"^# (\w+\.py)", block):
            (tmp_path / name).write_text(block)
    frames = '[{"ty":"trade","cd":"KRW-BTC","ttms":1773964800001,"sid":7,'
    frames += '"tp":9e7,"tv":0.10,"ab":"BID"}]'
    Path("values.jsonl").write_text(f'{frames}\n{{"ty":"orderbook"}}\n')
    [line] = re.findall(r"`tickthrottle decode (.*?)`", text_of("docs/kafka.md"))
    done = run("decode", *line.split())
    assert done.exit_code == 0, done.output
    assert "QUCKRWBTC002 1773964800001000 7 90000000 0.10" in words(done)
    assert words(done).endswith("2 entries, 1 trades, 1 skipped as orderbook")

    entry = struct.pack(">12sQQQI", b"KR7005930003", 1773964800001000, 1, 71900, 3)
    Path("value").write_bytes(entry)
    done = run("decode", "value", "--whole", "--decoder", "my_feed:decode")
    assert "KR7005930003 1773964800001000 1 71900 3" in words(done)
    find_decoder.cache_clear()
    for name in ("upbit_topic", "my_feed"):
        sys.modules.pop(name)


def words(done: Result) -> str:
    return " ".join(done.stdout.split())


def test_what_is_shown_is_limited_and_what_is_counted_is_not(
    file: Path, module: str
) -> None:
    done = run("decode", file, "--decoder", module, "--limit", "1", "--json")
    [line] = done.stdout.splitlines()
    assert json.loads(line, parse_float=str)["trade"]["price"] == "71.250"
    assert done.stderr.startswith("6 entries, ")


def test_a_file_may_be_one_entry(tmp_path: Path, module: str) -> None:
    """Lines in it are no ends of entries."""
    file = tmp_path / "value.json"
    file.write_text(ENTRIES.splitlines()[0].replace(",", ",\n"))
    assert run("decode", file, "--decoder", module).exit_code == 1
    done = run("decode", file, "--whole", "--decoder", module)
    assert done.exit_code == 0
    assert done.stdout.endswith("1 entries, 1 trades\n")


@pytest.mark.parametrize("options", [[], ["--whole"]])
def test_without_a_decoder_it_is_the_projects_own_form(
    tmp_path: Path, options: list[str]
) -> None:
    """And an entry that is too long is refused as the job does it."""
    wire = {"isin": "KR7005930003", "time": 1773964800001000, "seq": 1, "price": 5}
    file = tmp_path / "values"
    file.write_text(json.dumps({**wire, "size": 1, "more": "x" * 70_000}))
    done = run("decode", file, *options)
    assert done.exit_code == 1
    assert "refused as too_large" in done.stdout
    file.write_text(json.dumps({**wire, "size": 1}))
    assert run("decode", file, *options).exit_code == 0


def test_what_cannot_be_tried_is_told(file: Path) -> None:
    for arguments, code, problem in (
        ((file, "--decoder", "no_such_module:decode"), 2, "no_such_module"),
        ((file, "--limit", "0"), 2, "limit 0"),
        ((file.with_name("none"),), 3, "cannot be read"),
    ):
        done = run("decode", *arguments)
        assert (done.exit_code, problem in done.stderr) == (code, True), done.output
