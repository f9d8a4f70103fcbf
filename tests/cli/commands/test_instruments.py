"""What the simulated market's instruments are called, for whoever shows them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.command_line import app
from cli.local.runner import instruments_file_of
from cli.local.settings import RunSettings
from ingest.sources.market import encode_instruments
from ingest.sources.simulator import Simulator
from tests.conftest import input_file

runner = CliRunner()
OWN = encode_instruments(Simulator().listing())


def test_the_command_prints_what_the_simulator_trades() -> None:
    """Seed and number mean what they mean to `simulate`."""
    arguments = ["instruments", "simulated", "--seed", "5", "--instruments", "7"]
    printed = runner.invoke(app, arguments).stdout
    assert printed == encode_instruments(Simulator(seed=5, instruments=7).listing())
    assert runner.invoke(app, ["instruments", "simulated"]).stdout == OWN
    first = runner.invoke(
        app, ["instruments", "simulated", "--instruments", "3"]
    ).stdout
    assert OWN.startswith(first)


def test_a_run_of_the_simulator_names_its_instruments(tmp_path: Path) -> None:
    path = instruments_file_of(RunSettings(), tmp_path)
    assert path == tmp_path / "instruments.csv"
    assert path.read_text("utf-8") == OWN


@pytest.mark.redis
@pytest.mark.usefixtures("client")
def test_a_list_of_the_exchange_is_loaded_as_it_is(redis_url: str) -> None:
    """In its own encoding, with its own columns and marks."""
    krx = "isin=표준코드,code=단축코드,name=한글 종목약명,listed_shares=상장주식수"
    for name, encoding, names in (
        ("b/b37_krx_list_cp949.csv", "cp949", krx),
        ("b/b37b_list_utf8_krxcols.csv", "utf-8", krx),
        ("b/b38_list_cp949_ourcols.csv", "cp949", "prev_close=previous_close"),
    ):
        options = ["--map", names, "--form", f"encoding={encoding}"]
        options += ["--form", "thousands=,"]
        where = ["--update", "--redis-url", redis_url]
        path = str(input_file(name))
        done = runner.invoke(app, ["instruments", "load", path, *options, *where])
        assert done.exit_code == 0, done.stderr
    shown = runner.invoke(
        app, ["instruments", "show", "--json", "--redis-url", redis_url]
    )
    assert '"name":"가나전자"' in shown.stdout
    assert '"prev_close":71500' in shown.stdout
    assert '"listed_shares":5969782550' in shown.stdout


def test_a_list_in_another_encoding_is_told_so() -> None:
    path = str(input_file("b/b37_krx_list_cp949.csv"))
    done = runner.invoke(app, ["instruments", "load", path, "--redis-url", "redis://x"])
    assert "must be UTF-8: --form encoding=cp949 perhaps" in done.stderr
