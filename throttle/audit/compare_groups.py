"""A published window's groups against the same computed from its trades. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from ingest.instrument_table.known_instruments import Instruments
from ingest.series import is_series
from throttle.audit.recompute import ComputedRow
from throttle.contract.group import Group, GroupFigures, market_key, sector_key
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import WindowSnapshot


def groups_of(
    snapshot: WindowSnapshot,
    computed: Mapping[str, ComputedRow],
    instruments: Instruments,
    restating: Set[str] = frozenset(),
) -> dict[str, Group]:
    """Return by their keys the groups that a window with these rows has to have.

    Of ``restating`` instruments they count the trades only.
    """
    figures: dict[str, GroupFigures] = defaultdict(GroupFigures)
    for row in snapshot.rows:
        made = computed.get(row.isin)
        if made is None or is_series(row.isin):
            # A difference of its own, or of an instrument that has a row, too.
            continue
        entry = instruments.get(row.isin)
        market, sector = (entry.market, entry.sector) if entry else (None, None)
        trades, amounts = made.row.row_sums
        for key in (market_key(market), sector_key(sector)):
            group = figures[key]
            if amounts is not None:
                group.add_trades(trades, amounts.volume, amounts.value)
            if row.isin not in restating:
                group.add_instrument(
                    made.price, None if entry is None else entry.prev_close
                )
    return {key: of.encode(key, snapshot.window) for key, of in figures.items()}


def judge_groups(
    snapshot: WindowSnapshot,
    batch: BatchEntry,
    computed: Mapping[str, ComputedRow],
    instruments: Instruments,
    restating: Set[str],
) -> Iterator[str]:
    """Say in one sentence each where a window's groups differ from its trades.

    ``instruments`` is the table that its batch was joined with; the trades of
    ``restating`` instruments were no news.
    """
    name = f"window {snapshot.window}"
    if snapshot.instruments_version != batch.end.instruments:
        yield (
            f"{name}: says that the instrument table "
            f"{snapshot.instruments_version} was joined, its cut says "
            f"{batch.end.instruments}"
        )
    wanted = {}
    if batch.end.instruments:
        wanted = groups_of(snapshot, computed, instruments, restating)
    published = {group.key: group for group in snapshot.groups}
    for key in sorted(wanted.keys() | published.keys()):
        sent, due = published.get(key), wanted.get(key)
        if sent != due:
            yield f"{name}, {key}: published is {_words(sent)}, due is {_words(due)}"
    if len(published) != len(snapshot.groups):
        yield f"{name}: has a group twice"


def _words(group: Group | None) -> str:
    return "nothing" if group is None else group.body.decode()
