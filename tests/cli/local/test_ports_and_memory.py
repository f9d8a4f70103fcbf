"""A run's ports and memory."""

import socket
from pathlib import Path

import pytest

from cli.local import ports_and_memory
from cli.local.ports_and_memory import (
    RunFailed,
    check_memory,
    check_ports,
    lacking_memory,
)
from cli.local.settings import RunSettings
from tests.ports import free_port


@pytest.mark.parametrize("is_operators", [False, True])
def test_a_taken_port_is_named_with_the_ways_to_another(is_operators: bool) -> None:
    page = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", page + is_operators))
        taken.listen()
        with pytest.raises(RunFailed) as failed:
            check_ports(RunSettings(port=page))
    words = "Address already in use; choose another one: --port, or make run PORT="
    if is_operators:
        assert str(failed.value) == (
            f"port {page + 1} (operators' page): {words}, or "
            "TICKTHROTTLE_OPERATORS_PORT for this one alone"
        )
    else:
        assert str(failed.value) == f"port {page}: {words}"


def test_too_little_memory_is_refused_and_little_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's limit counts, as either kernel interface says it."""
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(
        ports_and_memory, "_LIMITS_OF_A_GROUP", (tmp_path / "missing", limit)
    )
    limit.write_text("max\n")
    check_memory()
    limit.write_text("536870912\n")
    with pytest.raises(RunFailed, match=r"memory: there are 537 MB here.*1\.4 GB"):
        check_memory()
    limit.write_text("1500000000\n")
    check_memory()
    assert lacking_memory(False) is None
    warning = lacking_memory(True) or ""
    assert warning.startswith("1.5 GB are free, a run takes 2.2 GB; --analytics off")
