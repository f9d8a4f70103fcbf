"""What a trade log in a topic of Kafka still holds of the past."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from ingest.kafka.address import KafkaTopic
from ingest.kafka.kafka_log_reader import KafkaLogReader
from ingest.tradelog.contract import LogInfo
from throttle.audit.log_entries import LogEntries
from throttle.audit.recompute import Entry
from throttle.audit.reconcile import EntryCount
from throttle.contract.cut import NOWHERE

# The first piece is about what somebody looks at, the largest what memory may hold.
_PIECE, _LARGEST = 256, 8_192


class KafkaLogEntries(LogEntries):
    """The entries of a topic. A position is an offset and says nothing of time."""

    _reader: KafkaLogReader

    def __init__(self, topic: KafkaTopic, info: LogInfo) -> None:
        super().__init__(info, KafkaLogReader(topic, info))

    def _beyond(
        self, begins: Mapping[int, int], newest_first: bool
    ) -> Iterable[Iterator[Entry]]:
        bounds = self._reader.bounds()
        pieces = backwards if newest_first else forwards

        def entries_in(partition: int) -> Iterator[Entry]:
            first, last = bounds[partition]
            for piece in pieces(max(first, begins[partition]), last):
                entries = list(self.between({partition: piece}))
                yield from reversed(entries) if newest_first else entries

        return map(entries_in, begins)

    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
        bounds = self._reader.bounds()
        fronts: dict[int, Entry | None] = {}
        left = {p: forwards(*bounds[p], first=1) for p in partitions}
        while left:
            ranges = {p: next(pieces, None) for p, pieces in left.items()}
            oldest = self.between({p: span for p, span in ranges.items() if span})
            for entry in oldest:
                fronts.setdefault(entry.partition, entry)
            for p, span in ranges.items():
                if span is None:
                    fronts.setdefault(p, None)
            left = {p: pieces for p, pieces in left.items() if p not in fronts}
        return fronts

    def positions_before(
        self, time_ms: int, partitions: Iterable[int]
    ) -> dict[int, int]:
        positions = self._reader.positions_at(time_ms)
        return {p: positions[p] for p in partitions}

    def append_ms(self, partition: int, position: int) -> int | None:
        first, last = self._reader.bounds()[partition]
        if not first < position <= last:
            return None
        entries = self.between({partition: (position - 1, position)})
        return next((entry.append_ms for entry in entries), None)

    def count(self, marks: Mapping[int, Collection[int]]) -> dict[int, EntryCount]:
        bounds = self._reader.bounds()
        counts = {
            p: EntryCount.begin(of, bounds[p][0] + 1, bounds[p][0], is_dense=True)
            for p, of in marks.items()
        }
        read_upto = {
            p: max(bounds[p][0], min(of, default=NOWHERE)) for p, of in marks.items()
        }
        ranges = {p: (after, bounds[p][1]) for p, after in read_upto.items()}
        for p, chunk in self._reader.read(ranges):
            counts[p].add(chunk.positions.to_pylist())
            # Neither entries nor blanks: deleted since the bounds were asked for.
            if chunk.upto - read_upto[p] > len(chunk) + chunk.blanks:
                counts[p].gone, counts[p].gone_upto = chunk.upto + 1, chunk.upto
            read_upto[p] = chunk.upto
        return counts


def forwards(after: int, upto: int, first: int = _PIECE) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a range, from its beginning, small ones first. Pure."""
    size = first
    while after < upto:
        yield after, min(after + size, upto)
        after, size = after + size, min(2 * size, _LARGEST)


def backwards(after: int, upto: int) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a range, from its end, small ones first. Pure."""
    size = _PIECE
    while after < upto:
        yield max(after, upto - size), upto
        upto, size = upto - size, min(2 * size, _LARGEST)
