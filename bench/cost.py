"""What a job costs: its start, its first live window, its memory, its processor.

Each round starts a server, a feed and a job that has nothing to catch up with, and
watches the job while it is live. Nothing else runs; there are no clients.

`--everything` measures all processes of `tickthrottle run` in its place.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

import psutil
from machine import (
    Program,
    feeding,
    memory_by_name,
    memory_of,
    options,
    percentile,
    print_machine,
    print_rows,
    read_batches,
    running_everything,
    running_job,
    running_server,
)

from cli.local.process_tree import Named, job_family

PARTS = ("job", "driver", "JVM", "worker")

SETTLE_S = 20.0
"""After it is ready; then its processor time is counted."""

LOOKS_S = (60, 120, 240, 420, 600)
"""When all of `tickthrottle run` is looked at, after its start."""


def main() -> None:
    arguments = options(
        __doc__,
        rounds=(5, "starts"),
        rate=(900, "trades per second"),
        seconds=(60.0, "live, each round"),
        everything=(False, "ten minutes of tickthrottle run"),
    )
    if arguments.everything:
        report_everything()
        return
    starts = [
        measure(arguments.rate, arguments.seconds) for _ in range(arguments.rounds)
    ]
    rows = []
    for name in starts[0]:
        values = [figures[name] for figures in starts]
        digits = 2 if max(values) < 10 else 0
        cells = {"p50": percentile(values, 0.5), "most": max(values)}
        rows.append({"": name} | {h: f"{v:,.{digits}f}" for h, v in cells.items()})
    print_rows(f"{arguments.rounds} starts, {arguments.rate} trades/s", rows)
    print_machine()


def measure(rate: int, seconds: float) -> dict[str, float]:
    with running_server() as server, feeding(server, rate):
        began_s = time.monotonic()
        with running_job(server) as job:
            ready_s = time.monotonic() - began_s
            memory: Counter[str] = Counter()
            time.sleep(SETTLE_S)
            before, since_s = processor_s(job), time.monotonic()
            while time.monotonic() - since_s < seconds:
                job.check_runs()
                memory |= memory_of(server, job)
                time.sleep(1)
            used, over_s = processor_s(job) - before, time.monotonic() - since_s
            batches = [b for b in read_batches(job.events) if b.get("windows") == 1]
    lags = [batch["lag_ms"] for batch in batches]
    return {
        "ready, s": ready_s,
        "first live window, its end to publish, ms": lags[0],
        "the five after it, the longest, ms": max(lags[1:6]),
        "all of them, p99, ms": percentile(lags[1:], 0.99),
        **{f"{part}, MiB (PSS)": memory[part] / 2**20 for part in PARTS},
        **{f"{part}, of a core": used[part] / over_s for part in PARTS},
    }


def report_everything() -> None:
    looks: list[tuple[float, Counter[str], Counter[str]]] = []
    with running_everything() as (run, _, _):
        began_s = time.monotonic()
        for look_s in (0, *LOOKS_S):
            time.sleep(max(0.0, began_s + look_s - time.monotonic()))
            if run.poll() is not None:
                raise SystemExit(f"tickthrottle run ended with {run.returncode}")
            found = list(programs(run.pid))
            used_s = processor_by_name(found)
            looks.append((time.monotonic(), used_s, memory_by_name(found)))
    memory, cores = {"": "MiB (PSS)"}, {"": "cores since the look before"}
    for name, before, look in zip(LOOKS_S, looks, looks[1:], strict=False):
        over_s, used_s, pss = look[0] - before[0], look[1] - before[1], look[2]
        memory[f"{name} s"] = f"{pss.total() / 2**20:,.0f}"
        cores[f"{name} s"] = f"{used_s.total() / over_s:.2f}"
    print_rows("All of `tickthrottle run`, after its start", [memory, cores])
    ends = [
        {"": name, "MiB (PSS)": f"{size / 2**20:,.0f}", "cores": f"{used:.3f}"}
        for name, size in pss.most_common()
        for used in [used_s[name] / over_s]
    ]
    print_rows("At the end, and since the look before", ends)
    print_machine()


def programs(pid: int) -> Iterator[Named]:
    """Yield a process and all below it, by what they run."""
    root = psutil.Process(pid)
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            after = words[words.index("-m") + 1 :] if "-m" in words else []
            name, *rest = after or [process.name()]
            yield Named(rest[0] if name == "tickthrottle" and rest else name, process)


def processor_s(job: Program) -> Counter[str]:
    used = processor_by_name(job_family("", job.group))
    used["job"] = used.total()
    return used


def processor_by_name(processes: Iterable[Named]) -> Counter[str]:
    """Return the seconds of processor of processes, added up by name."""
    used: Counter[str] = Counter()
    for name, process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used[name.strip()] += times.user + times.system
    return used


if __name__ == "__main__":
    main()
