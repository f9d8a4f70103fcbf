"""What every trade log agrees on."""

import pytest

from ingest.tradelog.contract import partition_of


def test_partition_of_an_instrument_never_changes() -> None:
    """Another version of the program finds an instrument in the same partition."""
    found = [partition_of("KR7005930003", partitions) for partitions in (1, 4, 7, 64)]
    assert found == [0, 0, 3, 8]


@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_instruments_spread_over_all_partitions(partitions: int) -> None:
    """No partition has more than one and a half times its share of the instruments."""
    instruments = [f"KR7{code:05}0003" for code in range(3_000)]
    counts = [0] * partitions
    for isin in instruments:
        counts[partition_of(isin, partitions)] += 1
    assert min(counts) > 0
    assert max(counts) <= 1.5 * len(instruments) / partitions
