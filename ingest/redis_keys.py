"""What is in Redis: every key and channel, and what it holds. Pure.

No other file builds one. Only the trade log, where it is kept in Redis, has its keys in
the client library, whose producers write to it without the product
(``tickthrottle_client/log_v1.py``): the hash ``<namespace>:log`` and a stream
``<namespace>:log:<partition>``.
"""

from dataclasses import dataclass

FORM = 4
"""The form of all that is published: keys, scripts, messages (docs/running.md).

It grows when this version could not read what the next one writes. ``Keys.meta`` has
it as ``form``; without that it is 1. Forms before 3 have other names of fields, and no
version that writes 3 reads them; 4 has versions with a revision, and reads no other.
"""


def form_refusal(epoch: bytes | None, form: bytes | None) -> str | None:
    """Return why a stream cannot be used, None if it has this form, or is not there.

    ``epoch`` and ``form`` are what ``Keys.meta`` has under these names.
    """
    stored = form or b"1"
    if epoch is None or stored == b"%d" % FORM:
        return None
    return (
        f"the stream in Redis has the form {stored.decode(errors='replace')!r}, this "
        f"version has {FORM}: see docs/running.md#upgrading"
    )


@dataclass(frozen=True, slots=True)
class Keys:
    """Every key and channel the throttle writes, under one prefix."""

    namespace: str

    @property
    def meta(self) -> str:
        """Hash: ``epoch``, ``offset``, ``window``, ``window_ms`` of the stream, its
        ``form`` if that is not 1, and the ``server`` that holds it; ``cut:<job>``,
        ``log:<job>`` and ``term:<job>``, how far each job has published, of which log,
        and who may go on; ``released:<job>``, who gave its lease back last;
        ``candidate:<job>``, who is about to (``candidate.py``); ``chain``, the place
        of the newest window with a link (``chain_v1.py``).
        """
        return f"{self.namespace}:meta"

    @property
    def last(self) -> str:
        """Hash: ISIN -> last value (see ``LastValue``)."""
        return f"{self.namespace}:last"

    @property
    def days_so_far(self) -> str:
        """Hash: ISIN -> the day so far, as of a window (see ``DayValue``)."""
        return f"{self.namespace}:days_so_far"

    @property
    def groups(self) -> str:
        """Hash: a group's key without ``group:`` -> ``<offset> <body>``, the newest
        update of each (see ``StoredGroup``). Those that no instrument is in any more
        are removed when the instrument table changes.
        """
        return f"{self.namespace}:groups"

    @property
    def windows(self) -> str:
        """Stream, the window log: id ``<offset>-0``, field ``snapshot``, and ``sha1``,
        that of it. Bounded.
        """
        return f"{self.namespace}:windows"

    @property
    def updates(self) -> str:
        """Channel: one message for every publish."""
        return f"{self.namespace}:updates"

    def market_updates(self, market: str) -> str:
        """Channel: the same messages with the rows and the group of one market.

        Nothing is published there while nobody listens.
        """
        return f"{self.updates}:{market}"

    def lease(self, job: str) -> str:
        """String with a time to live: ``<term> <owner>`` of the job that publishes."""
        return f"{self.namespace}:lease:{job}"

    def ledger(self, job: str) -> str:
        """Hash: what became of every trade the job has read (``ledger.py``)."""
        return f"{self.namespace}:ledger:{job}"

    def dead(self, job: str) -> str:
        """Prefix of the dead-letter streams, one per partition the job reads."""
        return f"{self.namespace}:dead:{job}"

    def batches(self, job: str) -> str:
        """Stream: one entry per batch with its cuts and its books. Bounded."""
        return f"{self.namespace}:batches:{job}"

    def stages(self, job: str) -> str:
        """Hash: where the time of the newest batch went: ``batch``, ``window`` and
        ``<stage>_ms`` for every stage.
        """
        return f"{self.namespace}:stages:{job}"


@dataclass(frozen=True, slots=True)
class OtherKeys:
    """Every key under the prefix that no job writes; who does is said of each."""

    namespace: str

    @property
    def instruments(self) -> str:
        """Stream: the changes of the instrument table, oldest first; whoever lists
        instruments writes it (``redis_instrument_store.py``).
        """
        return f"{self.namespace}:instruments"

    @property
    def instruments_meta(self) -> str:
        """Hash: the instrument table's ``id`` and what its writers have agreed on."""
        return f"{self.namespace}:instruments:meta"

    @property
    def archives(self) -> str:
        """Hash: an archive's name -> how far it is (``ArchiveState``), by itself."""
        return f"{self.namespace}:archives"

    def intake(self, digest: str) -> str:
        """String with a time to live: what the intake has answered to a request, by the
        digest of its ``Idempotency-Key`` and its holder.
        """
        return f"{self.namespace}:intake:{digest}"

    @property
    def clock(self) -> str:
        """String: the time of a log whose clock a test turns by hand, ms."""
        return f"{self.namespace}:clock"


@dataclass(frozen=True, slots=True)
class StatusKeys:
    """Where the trading statuses of instruments are (``status_log.py``)."""

    namespace: str

    @property
    def stream(self) -> str:
        """Stream: statuses in their order; id ``<number>-0``, fields ``taken`` (us),
        ``epoch``, ``status`` and ``last``, the newest trade before. Bounded.
        """
        return f"{self.namespace}:statuses"

    @property
    def current(self) -> str:
        """Hash: instrument, venue and kind -> the times and digests of the newest
        statuses, and the newest one itself. Bounded.
        """
        return f"{self.namespace}:statuses:current"

    @property
    def meta(self) -> str:
        """Hash: the ``epoch`` of the numbers and the newest ``number``."""
        return f"{self.namespace}:statuses:meta"


PRODUCTS = ("bars", "movers", "bursts", "moves")
"""What the analytics job makes, each by a query of its own."""


ANALYTICS_JOB = "analytics"
"""The name under which the analytics job holds its lease."""


@dataclass(frozen=True, slots=True)
class AnalyticsKeys:
    """Every key and channel the analytics job writes, under the throttle's prefix."""

    namespace: str

    @property
    def lease_keys(self) -> Keys:
        """Where its lease, its terms and the ``epoch`` of its messages are: a ``meta``
        of its own, so that the throttle's stream has nothing to do with it.
        """
        return Keys(f"{self.namespace}:analytics")

    def progress(self, product: str) -> str:
        """Hash: ``epoch``, ``sequence`` of the newest message, ``clock`` of the log,
        the ``batch`` of Spark's and the ``checkpoint`` it belongs to, the ``cut`` up to
        which the log is read; of bars ``bars_ms``, ``zone`` and ``begins``.
        """
        return f"{self.namespace}:analytics:{product}"

    def updates(self, product: str) -> str:
        """Channel: one message for every batch (``bars.py``, ``movers.py``)."""
        return f"{self.namespace}:analytics:{product}:updates"

    def ledger(self, product: str) -> str:
        """Hash: what became of every trade the query has read (``tally.py``)."""
        return f"{self.namespace}:analytics:{product}:ledger"

    def batches(self, product: str) -> str:
        """Stream: one entry per batch with its cuts and its books. Bounded."""
        return f"{self.namespace}:analytics:{product}:batches"

    def state(self, product: str) -> str:
        """Hash: what Spark's state of the query is like: ``rows``, ``bytes``,
        ``update_ms``, ``commit_ms``, ``dropped`` rows, after which ``batch``; how often
        there is one (``every_ms``); ``stopped``: 1 once the query was told to end.
        """
        return f"{self.namespace}:analytics:{product}:state"

    def bars(self, isin: str) -> str:
        """Sorted set: an instrument's bars (``Bar.encode``), scored by their start in
        ms. Bounded in number, and gone some days after the instrument's last trade.
        """
        return f"{self.namespace}:bars:{isin}"

    @property
    def bar_log(self) -> str:
        """Stream, the bar log: bars as they were closed or amended (``bar_log.py``);
        id ``<sequence>-<n>``, fields ``epoch``, ``number``, ``published`` (us) and
        ``bars``. Those of the newest batches. The newest number is in the ``meta`` of
        ``lease_keys``, beside the epoch it belongs to: ``logged:bars``.
        """
        return f"{self.namespace}:analytics:bars:log"

    @property
    def last_bars(self) -> str:
        """Hash: ISIN -> its newest bar (``Bar.encode``)."""
        return f"{self.namespace}:bars"

    @property
    def days(self) -> str:
        """Hash: ISIN -> its newest day (``DayBar.encode``)."""
        return f"{self.namespace}:days"

    @property
    def movers(self) -> str:
        """String: the newest list (``MoversList.encode``)."""
        return f"{self.namespace}:movers"

    @property
    def bursts(self) -> str:
        """Stream: bursts that have ended, field ``burst``. Bounded."""
        return f"{self.namespace}:bursts"

    @property
    def moves(self) -> str:
        """Stream: moves as they happened, field ``move``. Bounded."""
        return f"{self.namespace}:moves"
