"""Rows of past windows, as a table."""

import pytest

from cli.commands.windows import print_windows
from tests.gateway.samples import make_row, make_snapshot


@pytest.mark.parametrize(
    ("sums", "cells"),
    [
        (b"1", ["1", "40", "7980000", "199500", "199500"]),
        (b"2,5,997500.1,199700,199400", ["2", "5", "997500.1", "199700", "199400"]),
        (b"37", ["37", "-", "-", "-", "-"]),
    ],
    ids=["its own trade", "several", "counted alone"],
)
def test_a_row_is_shown_with_its_sums(
    sums: bytes, cells: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    row = make_row()._replace(sums=sums)
    print_windows([make_snapshot(1, row)], with_rows=True)
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[2:-1] == ["trades", "volume", "value", "high", "low"]
    assert line.split()[2:] == [*cells, row.body.decode()]
