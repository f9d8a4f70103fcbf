"""What the operators' REST answers, one class per object. Pure.

They are the schemas of its OpenAPI document, too. Names that end with ``_ms`` are
milliseconds since 1970, or a duration where they begin with ``age``, ``quiet`` or
``lag``; a ``window`` is the end of a window, in the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.health.client_states import ClientRow, State
from gateway.health.findings import Diagnosis
from gateway.health.incidents.incident_book import Incident
from gateway.health.readiness import Reason
from gateway.stream.window_timings import WindowTiming
from ingest.market_hours.hours import MarketState
from ingest.tradelog.contract import LogKind

TimeMs = Annotated[int, Field(examples=[1773964804470])]
WindowMs = Annotated[int, Field(examples=[1773964804000])]
LagMs = Annotated[int, Field(examples=[181])]
Read = Annotated[int, Field(examples=[1498])]
Published = Annotated[int, Field(examples=[312])]
Superseded = Annotated[int, Field(examples=[1186])]
Offset = Annotated[int, Field(examples=[1235])]
Batches = Annotated[int, Field(examples=[1800])]
JobName = Annotated[str, Field(examples=["throttle"])]
Position = Annotated[str, Field(examples=["3720273845655961600"])]
Problem = Annotated[str | None, Field(examples=[None])]
Problems = Annotated[Sequence[str], Field(examples=[[]])]
Refusals = Annotated[Mapping[str, int], Field(examples=[{"bad_price": 79}])]
Skips = Annotated[Mapping[str, int], Field(examples=[{"order_book": 145}])]
Traded = Annotated[
    Mapping[str, str],
    Field(examples=[{"read": "48210", "published": "9170", "superseded": "39040"}]),
]
States = Annotated[
    Mapping[State, int],
    Field(examples=[{"new": 0, "live": 1, "behind": 0, "stuck": 0}]),
]
One = Annotated[int, Field(examples=[1])]
Totals = Annotated[
    dict[str, int],
    Field(examples=[{"updates_published": 1235, "clients_slow_closed": 0}]),
]


@dataclass(frozen=True, slots=True)
class FeedAnswer:
    """When a trade was appended last, and how long ago that is."""

    last_append_ms: TimeMs | None
    quiet_ms: Annotated[int | None, Field(examples=[30])]


@dataclass(frozen=True, slots=True)
class LogPartition:
    """The end of a partition of the log: the position of its last entry.

    ``added`` is how many entries it has ever had, null where that is not counted.
    """

    partition: int
    end: Position | None
    last_append_ms: TimeMs | None
    added: Annotated[int | None, Field(examples=[1498])]


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """The trade log; ``problem`` says why it cannot be asked."""

    kind: LogKind
    id: Annotated[str | None, Field(examples=["T8YIL3lqRSmXQJEAuApguQ"])]
    partitions: Sequence[LogPartition]
    problem: Problem


@dataclass(frozen=True, slots=True)
class BooksAnswer:
    """What became of the entries that were read; ``log`` is the log's own count.

    ``extra`` are trades beyond the first of an entry, ``skipped`` entries that are no
    trades, by the decoder's name for them: without a decoder there are none.
    ``unknown_instrument`` are trades of instruments that the instrument table did not
    have. ``not_last`` are trades that do not count for the last price, ``taken_back``
    those that later entries took back, ``unknown_target`` entries that name one that
    was not found.
    ``imbalance`` says by how much they do not add up, null if they do. ``volume`` and
    ``value`` are what the trades come to that were ``read``, ``published``,
    ``superseded``, ``stale`` and ``not_last``, as decimal text.
    """

    read: Read
    published: Published
    superseded: Superseded
    stale: int
    refused: Refusals
    blanks: int
    unkept: int
    extra: int
    skipped: Skips
    unknown_instrument: int
    not_last: int
    taken_back: int
    unknown_target: int
    volume: Traded
    value: Traded
    log: Read | None
    imbalance: Problem


@dataclass(frozen=True, slots=True)
class PartitionAnswer(BooksAnswer):
    """The same of one partition, and how far the job is in it."""

    partition: int
    position: Position
    end: Position | None
    lag: Annotated[int | None, Field(examples=[37])]


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The newest batch that was published; ``refused`` counts all reasons."""

    batch: Batches
    offset: Offset
    windows: One
    read: Read
    published: Published
    superseded: Superseded
    stale: int
    not_last: int
    refused: int


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """One job of the throttle.

    ``age_ms`` is the age of the end of its newest window, by Redis' clock. A job
    ``is_retired`` when others have taken its place.
    """

    job: JobName
    is_active: bool
    is_retired: Annotated[bool, Field(examples=[False])]
    owner: Annotated[str | None, Field(examples=["host-1-4711"])]
    term: Annotated[int | None, Field(examples=[3])]
    cut_ms: WindowMs
    age_ms: Annotated[int, Field(examples=[500])]
    batches: Batches
    windows: Batches
    balanced: bool
    problems: Problems
    total: BooksAnswer
    partitions: Sequence[PartitionAnswer]
    last_batch: BatchAnswer | None
    stages: Annotated[
        Mapping[str, int] | None, Field(examples=[{"read_ms": 31, "publish_ms": 9}])
    ]


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The published stream as this gateway has it.

    ``instruments`` have traded; ``unlisted`` of them are not in the instrument table.
    ``groups`` have figures. ``served_market`` is the one market that is served, null
    for all.
    """

    epoch: Annotated[str | None, Field(examples=["k3x9"])]
    offset: Offset
    window: WindowMs | None
    window_age_ms: Annotated[int | None, Field(examples=[500])]
    window_ms: Annotated[int, Field(examples=[2000])]
    instruments: Annotated[int, Field(examples=[2879])]
    unlisted: Annotated[int, Field(examples=[0])]
    groups: Annotated[int, Field(examples=[57])]
    served_market: Annotated[str | None, Field(examples=[None])]
    is_live: bool
    reason: Problem


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """One of the gateway's processes."""

    worker: Annotated[int, Field(examples=[0])]
    pid: Annotated[int, Field(examples=[4711])]
    clients: One
    rss_bytes: Annotated[int, Field(examples=[104857600])]
    loop_lag_ms: One


@dataclass(frozen=True, slots=True)
class FanoutAnswer:
    """The gateway's clients and how fast they are served.

    Of several workers memory is added up; lags are the worst one's.
    """

    clients: One
    states: States
    publish_lag_ms: LagMs | None
    fanout_lag_ms: LagMs | None
    rss_bytes: Annotated[int, Field(examples=[104857600])]
    loop_lag_ms: One
    workers: Sequence[WorkerAnswer]


@dataclass(frozen=True, slots=True)
class ReadyAnswer:
    """Whether the gateway is ready, and every reason why not."""

    ready: Annotated[bool, Field(examples=[False])]
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class ArchiveAnswer:
    """One archive, as it last said.

    Counts are since it began; ``problem`` says why it cannot store now,
    ``tidy_problem`` why it cannot merge or remove. ``damaged`` are paths of segments
    that cannot be read and were set aside, the newest of all ``damaged_segments``.
    """

    name: Annotated[str, Field(examples=["parquet"])]
    destination: Annotated[str, Field(examples=["parquet"])]
    owner: Annotated[str, Field(examples=["host:4711:a1b2c3"])]
    is_stopped: Annotated[bool, Field(examples=[False])]
    is_behind: Annotated[bool, Field(examples=[False])]
    epoch: Annotated[str | None, Field(examples=["k3x9"])]
    offset: Offset
    window: WindowMs
    windows: Annotated[int, Field(examples=[1235])]
    rows: Annotated[int, Field(examples=[370500])]
    unknown_instrument: Annotated[int, Field(examples=[0])]
    unknown: Annotated[Sequence[str], Field(examples=[[]])]
    gaps: Annotated[int, Field(examples=[0])]
    missing_windows: Annotated[int, Field(examples=[0])]
    bars: Annotated[int, Field(examples=[53100])]
    bar_gaps: Annotated[int, Field(examples=[0])]
    missing_bar_batches: Annotated[int, Field(examples=[0])]
    statuses: Annotated[int, Field(examples=[420])]
    status_gaps: Annotated[int, Field(examples=[0])]
    missing_statuses: Annotated[int, Field(examples=[0])]
    last_gap: Problem
    stored_bytes: Annotated[int, Field(examples=[104857600])]
    damaged_segments: Annotated[int, Field(examples=[0])]
    damaged: Annotated[Sequence[str], Field(examples=[[]])]
    tidy_failures: Annotated[int, Field(examples=[0])]
    tidy_problem: Problem
    updated_ms: TimeMs
    problem: Problem


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """One query of the analytics job.

    It has read the log up to ``cut_ms``, ``age_ms`` ago; windows that ended by
    ``window`` are closed. ``trades`` are in its windows, ``too_late`` in none;
    ``missed`` ones had left the log. Of Spark's state ``rows``, ``bytes``,
    ``update_ms``, ``commit_ms`` and ``dropped`` are those of the newest batch, null
    before the first.
    """

    product: Annotated[str, Field(examples=["bars"])]
    owner: Annotated[str | None, Field(examples=["host:4711:a1b2c3"])]
    is_stopped: Annotated[bool, Field(examples=[False])]
    is_dead: Annotated[bool, Field(examples=[False])]
    is_behind: Annotated[bool, Field(examples=[False])]
    cut_ms: WindowMs
    age_ms: Annotated[int, Field(examples=[1900])]
    window: WindowMs
    every_ms: Annotated[int | None, Field(examples=[2000])]
    batches: Batches
    trades: Annotated[int, Field(examples=[1620000])]
    too_late: Annotated[int, Field(examples=[0])]
    refused: Annotated[int, Field(examples=[0])]
    missed: Annotated[int, Field(examples=[0])]
    rows: Annotated[int | None, Field(examples=[86400])]
    bytes: Annotated[int | None, Field(examples=[104857600])]
    update_ms: Annotated[int | None, Field(examples=[120])]
    commit_ms: Annotated[int | None, Field(examples=[85])]
    dropped: Annotated[int | None, Field(examples=[0])]
    problems: Problems


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The whole pipeline at one moment.

    ``now_ms`` is Redis' clock, this machine's while Redis cannot be asked; then
    ``problem`` says why, and nothing is known of jobs. ``archive_damage`` names files
    of the archive that this gateway could not read, each with the reason. ``docs_url``
    is where the documents are served, null if nobody has said. ``markets`` are those
    whose hours are known.
    """

    now_ms: TimeMs
    version: Annotated[str, Field(examples=["0.1.0"])]
    started_ms: Annotated[int, Field(examples=[1773961200000])]
    docs_url: Annotated[str | None, Field(examples=["https://docs.example.com"])]
    problem: Problem
    feed: FeedAnswer
    markets: Annotated[Sequence[MarketState], Field(examples=[[]])]
    log: LogAnswer
    jobs: Sequence[JobAnswer]
    stream: StreamAnswer
    fanout: FanoutAnswer
    archives: Sequence[ArchiveAnswer]
    archive_damage: Annotated[Sequence[str], Field(examples=[[]])]
    analytics: Sequence[QueryAnswer]
    ready: ReadyAnswer
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class WindowTimingsAnswer:
    """The newest updates that went out, oldest first."""

    count: One
    data: Sequence[WindowTiming]


@dataclass(frozen=True, slots=True)
class ClientsAnswer:
    """The slowest clients first; ``states`` counts all of them."""

    count: One
    states: States
    data: Sequence[ClientRow]


@dataclass(frozen=True, slots=True)
class OtherGatewayAnswer:
    """Another gateway, by its address; ``problem`` says why it could not be asked.

    ``data`` has its slowest clients first, 20 at most, ``states`` counts all of them;
    with a ``problem`` nothing is known of them.
    """

    gateway: Annotated[str, Field(examples=["10.0.0.2:8001"])]
    problem: Problem
    count: Annotated[int | None, Field(examples=[1])]
    states: States
    data: Sequence[ClientRow]


@dataclass(frozen=True, slots=True)
class OtherGatewaysAnswer:
    """The other gateways that ``TICKTHROTTLE_OTHER_GATEWAYS`` names."""

    count: One
    data: Sequence[OtherGatewayAnswer]


@dataclass(frozen=True, slots=True)
class LetterAnswer:
    """A refused trade; ``trade`` is the beginning of its ``bytes`` bytes, as text.

    ``sha256`` is the digest of all of them, null if all are there.
    """

    job: JobName
    partition: int
    position: Position
    reason: Annotated[str, Field(examples=["bad_price"])]
    error: Annotated[str, Field(examples=["price '-1': must be a plain decimal"])]
    trade: Annotated[str, Field(examples=['{"isin":"KR7005930003","price":"-1"}'])]
    bytes: Annotated[int, Field(examples=[36])]
    sha256: Annotated[str | None, Field(examples=[None])]
    appended_ms: TimeMs


@dataclass(frozen=True, slots=True)
class LettersAnswer:
    """Refused trades, newest first; ``reasons`` counts all there ever were.

    Of ``unkept`` of them no letter was kept: too many came at once.

    ``scanned`` letters were looked at for them, 10,000 at most: with ``is_complete``
    false there may be newer ones that fit among those that were not.
    """

    count: One
    reasons: Refusals
    unkept: int
    scanned: Annotated[int, Field(examples=[79])]
    is_complete: bool
    data: Sequence[LetterAnswer]


@dataclass(frozen=True, slots=True)
class IncidentsAnswer:
    """What was wrong in the last days: what lasts first, then the newest first."""

    count: One
    data: Sequence[Incident]


@dataclass(frozen=True, slots=True)
class SettingAnswer:
    """A setting in force, by the name of its environment variable."""

    name: Annotated[str, Field(examples=["TICKTHROTTLE_MAX_KEYS"])]
    value: Annotated[str, Field(examples=["1024"])]
    default: Annotated[str, Field(examples=["1024"])]
    is_default: bool


@dataclass(frozen=True, slots=True)
class UnlistedAnswer:
    """The instruments that have traded and are not in the instrument table, in order.

    ``listed`` is how many the table has; ``data`` holds the first of them.
    """

    listed: Annotated[int, Field(examples=[2879])]
    count: One
    data: Annotated[Sequence[str], Field(examples=[["KR7005930003"]])]


@dataclass(frozen=True, slots=True)
class SettingsAnswer:
    """Every setting of this gateway."""

    count: One
    data: Sequence[SettingAnswer]
