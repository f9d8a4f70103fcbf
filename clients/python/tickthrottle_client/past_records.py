"""Rows of the past, and the tables of other libraries that they become. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, overload

from tickthrottle_client.bar_book import DECIMALS
from tickthrottle_client.tick_v1 import read_decimal

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

_DECIMALS = ("price", "size", *DECIMALS)
_WHOLE = ("trades", "revision")
_MS, _US = ("window", "start", "end"), ("time",)
_DIGITS, _PLACES = 38, 18
_SMALLEST = Decimal(1).scaleb(-_PLACES)


def exact(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose numbers are Decimal. Raises as ``read_decimal`` does."""
    return {
        name: read_decimal(value) if name in _DECIMALS and value is not None else value
        for name, value in row.items()
    }


class Records(Sequence[Mapping[str, Any]]):
    """Some windows or bars, oldest first: a mapping each, numbers as Decimal.

    ``gaps`` names what is missing in between, as REST does.
    """

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], gaps: Sequence[Mapping[str, Any]]
    ) -> None:
        self._rows = rows
        self.gaps = gaps

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table; needs pyarrow.

        Decimals have 18 digits behind the point, ``decimal128(38, 18)``: prices and
        sums are exact, a mean (``vwap``) is rounded to that. Times are in UTC.
        """
        import pyarrow as pa

        number = pa.decimal128(_DIGITS, _PLACES)
        types = {
            **dict.fromkeys(_DECIMALS, number),
            **dict.fromkeys(_WHOLE, pa.int64()),
            **dict.fromkeys(_MS, pa.timestamp("ms", "UTC")),
            **dict.fromkeys(_US, pa.timestamp("us", "UTC")),
        }
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        columns: dict[str, Any] = {}
        for name in names:
            values = [row.get(name) for row in self._rows]
            if name == "vwap":
                values = [None if v is None else v.quantize(_SMALLEST) for v in values]
            columns[name] = pa.array(values, types.get(name))
        return pa.table(columns)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame of pandas; needs pandas and pyarrow.

        Decimals are Python's, with the digits that they came with.
        """
        import pandas as pd

        frame = self.to_arrow().to_pandas()
        for name in frame.columns.intersection(_DECIMALS):
            values = [row.get(name) for row in self._rows]
            frame[name] = pd.Series(values, frame.index, dtype=object)
        return frame
