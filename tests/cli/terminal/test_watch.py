"""`watch` follows a real gateway: in a terminal, and into a pipe."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import count

import pytest
from rich.console import Console
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from cli.terminal.watch import QuoteView
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway
from tests.paths import ROOT
from tests.ports import free_port
from tickthrottle_client.tick_v1 import PROTOCOL

pytestmark = pytest.mark.redis


def test_a_screen_has_as_many_rows_as_fit() -> None:
    view = QuoteView(["*"], "code", is_green_up=False)
    for number, isin in enumerate((SAMSUNG, HYNIX, NAVER)):
        item = {"isin": isin, "price": Decimal(1), "size": Decimal(1), "trades": number}
        view.put({**item, "time": 1_773_964_801_566_788})
    view.state = "live\x1b[2J"
    out = io.StringIO()
    Console(file=out, width=100).print(view.render(6))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[0] == "*  ·  live\\x1b[2J"
    assert lines[-1] == "1 more; a larger terminal shows more"
    assert view.shown == [HYNIX, SAMSUNG]
    view.keep([NAVER])
    assert list(view.items) == [NAVER]


@contextmanager
def watching(*arguments: str, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tickthrottle", "watch", *arguments],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", "LINES": "20", "TERM": "xterm"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def url_of(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.port}"


def test_a_pipe_gets_every_quote_as_json(
    gateway: Gateway, publisher: Publisher
) -> None:
    """With every digit, as it comes; told to stop, it ends well."""
    publisher.publish(make_row(SAMSUNG, "199500.10"))
    with watching(SAMSUNG, "--url", url_of(gateway), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        publisher.publish(make_row(HYNIX, seq=2), make_row(SAMSUNG, "0.30", seq=2))
        second = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert b'"price":199500.10,' in first
    assert json.loads(second)["isin"] == SAMSUNG
    assert b'"price":0.30,' in second


def test_who_has_read_enough_ends_it(gateway: Gateway, publisher: Publisher) -> None:
    """As `head` does: no stack trace, no failure."""
    publisher.publish(make_row())
    with watching("*", "--url", url_of(gateway), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        seq = count(2)

        def has_ended() -> bool:
            publisher.publish(make_row(seq=next(seq)))
            return process.poll() is not None

        eventually(has_ended, 30)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_terminal_shows_names_and_changes(
    gateway: Gateway, publisher: Publisher
) -> None:
    """A table that is drawn again with each window; Ctrl-C gives the screen back."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG, "199500"))
    here, there = pty.openpty()
    seen = bytearray()
    try:
        with watching(
            "market:KOSPI", "--url", url_of(gateway), stdout=there
        ) as process:
            os.set_blocking(here, False)

            def shows(*texts: str) -> bool:
                with suppress(BlockingIOError):
                    seen.extend(os.read(here, 65_536))
                return all(text.encode() in seen for text in texts)

            eventually(lambda: shows("005930", "Samsung Electronics", "▲ 100"), 30)
            publisher.publish(make_row(SAMSUNG, "199300", seq=2))
            eventually(lambda: shows("199,300", "▼ 100", "-0.05%"), 30)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
            eventually(lambda: shows("\x1b[?1049l"), 10)
    finally:
        os.close(here)
        os.close(there)


def test_what_cannot_be_watched_is_told_in_a_sentence(gateway: Gateway) -> None:
    """An address without a gateway, a bad key, an order there is none of."""
    nobody = f"http://127.0.0.1:{free_port()}"
    for arguments, code, sentence in (
        ((SAMSUNG, "--url", nobody), 3, "no gateway answers at ws://127.0.0.1"),
        (("KR70059", "--url", url_of(gateway)), 3, "key 'KR70059' is not accepted"),
        (("*", "--order", "size"), 2, "order 'size': must be one of code, change"),
    ):
        with watching(*arguments, stdout=subprocess.PIPE) as process:
            _, said = process.communicate(timeout=60)
            assert process.returncode == code
            assert said.decode().startswith(f"tickthrottle: {sentence}"), said


def test_a_hostile_gateway_ends_it_in_a_sentence() -> None:
    """No stack trace, and nothing that acts on the terminal."""

    def speak(connection: ServerConnection) -> None:
        item = f'{{"isin":"{SAMSUNG}","time":1,"seq":1,"price":"\\u001b[2J","size":1}}'
        connection.send(f'{{"type":"update","data":[{item}]}}')

    with serve(speak, "127.0.0.1", 0, subprotocols=[Subprotocol(PROTOCOL)]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        with watching(SAMSUNG, "--url", url, stdout=subprocess.PIPE) as process:
            _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    [sentence] = said.decode().splitlines()
    assert "says what is not tick.v1" in sentence
    assert sentence.isprintable()
