"""A lease of a name that is no job: one process of the name works, others wait."""

import redis

from ingest.redis_keys import Keys
from throttle.lease.lease import Lease, LeaseHeld, lua_source, owner_of


class NameLease(Lease):
    """Kept and given back as a job's is; it begins no stream and no books."""

    def __init__(self, client: redis.Redis, keys: Keys, name: str, ttl_ms: int) -> None:
        super().__init__(client, keys, name, ttl_ms)
        self._take = client.register_script(lua_source("take.lua"))

    def take(self) -> int | LeaseHeld:
        """Take the lease under a new term, unless another holder is alive."""
        keys = [self._keys.meta, self._keys.lease(self._job)]
        reply = self._take(keys=keys, args=[self._job, self.owner, self._ttl_ms])
        return int(reply[0]) if reply[0] else LeaseHeld(owner_of(reply[1]))
