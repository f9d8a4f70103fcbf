"""A server that answers as a schema registry does, or as none."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOT_FOUND = 404, {"error_code": 40403, "message": "Schema not found"}
AWAY = 503, {"message": "soon"}
TRADE = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "isin", "type": "string"},
            {
                "name": "time",
                "type": {"type": "long", "logicalType": "timestamp-millis"},
            },
            {"name": "seq", "type": "long"},
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": 18,
                    "scale": 4,
                },
            },
            {"name": "size", "type": "int"},
            {"name": "side", "type": ["null", "string"]},
        ],
    }
)
VALUES = {
    "isin": "KR7005930003",
    "time": 1_773_964_804_000,
    "seq": 7,
    "price": (1_995_005_000).to_bytes(5, "big"),
    "size": 3,
    "side": None,
}


class Answers:
    """What a server answers to every request, and what it was asked."""

    def __init__(self) -> None:
        self.status: int
        self.body: Any
        self.status, self.body = NOT_FOUND
        self.away_times = 0
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""


@contextmanager
def answering() -> Iterator[Answers]:
    """Answer on a port of loopback."""
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append((self.path, self.headers["Authorization"]))
            is_away = len(answers.asked) <= answers.away_times
            status, body = AWAY if is_away else (answers.status, answers.body)
            encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        answers.url = f"http://me:s%40cret@127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield answers
        server.shutdown()
