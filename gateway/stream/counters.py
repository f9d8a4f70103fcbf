"""What the gateway counts: whatever is dropped, merged or healed leaves a trace."""

from dataclasses import astuple, dataclass, fields

from gateway.admission.shared_figures import Cells


@dataclass(slots=True)
class Counters:
    """Totals since the process started: each has a row in ``docs/observing.md``."""

    updates_published: int = 0
    updates_repeated: int = 0
    updates_undecodable: int = 0
    gaps_healed: int = 0
    reloads: int = 0
    states_older: int = 0
    connects_failed: int = 0
    relays_refused: int = 0
    relay_windows_skipped: int = 0
    rows_stale: int = 0
    rows_held: int = 0
    groups_late: int = 0
    bar_updates_published: int = 0
    bar_messages_undecodable: int = 0
    bar_reloads: int = 0
    bar_snapshots_restarted: int = 0
    trade_entries_read: int = 0
    trades_missed: int = 0
    trade_looks_skipped: int = 0
    statuses_published: int = 0
    statuses_missed: int = 0
    statuses_undecodable: int = 0
    status_reloads: int = 0
    instrument_changes_refused: int = 0
    frames_sent: int = 0
    sent_bytes: int = 0
    windows_merged: int = 0
    messages_refused: int = 0
    messages_rate_limited: int = 0
    requests_rate_limited: int = 0
    work_refused: int = 0
    requests_crowded_out: int = 0
    requests_abandoned: int = 0
    answers_refused: int = 0
    answers_cut: int = 0
    firehose_entries_read: int = 0
    firehose_trades_shown: int = 0
    firehose_trades_left_out: int = 0
    firehose_viewers_refused: int = 0
    clients_slow_closed: int = 0
    clients_origin_refused: int = 0
    clients_full_refused: int = 0
    connections_cut_full: int = 0
    connections_cut_late: int = 0
    connections_read_late: int = 0
    requests_too_large: int = 0
    requests_invalid: int = 0
    clients_shed: int = 0
    clients_idle_closed: int = 0
    clients_abusive_closed: int = 0
    clients_operator_closed: int = 0
    clients_retired: int = 0
    clients_token_refused: int = 0
    clients_token_expired: int = 0


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
