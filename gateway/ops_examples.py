"""Examples of the operators' answers, for the OpenAPI document."""

from typing import Any

_REASON = {
    "code": "job_behind",
    "since_ms": 1773964810000,
    "message": "job low: no window for 8.4 s",
}
_ACCOUNT: dict[str, Any] = {
    "read": 110315,
    "published": 26541,
    "superseded": 83693,
    "stale": 2,
    "refused": {"bad_price": 79},
    "blanks": 0,
    "log": 110315,
}
_STATES = {"new": 0, "live": 119, "behind": 1, "stuck": 0}

_CLIENT: dict[str, Any] = {
    "id": "c-7f3a9102",
    "state": "behind",
    "address": "203.0.113.7",
    "kind": "websocket",
    "keys": 30,
    "everything": False,
    "pending": 12,
    "unsent_bytes": 65536,
    "connected_ms": 1773964201004,
    "sent_ms": 1773964804190,
}
_PIPELINE: dict[str, Any] = {
    "now_ms": 1773964804500,
    "version": "0.1.0",
    "started_ms": 1773961200000,
    "problem": None,
    "feed": {"last_append_ms": 1773964804470, "quiet_ms": 30},
    "log": {
        "kind": "redis",
        "id": "T8YIL3lqRSmXQJEAuApguQ",
        "partitions": [
            {
                "partition": 0,
                "end": "3720273845655961600",
                "last_append_ms": 1773964804470,
            }
        ],
        "problem": None,
    },
    "jobs": [
        {
            "job": "throttle",
            "is_active": True,
            "owner": "host-1-4711",
            "term": 3,
            "cut_ms": 1773964804000,
            "age_ms": 500,
            "batches": 1800,
            "windows": 1800,
            "balanced": True,
            "problems": [],
            "total": _ACCOUNT,
            "partitions": [
                {
                    **_ACCOUNT,
                    "partition": 0,
                    "position": "3720273845655961000",
                    "end": "3720273845655961600",
                    "lag": 37,
                }
            ],
            "last_batch": {
                "batch": 1800,
                "offset": 1235,
                "windows": 1,
                "read": 1498,
                "published": 312,
                "superseded": 1186,
                "stale": 0,
                "refused": 0,
            },
            "stages": {"read_ms": 31, "publish_ms": 9},
        }
    ],
    "stream": {
        "epoch": "k3x9",
        "offset": 1235,
        "window": 1773964804000,
        "window_age_ms": 500,
        "window_ms": 2000,
        "issues": 2879,
        "is_live": True,
        "reason": None,
    },
    "fanout": {
        "clients": 120,
        "states": _STATES,
        "publish_lag_ms": 181,
        "fanout_lag_ms": 204,
        "rss_bytes": 104857600,
        "loop_lag_ms": 1,
    },
    "ready": {"ready": False, "reasons": [_REASON]},
}
_PULSE: dict[str, Any] = {
    "count": 1,
    "data": [
        {
            "window": 1773964804000,
            "offset": 1235,
            "rows": 312,
            "trades": 1498,
            "publish_lag_ms": 181,
            "fanout_lag_ms": 204,
            "clients": 120,
            "merged": 1,
        }
    ],
}
_CLIENTS: dict[str, Any] = {"count": 120, "states": _STATES, "data": [_CLIENT]}
_LETTERS: dict[str, Any] = {
    "count": 1,
    "reasons": {"bad_price": 79},
    "scanned": 79,
    "is_complete": True,
    "data": [
        {
            "job": "throttle",
            "partition": 0,
            "position": "3720273845655961000",
            "reason": "bad_price",
            "error": "price '-1': must be a plain decimal",
            "trade": '{"isin":"KR7005930003","price":"-1"}',
            "bytes": 36,
            "appended_ms": 1773964803211,
        }
    ],
}
_SETTINGS: dict[str, Any] = {
    "count": 1,
    "data": [
        {
            "name": "TICKTHROTTLE_MAX_KEYS",
            "value": "1024",
            "default": "1024",
            "is_default": True,
        }
    ],
}
_COUNTERS: dict[str, Any] = {"updates_published": 1235, "clients_slow_closed": 0}

EXAMPLES: dict[str, dict[str, Any]] = {
    "get_pipeline": _PIPELINE,
    "list_pipeline_windows": _PULSE,
    "list_clients": _CLIENTS,
    "get_client": _CLIENT,
    "list_dead_letters": _LETTERS,
    "get_settings": _SETTINGS,
    "get_counters": _COUNTERS,
}
"""What each operation answers, by its id."""
