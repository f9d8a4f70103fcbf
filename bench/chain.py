"""What the chain of windows costs a publish, and a client in bytes.

Two streams on one server are published the same windows in turns, which one first
changes each time: one with links and checksums, one without. The bytes are those that
a client is sent for a window's link.
"""

import time
from importlib.resources import files

from machine import KEYS, options, print_machine, print_table, running_server
from pinned_gateway import INSTRUMENTS, WINDOW_MS, make_row

from ingest.redis_keys import Keys
from throttle.contract.cut import Cut
from throttle.contract.row_sums import RowSums
from throttle.lease.lease import Lease, LeaseGrant
from throttle.publish.publisher import Publisher, PublishOptions
from throttle.publish.window_chain import ChainedWindows, WindowChain
from throttle.window.batch import Batch, BatchWindow, PartitionCount
from tickthrottle_client.chain_v1 import ChainPlace, Link

_SEAL = ", 'sha1', redis.sha1hex(message .. window.starting))"


class _Unlinked(WindowChain):
    """Says where the stream stands, and nothing of windows."""

    def link(self, batch: Batch, *_: object) -> ChainedWindows:
        if not self.at:
            self.has_moved()
        epoch, offset, *_ = self.at.split(" ")
        end = ChainPlace(epoch, int(offset) + len(batch.windows), "0" * 43).text
        return ChainedWindows(self.at, end, [""] * len(batch.windows), "")


def main() -> None:
    arguments = options(__doc__, rows=(900, "a window"), windows=(200, "of each"))
    with running_server() as server:
        client = server.client
        streams = {}
        for name, keys in (("with", KEYS), ("without", Keys("without"))):
            grant = Lease(client, keys, "job", 600_000).acquire("log", _cut(0))
            assert isinstance(grant, LeaseGrant)
            made = PublishOptions("job", WINDOW_MS, 450)
            streams[name] = Publisher(client, keys, made, grant.term)
        plain = streams["without"]
        source = files("throttle.publish").joinpath("publisher.lua").read_text("utf-8")
        assert _SEAL in source
        plain._publish = client.register_script(source.replace(_SEAL, ")"))
        plain._chain = _Unlinked(client, Keys("without"))
        took_ms: dict[str, list[float]] = {name: [] for name in streams}
        for number in range(1, arguments.windows + 11):
            batch = _batch(number, arguments.rows)
            for name in sorted(streams, reverse=number % 2 == 0):
                began = time.perf_counter()
                streams[name].publish(batch, number)
                if number > 10:
                    took_ms[name].append((time.perf_counter() - began) * 1_000)
        window = _batch(number, arguments.rows).windows[0]
        lines = [row.body + b" " + row.sums for _, row in window.rows.values()]
        before = ChainPlace("a3e0f7c4", number, "0" * 43)
        linked_ms = []
        for _ in range(arguments.windows):
            began = time.perf_counter()
            link = Link.make(before, "a3e0f7c4", number + 1, window.end_ms, *lines)
            linked_ms.append((time.perf_counter() - began) * 1_000)
    more_ms = [
        one - two for one, two in zip(took_ms["with"], took_ms["without"], strict=True)
    ]
    print_table(
        f"A publish of {arguments.rows} rows, in hundredths of a millisecond",
        [
            (name, [100 * ms for ms in values])
            for name, values in (
                *took_ms.items(),
                ("more", more_ms),
                ("link", linked_ms),
            )
        ],
    )
    sent = f',"chain":["{link.hash[:16]}","{link.says}"]'
    print(f"\nBytes for a client, a window: {len(sent)}")
    print_machine()


def _cut(number: int) -> Cut:
    end_ms = 1_773_964_800_000 + number * WINDOW_MS
    return Cut(end_ms, (end_ms << 21,), (None,), (0,))


def _batch(number: int, rows: int) -> Batch:
    window, count = BatchWindow(_cut(number).end_ms), PartitionCount()
    for isin in INSTRUMENTS[:rows]:
        row = make_row(isin, number, side="B", venue="KRX")
        window.offer(0, row)
        count.read += RowSums.decode(row.sums, row.body).trades
    count.superseded = count.read - len(window.rows)
    return Batch(_cut(number - 1), _cut(number), [window], [count], [])


if __name__ == "__main__":
    main()
