"""Links the windows of a batch to the chain of the stream, before they are published.

The script decides whether the links go on from where the stream stands: whoever has
published beside this job since has changed what they are of.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import redis

from ingest.redis_keys import Keys
from ingest.series import is_series
from throttle.contract.snapshot import LastValue
from throttle.publish.shown_versions import NoNews, stored_values
from throttle.window.batch import Batch
from throttle.window.group_rows import Place
from tickthrottle_client.chain_v1 import ChainPlace, Link, sign


class ChainedWindows(NamedTuple):
    """What the script is told: see ``publisher.lua``. ``parts`` are of the windows."""

    at: str
    end: str
    parts: Sequence[str]
    of_all: str


class WindowChain:
    """Remembers where the stream stands, as far as one job can know."""

    def __init__(self, client: redis.Redis, keys: Keys, key: bytes = b"") -> None:
        """Begin with nothing; links are signed if there is a ``key``."""
        self._key = key
        self._client = client
        self._keys = keys
        self.at = ""
        """Epoch, offset and the last link's place, as the script has said them."""

    def link(
        self, batch: Batch, no_news: NoNews, revised: Mapping[Place, bytes]
    ) -> ChainedWindows:
        """Return the links of a batch's windows. Raises redis.RedisError.

        ``revised`` are the versions of rows that have a revision.
        """
        if not self.at:
            self.has_moved()
        epoch, offset, text = self.at.split(" ", 2)
        place, shown = ChainPlace.parse(text), self._shown(no_news)
        links = list[Link]()
        for number, window in enumerate(batch.windows, int(offset or 0) + 1):
            lines = list[bytes]()
            for _, row in window.rows.values():
                if is_series(row.isin):
                    continue
                sums, at = row.sums, (window.end_ms, row.isin)
                if at in no_news.unshown:
                    continue
                if at in no_news.stale:
                    sums, body = row.row_sums.encode(), shown[row.isin]
                elif at in revised:
                    body = shown[row.isin] = row.revised(revised[at]).body
                else:
                    body = row.body
                    if row.isin in shown:
                        shown[row.isin] = body
                lines.append(body + b" " + sums)
            link = Link.make(place, epoch, number, window.end_ms, *lines)
            place = ChainPlace(epoch, number, link.hash)
            if self._key:
                link = link._replace(signature=sign(self._key, link.hash))
            links.append(link)
        parts = [_part([link]) for link in links]
        end = "" if place is None else place.text
        return ChainedWindows(self.at, end, parts, _part(links))

    def has_moved(self) -> bool:
        """Read where the stream stands; tell whether that is elsewhere than known."""
        where: Any = self._client.hmget(self._keys.meta, "epoch", "offset", "chain")
        before, self.at = self.at, " ".join((part or b"").decode() for part in where)
        return self.at != before

    def learn(self, published: ChainedWindows) -> None:
        """Take in that a batch was published."""
        epoch, offset, _ = published.end.split(" ")
        self.at = f"{epoch} {offset} {published.end}"

    def _shown(self, no_news: NoNews) -> dict[str, bytes]:
        """Return the bodies that are shown of instruments with stale rows."""
        isins = {isin for _, isin in no_news.stale}
        values = stored_values(self._client, self._keys.last, isins)
        return {
            isin: b"" if value is None else LastValue.decode(isin.encode(), value).body
            for isin, value in values
        }


def _part(links: Sequence[Link]) -> str:
    texts = orjson.dumps([link.text for link in links]).decode()
    return f',"chain":{texts}'
