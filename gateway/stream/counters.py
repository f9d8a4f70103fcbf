"""What the gateway counts: whatever is dropped, merged or healed leaves a trace."""

from dataclasses import astuple, dataclass, fields

from gateway.admission.shared_figures import Cells


@dataclass(slots=True)
class Counters:
    """Totals since the process started."""

    updates_published: int = 0
    """Updates taken from the throttle and handed to the clients' mailboxes."""

    updates_repeated: int = 0
    """Messages ignored because their offset was known already."""

    updates_undecodable: int = 0
    """Messages and stored values that could not be read; a reload followed."""

    gaps_healed: int = 0
    """Holes in the offsets that were filled from the window log."""

    reloads: int = 0
    """Times the whole stored state was read: at every connect, and for big holes."""

    states_older: int = 0
    """Times the stored state was older than what clients have, and was left alone."""

    connects_failed: int = 0
    """Times the connection to Redis failed or broke."""

    rows_stale: int = 0
    """Rows dropped by the order guard: older than what clients already have."""

    rows_held: int = 0
    """Rows held back until the next window: this one has had their instrument."""

    groups_late: int = 0
    """Figures of groups left out: another job had newer ones of the group already."""

    bar_updates_published: int = 0
    """Messages of bars taken from the analytics job and offered to clients."""

    bar_messages_undecodable: int = 0
    """Messages of bars that could not be read; bars were read anew."""

    bar_reloads: int = 0
    """Times bars were read anew: at the first client that watches some, for holes."""

    bar_snapshots_restarted: int = 0
    """Times a client had too many bars waiting and got a snapshot in their place."""

    trade_entries_read: int = 0
    """Entries of the trade log read for clients that follow every trade."""

    trades_missed: int = 0
    """Trades left out for clients that follow them and read too slowly."""

    trade_looks_skipped: int = 0
    """Times trades of the log went by unread: it was away, or too much came."""

    instrument_changes_refused: int = 0
    """Changes of the instrument table that break a rule and were left out."""

    frames_sent: int = 0
    """Frames written to clients, of every type."""

    sent_bytes: int = 0
    """Bytes of those frames, as they were written: compressed, with their headers."""

    windows_merged: int = 0
    """Windows that clients got as part of a later update because they were slow."""

    messages_refused: int = 0
    """Client messages answered with an error, without the rate-limited ones."""

    messages_rate_limited: int = 0
    """Client messages refused for coming too fast."""

    requests_rate_limited: int = 0
    """Requests answered with 429: too many from one address."""

    work_refused: int = 0
    """Requests, subscriptions and streams put off: their address had spent its rows."""

    requests_crowded_out: int = 0
    """Requests answered with 503: too many wait for the same kind of work."""

    requests_abandoned: int = 0
    """Requests whose work was ended because their client had gone."""

    answers_refused: int = 0
    """Requests answered with 503: too many bytes are on their way to slow readers."""

    answers_cut: int = 0
    """Connections cut because their peer took nothing of an answer."""

    firehose_entries_read: int = 0
    """Entries of the log read for the firehose, once for all who look."""

    firehose_trades_shown: int = 0
    """Trades sent to viewers of the firehose, once for each."""

    firehose_trades_left_out: int = 0
    """Trades that viewers were told of by their number alone, once for each."""

    firehose_viewers_refused: int = 0
    """Requests for the firehose answered with 503: as many looked as may."""

    clients_slow_closed: int = 0
    """Connections closed with 4408."""

    clients_origin_refused: int = 0
    """Streams that a page of another host asked for and did not get."""

    clients_full_refused: int = 0
    """Connections closed with 1013: too many, in all or from one address."""

    connections_cut_full: int = 0
    """Connections cut to make room: too many that were no streams, or too many."""

    connections_cut_late: int = 0
    """Connections cut because no whole request came in time."""

    connections_read_late: int = 0
    """Connections, or requests of a proxy's clients, that waited for a second: their
    address had been refused too often."""

    requests_too_large: int = 0
    """Requests refused with 431 or 413: too long, or with too many headers."""

    requests_invalid: int = 0
    """Requests refused with 400: no HTTP, or no WebSocket upgrade."""

    clients_shed: int = 0
    """Connections closed with 1013: the process has no memory or time for more."""

    clients_idle_closed: int = 0
    """Connections closed with 1008: they never asked for anything."""

    clients_abusive_closed: int = 0
    """Connections closed with 4429 or 4500: too many, or too many bad messages."""

    clients_operator_closed: int = 0
    """Connections closed by an operator, with 4429."""

    clients_retired: int = 0
    """Connections closed with 1012 because of their age."""

    clients_token_refused: int = 0
    """Tokens refused or missing: connections closed with 4501, requests with 401."""

    clients_token_expired: int = 0
    """Connections closed with 4401: the token had expired and no newer one came."""


class CounterTotals:
    """The counters of a gateway: of this worker, the others, and those that have died.

    ``cells`` have a row for each worker and one for the dead, in the order of fields.
    """

    NAMES = tuple(field.name for field in fields(Counters))

    def __init__(self, counters: Counters, cells: Cells, worker: int) -> None:
        self._counters = counters
        self._cells = cells
        self._first = worker * len(self.NAMES)

    def store(self) -> None:
        """Let the others, and who comes after a death, see how far this worker is."""
        for number, count in enumerate(astuple(self._counters), self._first):
            self._cells[number] = count

    def read(self) -> dict[str, int]:
        """Return the sums, by name; those of other workers are half a second old."""
        self.store()
        cells, width = self._cells, len(self.NAMES)
        return {
            name: sum(cells[i] for i in range(number, len(cells), width))
            for number, name in enumerate(self.NAMES)
        }
