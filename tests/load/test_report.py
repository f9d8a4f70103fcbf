"""The report as JSON: what is written is read back, and nothing else is."""

import json
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from bench.load.report import ReportError, decode, encode, read, write
from bench.load.results import Result
from tests.load.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_result,
)


@pytest.mark.parametrize(
    "result",
    [
        make_result(40, 20),
        make_broken_result(),
        make_capacity_result(),
        make_comparison_result(),
    ],
    ids=["run", "broken", "capacity", "comparison"],
)
def test_what_is_written_is_read_back(result: Result) -> None:
    """Every field of it, in every kind of report."""
    written = encode(result)
    assert json.loads(encode(decode(written))) == json.loads(written)
    assert decode(written).outcome.lag_ms == result.outcome.lag_ms


def test_series_may_be_arrays() -> None:
    """What collects samples need not turn them into lists."""
    result = make_result(40, 20)
    rates = array("d", [1.0, 2.0])
    seconds = replace(result.outcome.seconds, at_ms=rates, due_rate=rates)
    changed = replace(result, outcome=replace(result.outcome, seconds=seconds))
    assert decode(encode(changed)).outcome.seconds.due_rate == [1.0, 2.0]


def test_a_file_is_written_for_each_path_given(tmp_path: Path) -> None:
    """JSON and page stand beside each other; without a path there is none."""
    result = make_result(40, 20)
    write(result, tmp_path / "a.json", tmp_path / "a.html")
    write(result, None, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json"]
    assert read(tmp_path / "a.json") == decode(encode(result))
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"{", "not a report: "),
        (b"[]", "not a report: it has no version"),
        (b'{"title": "x"}', "not a report: it has no version"),
        (b'{"version": 9}', "version 9 of a report: this program reads 1"),
        (b'{"version": 1}', "not a report: title "),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(
    data: bytes, complaint: str, tmp_path: Path
) -> None:
    """The sentence says what is wrong, and in which file."""
    path = tmp_path / "result.json"
    path.write_bytes(data)
    with pytest.raises(ReportError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: {complaint}")
    assert "\n" not in str(raised.value)


def test_a_field_that_is_no_number_is_named() -> None:
    """Not only that something is wrong, but where."""
    raw = json.loads(encode(make_result(40, 20)))
    raw["outcome"]["books"]["read"] = "many"
    with pytest.raises(ReportError, match=r"outcome\.books\.read 'many': "):
        decode(json.dumps(raw).encode())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A wrong path is one sentence, too."""
    with pytest.raises(ReportError, match=r"absent\.json: No such file"):
        read(tmp_path / "absent.json")
