"""What /v1/pipeline and its like say, made up: a pipeline in which all is well."""

from typing import Any

NOW_MS = 1_773_964_862_000
WINDOW_MS = 2_000
STARTED_MS = NOW_MS - 60_000


def make_books(**changes: Any) -> dict[str, Any]:
    """Return the books of a partition, or of all, that balance."""
    return {
        "read": 100,
        "published": 60,
        "superseded": 30,
        "stale": 6,
        "refused": {"bad_price": 3, "future_time": 1},
        "blanks": 0,
        "log": 100,
        **changes,
    }


def make_job(name: str = "main", *partitions: int, **changes: Any) -> dict[str, Any]:
    """Return an active job; with ``age_ms`` it is so old."""
    age_ms = changes.get("age_ms", 800)
    place = {"position": "7-0", "end": "9-0", "lag": 40}
    return {
        "job": name,
        "is_active": True,
        "owner": "host:1",
        "term": 1,
        "cut_ms": NOW_MS - age_ms,
        "age_ms": age_ms,
        "batches": 30,
        "windows": 30,
        "balanced": True,
        "problems": [],
        "total": make_books(),
        "partitions": [
            {"partition": p, **make_books(), **place} for p in partitions or (0, 1)
        ],
        "last_batch": None,
        "stages": {"read_ms": 60, "publish_ms": 12},
        **changes,
    }


def make_pipeline(*reasons: tuple[str, int, str], **changes: Any) -> dict[str, Any]:
    """Return the whole; ``reasons`` are (code, since_ms, message) of what is not."""
    return {
        "now_ms": NOW_MS,
        "version": "0.1.0",
        "started_ms": STARTED_MS,
        "problem": None,
        "feed": {"last_append_ms": NOW_MS - 100, "quiet_ms": 100},
        "log": {
            "kind": "redis",
            "id": "redis:1",
            "partitions": [
                {"partition": p, "end": "9-0", "last_append_ms": NOW_MS - 100}
                for p in (0, 1)
            ],
            "problem": None,
        },
        "jobs": [make_job()],
        "stream": make_stream(),
        "fanout": {
            "clients": 40,
            "states": {"new": 1, "live": 38, "behind": 1, "stuck": 0},
            "publish_lag_ms": 210,
            "fanout_lag_ms": 240,
            "rss_bytes": 230_000_000,
            "loop_lag_ms": 2,
        },
        "ready": {
            "ready": not reasons,
            "reasons": [
                {"code": code, "since_ms": since_ms, "message": message}
                for code, since_ms, message in reasons
            ],
        },
        **changes,
    }


def make_stream(**changes: Any) -> dict[str, Any]:
    """Return the stream as the gateway has it."""
    return {
        "epoch": "k3x9",
        "offset": 30,
        "window": NOW_MS - 800,
        "window_age_ms": 800,
        "window_ms": WINDOW_MS,
        "issues": 2_879,
        "is_live": True,
        "reason": None,
        **changes,
    }


def make_windows(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Return so many windows in a row, the newest ends now."""
    return [
        {
            "window": NOW_MS - (count - 1 - n) * WINDOW_MS,
            "offset": n + 1,
            "rows": 400,
            "trades": 1_500,
            "publish_lag_ms": 200,
            "fanout_lag_ms": 230,
            "clients": 40,
            "merged": 1,
            **changes,
        }
        for n in range(count)
    ]
