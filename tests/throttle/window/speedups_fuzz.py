"""Random and damaged entries, and whether both ways make the same rows of them."""

import operator
import struct
from ctypes import create_string_buffer
from itertools import accumulate, islice
from random import Random

from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import Chunk
from ingest.tradelog.speedups import find_speedups
from tests.throttle.payloads import ISINS, MAX_AHEAD_MS, NOW_MS, make_chunk
from throttle.window.checked_rows import trade_rows

_MARKET = Simulator(rate=1_000, instruments=50).events(NOW_MS * 1000)
SIMULATED = [event.payload for event in islice(_MARKET, 200)]
HARD = [
    b'{"isin":"%b","time":%d,"seq":%b,"price":"%b","size":"%b"%b}'
    % (ISINS[0].encode(), NOW_MS * 1000, seq, price, size, more)
    for seq in (b"0", b"999999999999999999", b"9223372036854775807")
    for price, size in (
        (b"999999999.99999999", b"999999999.99999999"),
        (b"99999.99999999", b"99999.99999999"),
        (b"0.00000001", b"0.00000001"),
        (b"100000.00000000", b"100000"),
        (b"1.50", b"0.10000000"),
    )
    for more in (
        *(b"", b',"side":"B"', b',"a":-0.5', b',"updates":"volume"', b',"cancels":7'),
        *(
            b',"corrects":7',
            b',"trades":1',
            b',"s":"\\u0041"',
            b',"size":"1"',
            b',"":1',
        ),
        b',"text":"' + b"x" * 16_200 + b'"',
    )
]
PIECES = (
    *(b'"', b",", b":", b"{", b"}", b"\\", b"-", b".", b"0", b"00", b"9" * 19, b"\x00"),
    *(b"\xff", b"\n", b" ", b'","', b'"price":"', b'"trades":1,', b"1e5", b"\xc3\xa9"),
)


def random_chunk(random: Random, size: int) -> Chunk:
    """Make entries of which most are damaged, at a place in longer buffers."""
    entries = [
        (NOW_MS + random.randint(-6_000, 6_000), damaged(random)) for _ in range(size)
    ]
    before = random.randint(0, min(9, size))
    chunk = make_chunk(entries)
    columns = (c.slice(before) for c in (chunk.positions, chunk.append_ms))
    return Chunk(*columns, chunk.payloads.slice(before), chunk.upto)


def damaged(random: Random) -> bytes:
    """Return an entry with none to three places of it changed, cut or added."""
    payload = bytearray(random.choice(random.choice((SIMULATED, HARD))))
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
        at = random.randint(0, len(payload))
        new = random.choice((random.randbytes(1), random.choice(PIECES), b""))
        payload[at : at + random.choice((0, 1, 1, 2, 9))] = new
    return bytes(payload[: random.choice((*[None] * 9, random.randint(0, 90)))])


def check_both_ways(chunk: Chunk) -> None:
    """Raise AssertionError unless both ways make the same rows of a chunk."""
    rows = [
        trade_rows(
            *(chunk, 3, NOW_MS - 3_000, NOW_MS + 3_000, MAX_AHEAD_MS), speedups=way
        )
        for way in (True, False)
    ]
    assert rows[0].schema == rows[1].schema
    compiled, python = (sorted(table.to_pylist(), key=_place) for table in rows)
    assert compiled == python


_place = operator.itemgetter("position", "key")


def check_any_buffers(random: Random) -> None:
    """Call what is compiled with buffers that say nothing true of each other."""
    entries = [damaged(random) for _ in range(15)]
    places = [0, *accumulate(map(len, entries))]
    for _ in range(random.choice((0, 0, 1, 4))):
        places[random.randrange(16)] = random.choice((-1, 2**31 - 1, *places))
    ends, stamps = struct.pack("<16i", *places), struct.pack("<15q", *STAMPS)
    data = b"".join(entries)
    data = data[: random.choice((len(data), len(data), random.randint(0, len(data))))]
    first, first_stamp = random.choice(((0, 0), (0, 0), (1, 0), (0, 3), (-1, 2**62)))
    count = random.choice((0, 1, 12, 14, 15, 15, 16, -1, 2**62))
    bounds = random.choice((5_000, 2**63 - 1, 0, -1)), random.choice((2**63 - 1, -1))
    names = random.choice(("", "a,b", ",", ",".join(["size"] * 33), "price," * 31))
    most = random.choice((0, 80, 2**62))
    # Of exactly these sizes, so that a sanitizer sees a byte too many.
    buffers = (create_string_buffer(b, len(b)) for b in (ends, data, stamps))
    fits = first >= 0 and 0 <= count <= min(15 - first, 15 - first_stamp)
    fits = fits and bounds[0] >= 0 and names.count(",") < 32
    try:
        kept, block = find_speedups().check(
            *(*buffers, first, first_stamp, count, *bounds, most, names)
        )
    except ValueError:
        assert not fits
    else:
        assert fits
        assert 0 <= kept <= count
        assert len(block) == count * 99 + 4


STAMPS = (NOW_MS, 0, NOW_MS, -1, *[NOW_MS] * 6, 2**63 - 1, -(2**63), 10**13, NOW_MS, 1)
