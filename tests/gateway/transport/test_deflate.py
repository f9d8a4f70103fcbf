"""Compression: the same bytes for all, and none of them wrong."""

import json
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

from gateway.transport.deflate import MIN_BYTES, deflate
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway, running_gateway, upgrade_request

INSTRUMENTS = make_isins(60)


@pytest.fixture
def compressing(publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway that compresses, and has instruments."""
    publisher.publish(*(make_row(isin) for isin in INSTRUMENTS))
    with running_gateway(redis_url, compression=True) as gateway:
        gateway.wait_for("reloads")
        yield gateway


def test_a_frame_is_compressed_once_and_decodes_alone() -> None:
    """Clients that are due the same get the same object."""
    payload = b"%d" * 5_000
    assert deflate(payload) is deflate(payload)
    assert len(deflate(payload)) < len(payload) / 10
    decoder = zlib.decompressobj(-15)
    assert decoder.decompress(deflate(payload) + b"\0\0\xff\xff") == payload


@pytest.mark.redis
def test_clients_with_and_without_compression_get_the_same(
    publisher: Publisher, compressing: Gateway
) -> None:
    """Whatever a client agreed to: it decodes every frame to the bytes published.

    Long and short frames alternate, so that a context kept too long would show.
    """
    offers = [
        None,
        [ClientPerMessageDeflateFactory()],
        [ClientPerMessageDeflateFactory(server_max_window_bits=9)],
        [ClientPerMessageDeflateFactory(client_max_window_bits=15)],
        [ClientPerMessageDeflateFactory(server_no_context_takeover=True)],
    ]
    with ExitStack() as stack:
        streams = [
            stack.enter_context(compressing.stream(extensions=offer))
            for offer in offers
        ]
        for stream in streams:
            assert len(stream.subscribe("*")) == len(INSTRUMENTS)
        for seq in range(2, 22):
            instruments = INSTRUMENTS if seq % 3 else INSTRUMENTS[:2]
            publisher.publish(
                *(make_row(isin, f"{seq}.50", seq) for isin in instruments)
            )
            first, *others = [stream.raw() for stream in streams]
            assert json.loads(first)["offset"] == seq
            assert (len(first) > MIN_BYTES) == bool(seq % 3)
            assert others == [first] * 4


def handshake(gateway: Gateway, offer: str) -> tuple[socket.socket, bytes]:
    """Open a stream of everything on a bare socket; return what was agreed to."""
    client = socket.create_connection((gateway.host, gateway.port), timeout=10)
    extension = f"Sec-WebSocket-Extensions: {offer}"
    client.sendall(upgrade_request("?keys=*", extension))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    return client, head


@pytest.mark.redis
def test_what_is_agreed_on_keeps_no_context(compressing: Gateway) -> None:
    """Or later messages would decode to something else."""
    client, head = handshake(compressing, "permessage-deflate; client_max_window_bits")
    with client:
        assert b"server_no_context_takeover" in head
        assert b"client_no_context_takeover" in head


@pytest.mark.redis
@pytest.mark.parametrize("compressed", [True, False])
def test_a_bomb_does_not_go_off(compressing: Gateway, *, compressed: bool) -> None:
    """A small message that would become a large one is refused before it is one."""
    offer = "permessage-deflate" if compressed else "x-none"
    client, _ = handshake(compressing, offer)
    with client:
        eventually(lambda: compressing.health()["clients"] == 1)
        bomb = deflate(b" " * 50_000_000)
        assert len(bomb) < 65_536
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(bomb))
        client.sendall(b"\xc1\xfe" + len(bomb).to_bytes(2) + mask + masked)
        received = b""
        while chunk := client.recv(65_536):
            received += chunk
        # 1009 where compression was agreed on, 1002 where its bit means nothing.
        code = (1009 if compressed else 1002).to_bytes(2)
        assert b"\x88" in received
        assert code in received[received.rindex(b"\x88") :]


@pytest.mark.redis
def test_without_the_setting_nothing_is_agreed_on(
    publisher: Publisher, redis_url: str
) -> None:
    """It is off by default: compression costs more than all the rest."""
    with running_gateway(redis_url) as gateway:
        client, head = handshake(gateway, "permessage-deflate")
        client.close()
    assert b"permessage-deflate" not in head
