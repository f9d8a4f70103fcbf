"""The embedded server."""

import subprocess
from pathlib import Path

import pytest
import redis

from cli.local.valkey import valkey_command, wait_for_server
from tests.conftest import eventually
from tests.ports import free_port

pytestmark = pytest.mark.redis


def test_the_embedded_server_is_on_loopback_and_keeps_nothing(tmp_path: Path) -> None:
    """It answers with its name, and leaves no file behind."""
    port = free_port()
    with subprocess.Popen(
        valkey_command(port, tmp_path), stdout=subprocess.DEVNULL
    ) as process:
        url = f"redis://127.0.0.1:{port}"
        try:
            assert (wait_for_server(url, within_s=10) or "").startswith("Valkey 9.")
            with redis.Redis.from_url(url) as client:
                assert client.config_get("bind") == {"bind": "127.0.0.1"}
                client.set("a", "b")
        finally:
            process.terminate()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_come_is_given_up() -> None:
    """The caller says what to make of it."""
    assert wait_for_server(f"redis://127.0.0.1:{free_port()}", within_s=0.1) is None


def test_a_killed_server_that_keeps_data_comes_back_with_all_it_had(
    tmp_path: Path,
) -> None:
    """With the last thing it has answered, and without the disk's confirmation."""
    port = free_port()
    url, command = (
        f"redis://127.0.0.1:{port}",
        valkey_command(port, tmp_path, keeps_data=True),
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        assert wait_for_server(url, within_s=10)
        with redis.Redis.from_url(url) as client:
            for number in range(1_000):
                client.xadd("log", {"number": number})
        process.kill()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            assert wait_for_server(url, within_s=10)
            with redis.Redis.from_url(url) as client:
                eventually(lambda: client.xlen("log") == 1_000)
        finally:
            process.kill()
