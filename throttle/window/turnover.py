"""Volume and value of trades by partition of the log, for the books. Pure."""

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.ledger import Turnover
from throttle.contract.row_sums import Amounts
from throttle.window.row_schema import SUM_PREFIX, records
from throttle.window.trade_sums import SUMS, of_columns, to_units, unpack
from throttle.window.vector_check import counts_for, numbers_of_rows

_ONE = pa.scalar(1, pa.int64())

ByPartition = dict[int, Turnover]


def of_all(rows: pa.Table, payload: str = "payload") -> ByPartition:
    """Return what the trades of rows come to, those in no column too.

    ``rows`` have the columns of ``row_schema.ARROW_SCHEMA``, whatever their order;
    ``payload`` is what the column of that name is called.
    """
    turnover = _of_columns(rows)
    odd = rows.filter(pc.starts_with(rows["key"], SUM_PREFIX))
    for partition, packed in records(odd, ("partition", payload)):
        turnover[partition] = turnover[partition].plus(*unpack(packed)[:2])
    return turnover


def of_newest(
    trades: pa.Table, bodies: Sequence[bytes], are_newest: Sequence[bool]
) -> ByPartition:
    """Return what the trades that rows show come to themselves.

    ``bodies`` are what clients get of each row; its trade is shown if it is newest.
    """
    # Without the payloads, which would be copied.
    columns_of_all = trades.select(["partition", "trades", *SUMS]).combine_chunks()
    newest = pa.array(are_newest, pa.bool_())
    # Such a row's sums are its trade's own.
    is_one = pc.equal(columns_of_all["trades"], _ONE)
    is_alone = pc.and_(is_one, pc.is_valid(columns_of_all[SUMS[0]]))
    turnover = _of_columns(columns_of_all.filter(pc.and_(newest, is_alone)))
    others = pc.indices_nonzero(pc.and_(newest, pc.invert(is_alone)))
    partitions = columns_of_all["partition"].take(others)
    left = pa.array([bodies[place] for place in others.to_pylist()], pa.binary())
    prices, sizes = numbers_of_rows(left)
    counts = counts_for(left)
    columns, fits = of_columns(prices, sizes, counts)
    sums = _of_columns(pa.table({"partition": partitions, **columns}))
    for partition, of_some in sums.items():
        turnover[partition] = turnover[partition].plus(*of_some)
    if fits is not None:
        is_odd = pc.invert(fits)
        odd = (c.filter(is_odd).to_pylist() for c in (partitions, left))
        for partition, body in zip(*odd, strict=True):
            of_trade = Amounts.of_body(body)
            if of_trade is not None:
                turnover[partition] = turnover[partition].plus(*of_trade[:2])
    return turnover


def _of_columns(rows: pa.Table) -> ByPartition:
    turnover: ByPartition = defaultdict(Turnover)
    only = pc.min_max(rows["partition"])
    if len(rows) and only["min"] == only["max"]:
        parts = [pc.sum(rows[name]).as_py() or 0 for name in SUMS]
        turnover[only["min"].as_py()] = Turnover(*to_units(parts))
        return turnover
    groups = rows.group_by("partition", use_threads=False)
    sums = groups.aggregate([(name, "sum") for name in SUMS])
    for partition, *parts in records(sums, ("partition", *(f"{n}_sum" for n in SUMS))):
        turnover[partition] = Turnover(*to_units([part or 0 for part in parts]))
    return turnover
