"""The command that says which key the pipeline has for a symbol without an ISIN."""

import csv
import sys
from typing import Annotated

import typer

from cli.commands.entry import fail, failing_on
from ingest.instrument_table.instrument_entry import is_code
from ingest.instrument_table.instrument_list import MOST_INSTRUMENTS
from tickthrottle_client.key_v1 import BadSymbol, Venue, keys_of

COLUMNS = ("isin", "code", "name", "market", "symbol")


def key(
    *,
    symbols: Annotated[
        list[str],
        typer.Argument(
            help="Symbols as the venue writes them; - is standard input, one a line."
        ),
    ],
    venue: Annotated[
        str,
        typer.Option(
            help="The venue: XNAS, or XNAS=QM with letters of its own, from QM to QZ."
        ),
    ],
    as_list: Annotated[
        bool,
        typer.Option(
            "--list", help="Print an instrument list for `instruments load`, as CSV."
        ),
    ] = False,
) -> None:
    """Print the keys of symbols that have no ISIN, one a line."""
    try:
        place = Venue.parse(venue)
    except ValueError as error:
        fail(f"venue {error}", code=2)
    if symbols == ["-"]:
        symbols = [line.strip() for line in sys.stdin if line.strip()]
    if len(symbols) > MOST_INSTRUMENTS:
        fail(f"symbols: at most {MOST_INSTRUMENTS} at a time", code=2)
    with failing_on(BadSymbol, code=2):
        keys = keys_of(place.letters, symbols)
    if not as_list:
        for symbol in symbols:
            typer.echo(keys[symbol])
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for symbol, isin in keys.items():
        code = symbol if is_code(symbol) else ""
        writer.writerow((isin, code, symbol, place.name, symbol))
