"""What one client is sent by position, and whom it knows by number. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.positions.field_sets import FieldSet
from gateway.positions.row_values import RowValues
from gateway.protocol.key_sets import InstrumentNumbers


@dataclass(slots=True, eq=False)
class ClientPositions:
    """Which ``fields`` a client's rows have.

    It was told the names of all its instruments whose numbers are below ``told``, but
    for those in ``untold``: they go with what it is sent next.
    """

    fields: FieldSet
    told: int
    untold: tuple[str, ...] = ()

    def encode(
        self, number: int, body: bytes, sums: bytes, day: bytes, window: int | None
    ) -> bytes:
        """Return a row of a message of this ``window``."""
        row = RowValues.of(body, sums, day, window)
        return row.encode(number, self.fields.keys)

    def names(self, isins: Iterable[str], numbers: InstrumentNumbers) -> bytes:
        """Return what a message has to say of the numbers of some instruments."""
        if self.told >= len(numbers):
            return b""
        untold, self.untold = self.untold, ()
        every = ((numbers.get(isin), isin) for isin in dict.fromkeys((*isins, *untold)))
        return names_field(
            [
                name_pair(n, isin)
                for n, isin in every
                if n is not None and n >= self.told
            ]
        )


def name_pair(number: int, isin: str) -> bytes:
    """Return the name of an instrument's number as a field of ``names``."""
    return b'"%d":"%b"' % (number, isin.encode())


def names_field(pairs: Sequence[bytes]) -> bytes:
    """Return the field ``names`` of a message, nothing if there are none."""
    return b',"names":{%b}' % b",".join(pairs) if pairs else b""
