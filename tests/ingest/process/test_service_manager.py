"""What a service manager is told, at a real socket."""

import os
import socket
from pathlib import Path

import pytest

from ingest.process.service_manager import tell_ready

NAME = "NOTIFY_SOCKET"


def test_a_manager_that_waits_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One datagram, at the path that the environment names."""
    monkeypatch.setenv(NAME, str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.environ[NAME])
        tell_ready()
        assert manager.recv(100) == b"READY=1"


def test_a_name_without_a_file_is_reached_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd may name a socket of Linux's abstract namespace."""
    name = f"@tickthrottle-{os.getpid()}"
    monkeypatch.setenv(NAME, name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:])
        tell_ready()
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "/nowhere/notify"])
def test_nobody_to_tell_is_no_fault(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not under a manager, under one of another kind, or under one that has gone."""
    monkeypatch.setenv(NAME, address)
    tell_ready()
