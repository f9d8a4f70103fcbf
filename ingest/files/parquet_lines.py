"""The rows of a Parquet file as lines of JSON, every digit as it is."""

from collections.abc import Iterator
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_ROWS = 4_096

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_CODES = (
    *(pa.types.is_integer, pa.types.is_string),
    *(pa.types.is_large_string, pa.types.is_string_view),
)


def read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a piece of lines for each few thousand rows.

    Numbers have all of their digits, NaN becomes null. Dates and times become text,
    with Z if the file says in which zone they are. Of a column of structures there is
    one for each part, named with points. Lists of whole numbers or text are lists,
    others are left out. Raises ValueError and OSError.
    """
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(_ROWS):
            table = pa.Table.from_batches([batch])
            while any(pa.types.is_struct(kind) for kind in table.schema.types):
                table = table.flatten()
            columns = {
                name: _values(column)
                for name, column in zip(table.column_names, table.columns, strict=True)
                if not pa.types.is_nested(column.type) or _is_list(column.type)
            }
            rows = zip(*columns.values(), strict=True)
            lines = [orjson.dumps(dict(zip(columns, row, strict=True))) for row in rows]
            yield b"".join(line + b"\n" for line in lines)


def _is_list(kind: pa.DataType) -> bool:
    """Tell whether a column may hold codes: numbers or text, several in a row."""
    if not any(is_kind(kind) for is_kind in _LISTS):
        return False
    of = kind.value_type
    if pa.types.is_dictionary(of):
        of = of.value_type
    return any(is_kind(of) for is_kind in _CODES)


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_list(kind):
        values: list[Any] = column.to_pylist()
        return values
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.is_finite(column).to_pylist()
        return [
            orjson.Fragment(text) if is_number and text is not None else None
            for text, is_number in zip(texts, numbers, strict=True)
        ]
    return texts
