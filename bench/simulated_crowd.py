"""100,000 and 1,000,000 clients, simulated: no socket, only measured costs and time.

Nothing of this was run at this size. A step of 10 ms gives each worker 10 ms of a core,
for the window that goes out first, then for clients that come back, in turns. Clients
wait as both of ours do, and a late gateway refuses as ours does. What is left out: TLS,
proxies, the network, and workers that are busier than others.
"""

from argparse import ArgumentParser
from collections import deque
from dataclasses import dataclass
from random import Random

CLIENT_WINDOW_S = 22e-6
"""A list of 30 instruments, 9 of them changed: bench/fanout.py, case o."""

RETURN_S = 0.5e-3
"""A client comes back, with its snapshot: bench/fanout.py, case d."""

REFUSAL_S = 0.1e-3
"""A handshake that ends with 1013. Assumed: not measured alone."""

CLIENT_WINDOW_BYTES, SNAPSHOT_BYTES = 600, 2_100
"""By position: bench/row_bytes.py; a snapshot has each of 30 rows with its day."""

PUBLISH_S = 0.040
"""A window's end to its publish: bench/lag.py."""

BACKOFF_S, BACKOFF_MOST_S = 0.5, 30.0
"""clients/python/tickthrottle_client/tick_client.py, ``backoff_s``."""

LATE_S, LATE_FOR_S, WELL_S = 0.5, 2.0, 0.4
"""gateway/health/overload.py: so late for so long it refuses, until it is less late."""

WINDOW_S, STEP_S, LONGEST_S = 2.0, 0.01, 600.0

AMPLE_S = 1.0
"""A core's work that may wait at a worker as connections not let in: half of 4,096."""


@dataclass(frozen=True)
class Case:
    """A crowd on workers of one core each, some of which are lost, and come again.

    ``back_s``: when the lost ones are there again, None if never. ``moved``: how many
    clients lose their connection.
    """

    name: str
    clients: int
    workers: int
    lost: int
    back_s: float | None = None

    @property
    def moved(self) -> int:
        """Clients that were on the lost workers."""
        return self.clients * self.lost // self.workers


CASES = (
    Case("100,000, nobody lost", 100_000, 12, 0),
    Case("100,000, a machine of 4 cores lost", 100_000, 12, 4),
    Case("100,000, all gateways gone for 10 s", 100_000, 12, 12, 10.0),
    Case("1,000,000, nobody lost", 1_000_000, 104, 0),
    Case("1,000,000, a machine of 8 cores lost", 1_000_000, 104, 8),
    Case("1,000,000, a third of the machines lost", 1_000_000, 104, 32),
    Case("1,000,000, all gateways gone for 10 s", 1_000_000, 104, 104, 10.0),
)


class Crowd:
    """What became of those who came back, and how late the others' windows were."""

    def __init__(self, case: Case, chance: Random) -> None:
        self._case, self._chance = case, chance
        self._due: dict[int, list[tuple[int, int]]] = {}
        self._waiting: deque[tuple[int, int]] = deque()
        self._served = case.clients - case.moved
        self._debt_s = self._window_s = self._window_began_s = self._late_s = 0.0
        self._is_refusing = False
        self.returns_s: list[float] = []
        self.lags_s: list[float] = []
        self.refused = self.most_attempts = 0
        for client in range(case.moved):
            self._come_again(client, 0, 0.0)

    def _come_again(self, client: int, attempt: int, now_s: float) -> None:
        wait_s = self._chance.random() * min(BACKOFF_MOST_S, BACKOFF_S * 2**attempt)
        step = round((now_s + wait_s) / STEP_S) + 1
        self._due.setdefault(step, []).append((client, attempt))

    def run(self) -> "Crowd":
        """Go on until everybody is back, and ten windows have gone out."""
        for step in range(round(LONGEST_S / STEP_S)):
            if len(self.returns_s) == self._case.moved and len(self.lags_s) >= 10:
                break
            self._step(step, step * STEP_S)
        return self

    def _step(self, step: int, now_s: float) -> None:
        case = self._case
        is_back = case.back_s is not None and now_s >= case.back_s
        workers = case.workers if is_back else case.workers - case.lost
        arrivals = self._due.pop(step, [])
        self.most_attempts = max(self.most_attempts, len(arrivals))
        if not workers:
            for client, attempt in arrivals:
                self._come_again(client, attempt + 1, now_s)
            return
        room_s = workers * STEP_S
        if step % round(WINDOW_S / STEP_S) == 0:
            self._window_s += self._served * CLIENT_WINDOW_S
            self._window_began_s = now_s
        self._judge(now_s, workers)
        for client, attempt in arrivals:
            is_full = len(self._waiting) * RETURN_S > AMPLE_S * workers
            if self._is_refusing or is_full:
                self.refused += 1
                room_s -= REFUSAL_S
                self._come_again(client, attempt + 1, now_s)
            else:
                self._waiting.append((client, attempt))
        if self._window_s > 0:
            # Clients of a window go before those who come: slices, and Hub.served.
            used_s = min(max(0.0, room_s), self._window_s)
            self._window_s -= used_s
            room_s -= used_s
            if self._window_s <= 1e-9:
                self._window_s = 0.0
                late_s = now_s + STEP_S - self._window_began_s
                self.lags_s.append(PUBLISH_S + late_s)
        while self._waiting and room_s >= RETURN_S:
            self._waiting.popleft()
            room_s -= RETURN_S
            self._served += 1
            self.returns_s.append(now_s)

    def _judge(self, now_s: float, workers: int) -> None:
        owed_s = (self._window_s + len(self._waiting) * RETURN_S) / workers
        if owed_s < (WELL_S if self._is_refusing else LATE_S):
            self._late_s, self._is_refusing = now_s, False
        elif now_s - self._late_s >= LATE_FOR_S:
            self._is_refusing = True


def main() -> None:
    """Print a table of all cases, with the seed that gives the same again."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    heads = (
        *("simulated", "connections lost", "back: half, 99 %, all", "refused"),
        *("attempts/s, at most", "last client of a window: p50, worst"),
        "Gbit/s: windows, returns",
    )
    print(f"| {' | '.join(heads)} |\n| --- |{' ---: |' * (len(heads) - 1)}")
    for case in CASES:
        crowd = Crowd(case, Random(seed)).run()
        back, lags = crowd.returns_s, sorted(crowd.lags_s)
        shares = (0.5, 0.99, 1.0) if back else ()
        when = ", ".join(f"{back[int(s * (len(back) - 1))]:.1f}" for s in shares)
        lasts_s = back[-1] - back[0] + STEP_S if back else 1.0
        average = case.clients * CLIENT_WINDOW_BYTES * 8 / WINDOW_S / 1e9
        storm = len(back) * SNAPSHOT_BYTES * 8 / lasts_s / 1e9
        print(
            f"| {case.name} | {case.moved:,} | {when + ' s' if when else ''} "
            f"| {crowd.refused:,} | {crowd.most_attempts / STEP_S:,.0f} "
            f"| {lags[len(lags) // 2] * 1e3:.0f}, {lags[-1] * 1e3:.0f} ms "
            f"| {average:.2f}, {storm:.2f} |"
        )


if __name__ == "__main__":
    main()
