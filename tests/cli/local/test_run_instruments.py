"""The list that names a run's instruments, and what is refused of it."""

from pathlib import Path

import pytest

from cli.local.run_instruments import instruments_file_of
from cli.local.settings import RunSettings
from ingest.adapters.adapter import BadChoice
from ingest.instrument_table.instrument_entry import BadInstruments
from ingest.instrument_table.instrument_list import read_instruments

LOCAL = "tests.ingest.adapters.local_feeds"


def test_the_list_of_an_exchange_names_a_runs_instruments(tmp_path: Path) -> None:
    """Those that are followed; a list of the user's own wins."""
    chosen = RunSettings(feed=f"{LOCAL}:Local")
    path = instruments_file_of(chosen, tmp_path)
    assert path is not None
    assert [entry.name for entry in read_instruments(path)] == ["BTCUSDT by name"]
    everything = RunSettings(feed=f"{LOCAL}:Local", feed_symbols="*")
    path = instruments_file_of(everything, tmp_path)
    assert path is not None
    assert len(read_instruments(path)) == 2
    own = tmp_path / "own.csv"
    own.write_text("isin,code,name\nKR7005930003,KRW-BTC,Coin\n")
    assert (
        instruments_file_of(RunSettings(feed="upbit", instruments_file=own), tmp_path)
        == own
    )


@pytest.mark.parametrize("feed", [None, "none", "upbit"])
def test_a_list_that_is_none_is_refused(feed: str | None, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("code,name\n005930,Samsung\n")
    settings = RunSettings(feed=feed, instruments_file=own)
    with pytest.raises(
        BadInstruments, match=r"own.csv: line 1, .*must have a column isin"
    ):
        instruments_file_of(settings, tmp_path)


def test_a_feed_whose_key_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variable to set; a list of one's own is no way round."""
    monkeypatch.delenv("TICKTHROTTLE_KIS_APPKEY", raising=False)
    settings = RunSettings(feed="kis", feed_symbols="005930")
    with pytest.raises(BadChoice, match=r"feed kis: needs a key: set TICKTHROTTLE_KIS"):
        instruments_file_of(settings, tmp_path)


def test_a_tape_and_a_run_without_a_feed_have_no_list_of_their_own(
    tmp_path: Path,
) -> None:
    tape = tmp_path / "tape.csv"
    tape.touch()
    assert instruments_file_of(RunSettings(tape=tape), tmp_path) is None
    assert instruments_file_of(RunSettings(feed="none"), tmp_path) is None
