"""The command that says what a file seems to be, and how to take its trades."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.arguments import format_moment
from cli.commands.entry import fail, failing_on
from cli.commands.feeds import TAPE_LINES
from cli.commands.setting_options import spell_lines
from ingest.sources.inspection import SAMPLE_BYTES, Inspection, inspect_sample
from ingest.sources.trade_lines import LineOptions


@TAPE_LINES
def inspect(
    *,
    file: Annotated[
        Path, typer.Argument(help="The file, packed or not; - is standard input.")
    ],
    lines: LineOptions,
) -> None:
    """Say what a file of trades seems to be, and which command takes it.

    Looks at its first records, and appends nothing. Options that are given are not
    guessed. Ends with 1 if none of the records is a trade as it is.
    """
    from ingest.instrument_table.instrument_entry import BadInstruments
    from ingest.instrument_table.instrument_list import read_symbols

    with failing_on(BadInstruments, code=2):
        instruments = read_symbols(lines.instruments_file, lines.venue)
    sample, damage = _read_sample(file)
    seen = inspect_sample(sample, lines, instruments)
    if damage:
        typer.echo(f"damaged   {damage}")
    for name, text in _rows(file, seen):
        typer.echo(f"{name:<9} {text}".rstrip())
    if not seen.taken:
        raise typer.Exit(1)


def _read_sample(file: Path) -> tuple[bytes, str]:
    """Return a file's first bytes, unpacked, and what is damaged in them."""
    from ingest.files.file_kind import DamagedFile, Unreadable
    from ingest.files.open_pieces import read_pieces

    sample = bytearray()
    try:
        for piece in read_pieces(file):
            sample += piece
            if len(sample) >= SAMPLE_BYTES:
                break
    except DamagedFile as error:
        return bytes(sample), str(error)
    except Unreadable as error:
        fail(f"{file}: {error}")
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror or error}")
    return bytes(sample[:SAMPLE_BYTES]), ""


def _rows(file: Path, seen: Inspection) -> Iterator[tuple[str, str]]:
    yield "form", f"{seen.form or 'unknown'}, {seen.options.encoding}"
    for line in seen.head:
        yield "", line[:200] if line.isprintable() else ascii(line)[:200]
    if seen.problem:
        yield "problem", seen.problem
        return
    yield "fields", ", ".join(f"{field}={name}" for field, name in seen.names.items())
    if "seq" not in seen.names:
        yield "", "no seq: trades are numbered in the order of the file"
    yield "trades", f"{seen.taken:,} of the first {seen.records:,} records"
    for trade in seen.trades:
        is_stamped = seen.options.stamp == "now"
        moment = "now" if is_stamped else format_moment(trade.time_us // 1000)
        further = ", ".join(f"{name}={value}" for name, value in trade.extra.items())
        yield "", f"{trade.isin} {moment} {trade.price} x {trade.size} {further}"[:200]
    for reason, count in seen.refusals.counts.most_common():
        yield "refused", f"{count:,} {reason}"
    for example in seen.refusals.examples:
        yield "", example
    yield "command", shlex.join(_command(file, seen))


def _command(file: Path, seen: Inspection) -> list[str]:
    arguments = spell_lines(seen.options)
    if seen.options.instruments_file is None and seen.refusals.counts["bad_isin"]:
        arguments += ["--instruments", "LIST"]
    if any("needs its offset" in example for example in seen.refusals.examples):
        arguments += ["--form", "time-zone=ZONE"]
    return ["tickthrottle", "ingest", str(file), *arguments]
