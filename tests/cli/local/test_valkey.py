"""The embedded server."""

import subprocess
from pathlib import Path

import psutil
import pytest
import redis

from cli.local.valkey import valkey_command, wait_for_server
from tests.conftest import eventually
from tests.ports import free_port
from tickthrottle_client.redis_faults import is_passing

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


def test_a_server_whose_disk_is_full_has_its_clients_wait(tmp_path: Path) -> None:
    """It takes nothing that it could not keep, and goes on when there is room."""
    port = free_port()
    command = valkey_command(port, tmp_path, keeps_data=True)
    # Python ignores the signal that tells of the limit; so must the server.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, restore_signals=False
    ) as process:
        try:
            assert wait_for_server(f"redis://127.0.0.1:{port}", within_s=10)
            limits = psutil.Process(process.pid)
            limits.rlimit(psutil.RLIMIT_FSIZE, (20_000, 2**62))
            with redis.Redis(port=port) as client:
                with pytest.raises(redis.ResponseError) as refused:
                    fill(client)
                assert str(refused.value).startswith("MISCONF ")
                assert is_passing(refused.value)
                limits.rlimit(psutil.RLIMIT_FSIZE, (2**62, 2**62))
                eventually(lambda: is_taken(client))
        finally:
            process.kill()


def fill(client: redis.Redis) -> None:
    """Set keys until the server refuses one, or there are a thousand."""
    for number in range(1_000):
        client.set(f"key:{number}", "x" * 100)


def is_taken(client: redis.Redis) -> bool:
    try:
        return bool(client.set("later", "x"))
    except redis.ResponseError:
        return False
