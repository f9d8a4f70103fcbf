"""The command that tries a decoder, without a broker."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.arguments import BadArgument, Limit, check_number
from cli.commands.entry import fail, failing_on
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_items
from cli.commands.trades import trade_cells, trade_object
from ingest.trade import InvalidTrade, Trade
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ingest.files.records import Record
    from throttle.audit.recompute import Entry
    from throttle.window.decoder import Judged

_TRADES = "trades"


@options_of(ThrottleSettings, "decoder", schema_registry_url="--schema-registry")
def decode(
    *,
    file: Annotated[
        Path, typer.Argument(help="Entries, one a line, packed or not; - is stdin.")
    ],
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="The file is one entry, of a form that has no lines."
        ),
    ] = False,
    limit: Limit = 20,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Show what a decoder makes of entries, as the job would take them.

    Ends with 1 if none of them holds a trade. What is shown is limited, what is counted
    is not.
    """
    from throttle.audit.recompute import Entry, WindowRule
    from throttle.window.decoder import NoDecoder, find_decoder

    with failing_on(BadArgument, NoDecoder, code=2):
        check_number("limit", limit)
        decoder = find_decoder(settings.decoder, settings.schema_registry_url)
    most_bytes = settings.max_entry_bytes
    rule = WindowRule(settings.window_ms, settings.max_ahead_ms, decoder, most_bytes)
    became: Counter[str] = Counter()
    shown: list[tuple[Entry, Judged]] = []
    entries = 0
    now_ms = time.time_ns() // 1_000_000
    for number, payload in _entries(file, most_bytes, is_whole=whole):
        entries += 1
        if isinstance(payload, InvalidTrade):
            entry = Entry(0, number, now_ms, b"")
            held: Sequence[Judged] = [payload]
        else:
            entry = Entry(0, number, now_ms, payload)
            held = rule.judge(entry)
        for judged in held:
            became[_word(judged)] += 1
            if len(shown) < limit:
                shown.append((entry, judged))
    print_items(
        shown,
        json,
        lambda pair: trade_object(*pair, is_decoded=decoder is not None),
        ["entry#", "isin", "time", "seq#", "price#", "size#", "more"],
        lambda pair: (pair[0].position, *trade_cells(pair[1], pair[0].payload)),
    )
    counts = "".join(f", {count:,} {word}" for word, count in became.most_common())
    typer.echo(f"{entries:,} entries{counts}", err=json)
    if not became[_TRADES]:
        raise typer.Exit(1)


def _word(one: Judged) -> str:
    if isinstance(one, Trade):
        return _TRADES
    if isinstance(one, InvalidTrade):
        return f"refused as {one.reason}"
    return f"skipped as {one.name}"


def _entries(file: Path, most_bytes: int, *, is_whole: bool) -> Iterator[Record]:
    """Yield the entries of a file with their numbers; one that is too long is none."""
    from ingest.files.records import numbered_lines

    pieces = _pieces(file)
    if is_whole:
        yield 1, _whole(pieces, most_bytes)
        return
    for number, line in chain.from_iterable(numbered_lines(pieces, most_bytes)):
        yield number, line.removesuffix(b"\r") if isinstance(line, bytes) else line


def _pieces(file: Path) -> Iterator[bytes]:
    from ingest.files.file_kind import DamagedFile, Unreadable
    from ingest.files.open_pieces import read_pieces

    try:
        yield from read_pieces(file)
    except (DamagedFile, Unreadable) as error:
        fail(f"{file}: {error}")
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror or error}")


def _whole(pieces: Iterable[bytes], most_bytes: int) -> bytes:
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > most_bytes:
            break
    return bytes(whole)
