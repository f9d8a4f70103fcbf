"""Whether a server may forget what it acknowledged, by what it says of itself."""

from tickthrottle_client.server_memory import ServerMemory

LIMITED = {"used_memory": 900, "maxmemory": 1_000, "maxmemory_policy": "noeviction"}


def test_a_server_that_keeps_everything_is_fine() -> None:
    """With a limit or without, and also where it says less than others."""
    for info in ({}, LIMITED, {"maxmemory": 0, "maxmemory_policy": "allkeys-lru"}):
        assert ServerMemory.decode(info).why_forgetful() is None
    replica = {"role": "slave", "slave_read_only": 1}
    assert ServerMemory.decode(replica).why_forgetful() is None


def test_a_server_that_may_evict_keys_is_told_with_what_to_set() -> None:
    """The keys that volatile policies evict are leases and what an intake remembers."""
    for policy in ("allkeys-lru", "volatile-ttl", "allkeys-random"):
        reason = ServerMemory.decode({**LIMITED, "maxmemory_policy": policy})
        assert f"maxmemory-policy {policy}" in str(reason.why_forgetful())
        assert "CONFIG SET maxmemory-policy noeviction" in str(reason.why_forgetful())
        evicted = ServerMemory(1, 9, policy, evicted=1_234)
        assert "has evicted 1,234 keys" in str(evicted.why_forgetful())


def test_a_replica_that_takes_writes_is_told() -> None:
    """They are gone when it synchronises."""
    replica = ServerMemory.decode({"role": "slave", "slave_read_only": 0})
    assert "is a replica that takes writes" in str(replica.why_forgetful())


def test_memory_is_nearly_full_from_nine_tenths_on() -> None:
    """Without a limit it never is."""
    assert ServerMemory.decode(LIMITED).is_nearly_full
    assert not ServerMemory(899, 1_000).is_nearly_full
    assert not ServerMemory(899, 0).is_nearly_full
