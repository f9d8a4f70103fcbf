"""PURE: what the operators' REST answers, one class per object.

They are the schemas of its OpenAPI document, too. Names that end with ``_ms`` are
milliseconds since 1970, or a duration where they begin with ``age``, ``quiet`` or
``lag``; a ``window`` is the end of a window, in the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.client_list import ClientRow, State
from gateway.health import Reason
from gateway.pulse import Beat
from ingest.log import LogKind


@dataclass(frozen=True, slots=True)
class FeedAnswer:
    """When a trade was appended last, and how long ago that is."""

    last_append_ms: int | None
    quiet_ms: int | None


@dataclass(frozen=True, slots=True)
class LogPartition:
    """The end of a partition of the log: the position of its last entry."""

    partition: int
    end: str | None
    last_append_ms: int | None


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """The trade log; ``problem`` says why it cannot be asked."""

    kind: LogKind
    id: str | None
    partitions: Sequence[LogPartition]
    problem: str | None


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the trades that were read; ``log`` is the log's own count."""

    read: int
    published: int
    superseded: int
    stale: int
    refused: Mapping[str, int]
    blanks: int
    log: int | None


@dataclass(frozen=True, slots=True)
class PartitionAccount(Account):
    """The same of one partition, and how far the job is in it."""

    partition: int
    position: str
    end: str | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The newest batch that was published; ``refused`` counts all reasons."""

    batch: int
    offset: int
    windows: int
    read: int
    published: int
    superseded: int
    stale: int
    refused: int


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """One job of the throttle.

    ``age_ms`` is the age of the end of its newest window, by Redis' clock.
    """

    job: str
    is_active: bool
    owner: str | None
    term: int | None
    cut_ms: int
    age_ms: int
    batches: int
    windows: int
    balanced: bool
    problems: Sequence[str]
    total: Account
    partitions: Sequence[PartitionAccount]
    last_batch: BatchAnswer | None
    stages: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The published stream as this gateway has it."""

    epoch: str | None
    offset: int
    window: int | None
    window_age_ms: int | None
    window_ms: int
    issues: int
    is_live: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class FanoutAnswer:
    """The gateway's clients and how fast they are served."""

    clients: int
    states: Mapping[State, int]
    publish_lag_ms: int | None
    fanout_lag_ms: int | None
    rss_bytes: int
    loop_lag_ms: int


@dataclass(frozen=True, slots=True)
class ReadyAnswer:
    """Whether the gateway is ready, and every reason why not."""

    ready: bool
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The whole pipeline at one moment.

    ``now_ms`` is Redis' clock, this machine's while Redis cannot be asked; then
    ``problem`` says why, and nothing is known of jobs.
    """

    now_ms: int
    version: str
    started_ms: int
    problem: str | None
    feed: FeedAnswer
    log: LogAnswer
    jobs: Sequence[JobAnswer]
    stream: StreamAnswer
    fanout: FanoutAnswer
    ready: ReadyAnswer


@dataclass(frozen=True, slots=True)
class PulseAnswer:
    """The newest updates that went out, oldest first."""

    count: int
    data: Sequence[Beat]


@dataclass(frozen=True, slots=True)
class ClientsAnswer:
    """The slowest clients first; ``states`` counts all of them."""

    count: int
    states: Mapping[State, int]
    data: Sequence[ClientRow]


@dataclass(frozen=True, slots=True)
class LetterAnswer:
    """A refused trade; ``trade`` is the beginning of its ``bytes`` bytes, as text."""

    job: str
    partition: int
    position: str
    reason: str
    error: str
    trade: str
    bytes: int
    appended_ms: int


@dataclass(frozen=True, slots=True)
class LettersAnswer:
    """Refused trades, newest first; ``reasons`` counts all there ever were.

    ``scanned`` letters were looked at for them, 10,000 at most: with ``is_complete``
    false there may be newer ones that fit among those that were not.
    """

    count: int
    reasons: Mapping[str, int]
    scanned: int
    is_complete: bool
    data: Sequence[LetterAnswer]


@dataclass(frozen=True, slots=True)
class SettingAnswer:
    """A setting in force, by the name of its environment variable."""

    name: str
    value: str
    default: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class SettingsAnswer:
    """Every setting of this gateway."""

    count: int
    data: Sequence[SettingAnswer]
