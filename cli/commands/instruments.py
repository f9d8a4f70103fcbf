"""The commands of the instrument table: load a list, show it, show what changed."""

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands.arguments import format_moment
from cli.commands.entry import fail
from cli.commands.form_option import FORM
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_items
from cli.examples import examples_of
from ingest.files.file_form import FileForm
from ingest.instrument_table.instrument_entry import (
    FIELDS,
    BadInstruments,
    InstrumentEntry,
)
from ingest.instrument_table.instrument_store import (
    InstrumentChange,
    InstrumentStore,
    TableAway,
    TableMoved,
)
from ingest.instrument_table.known_instruments import Instruments
from ingest.settings import TopicSettings
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.key_v1 import SymbolKeys, Venue

SHOWN = ("isin", "code", "name", "market", "sector", "prev_close", "status")
"""The fields that fit a line."""

instruments = typer.Typer(
    no_args_is_help=True,
    help="The instrument table: names, markets, sectors, previous closes.",
)

_WHERE = options_of(TopicSettings, "redis_url")
_Market = Annotated[
    str | None, typer.Option(help="Only the instruments of this market.")
]
_Sector = Annotated[
    str | None, typer.Option(help="Only the instruments of this sector.")
]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    name = f"instruments {function.__name__}"
    return instruments.command(epilog=examples_of(name))(function)


@_command
@options_of(FileForm, "map", form=[n for n in FORM if n in FileForm.model_fields])
@_WHERE
def load(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV with a header, JSON lines or Parquet, in gzip, zstd or zip or "
            "not, see docs/instruments.md; - is standard input."
        ),
    ],
    form: FileForm,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Change only the instruments and columns that the file has; all else "
            "stays.",
        ),
    ] = False,
    venue: Annotated[
        str | None,
        typer.Option(
            help="Give what has no ISIN the key of its symbol, or code, at this venue; "
            "see docs/instruments.md."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Load a list that is empty, or without more than half of the table.",
        ),
    ] = False,
    settings: TopicSettings,
) -> None:
    """Have the instrument table say what a file says; only what differs is changed.

    Instruments that are not in the file leave the table. Gateways follow within a
    second.
    """
    from ingest.instrument_table.instrument_list import read_list
    from ingest.instrument_table.table_loader import load_list, update_table

    try:
        keys = None if venue is None else SymbolKeys(Venue.parse(venue))
    except ValueError as error:
        fail(f"venue {error}", code=2)
    with _table(settings) as store:
        try:
            wanted = read_list(file, form, keys)
        except BadInstruments as error:
            fail(str(error).replace("instruments_file -", "file -"))
        try:
            if update:
                loaded = update_table(store, wanted)
            else:
                loaded = load_list(store, wanted, is_forced=force)
        except BadInstruments as error:
            fail(f"file {file}: {error}; nothing was changed")
    typer.echo(
        f"{loaded.added:,} added, {loaded.changed:,} changed, "
        f"{loaded.removed:,} removed, {loaded.unchanged:,} unchanged"
    )


@_command
@_WHERE
def show(
    *,
    instrument: Annotated[
        str | None, typer.Argument(help="Only this one: its ISIN or code.")
    ] = None,
    market: _Market = None,
    sector: _Sector = None,
    json: AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a list that `load` takes.")
    ] = False,
    settings: TopicSettings,
) -> None:
    """Show the instrument table."""
    with _table(settings) as store:
        known = _known(store)
    found = [
        entry
        for entry in known
        if instrument in (None, entry.isin, entry.code)
        and market in (None, entry.market)
        and sector in (None, entry.sector)
    ]
    if instrument is not None and not found:
        fail(f"instrument {instrument}: not in the table of {len(known):,} instruments")
    if as_csv and not json:
        typer.echo(encode_list(found), nl=False)
    else:
        print_items(found, json, lambda entry: entry.encoded, SHOWN, _cells)


@_command
@_WHERE
def history(
    *,
    instrument: Annotated[
        str, typer.Argument(help="Its ISIN, or a code: who had it last.")
    ],
    json: AsJson = False,
    settings: TopicSettings,
) -> None:
    """Show every change of an instrument that is kept, the newest last."""
    from ingest.instrument_table.table_loader import changes_of

    with _table(settings) as store:
        changes = changes_of(store, instrument)
    if not changes:
        fail(f"instrument {instrument}: the instrument table has never had it")
    columns = ["changed", *SHOWN[1:]]
    print_items(changes, json, _change_object, columns, _change_cells)


@_command
@options_of(Simulator, "seed", "instruments")
def simulated(*, market: Simulator) -> None:
    """List the simulated market's instruments: names, markets, sectors, base prices.

    As CSV, as `load` takes it. Every name is made up.
    """
    from ingest.sources.market import encode_instruments

    typer.echo(encode_instruments(market.listing()), nl=False)


def encode_list(entries: list[InstrumentEntry]) -> str:
    """Return instruments as CSV with a header, one a line."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([getattr(entry, name) for name in FIELDS] for entry in entries)
    return text.getvalue()


def _cells(entry: InstrumentEntry) -> tuple[str, ...]:
    return tuple(getattr(entry, name) or "" for name in SHOWN)


def _change_object(change: InstrumentChange) -> dict[str, Any]:
    return {
        "isin": change.isin,
        "version": change.version,
        "changed_ms": change.changed_ms,
        "instrument": change.entry and change.entry.to_fields(),
    }


def _change_cells(change: InstrumentChange) -> tuple[str, ...]:
    cells = ("removed",) if change.entry is None else _cells(change.entry)[1:]
    padding = ("",) * (len(SHOWN) - 1 - len(cells))
    return (format_moment(change.changed_ms), *cells, *padding)


def _known(store: InstrumentStore) -> Instruments:
    from ingest.instrument_table.table_loader import read_on

    known, refused = read_on(store, Instruments())
    if refused:
        sys.stderr.write(
            f"tickthrottle: {refused:,} changes are no instruments, left out\n"
        )
    return known


@contextmanager
def _table(settings: TopicSettings) -> Iterator[InstrumentStore]:
    import redis

    from ingest.instrument_table.open_instrument_store import open_instrument_store
    from ingest.process.redis_fault import explain

    try:
        with closing(open_instrument_store(settings)) as store:
            yield store
    except (TableAway, TableMoved, LogUnusable) as error:
        why = error.__cause__
        if isinstance(why, redis.RedisError):
            fail(explain(settings.redis_url, why))
        fail(str(error))
    except redis.RedisError as error:
        fail(explain(settings.redis_url, error))
