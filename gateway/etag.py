"""Entity tags: whether a client has the answer already (RFC 9110, 8.8.3 and 13.1.2).

Does no I/O.
"""

import hashlib
import re
from collections.abc import Iterable

TAG_BYTES = 12

_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def make_etag(*identity: bytes) -> str:
    """Return the strong tag of what ``identity`` names: a body, or what decides it."""
    digest = hashlib.blake2b(digest_size=TAG_BYTES)
    for part in identity:
        # Where a part ends is part of the name: ("a", "bc") is not ("ab", "c").
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return f'"{digest.hexdigest()}"'


def is_known(etag: str, if_none_match: Iterable[str]) -> bool:
    """Say whether a client that sent these ``If-None-Match`` has ``etag`` already.

    The comparison is the weak one, as for all GETs; ``*`` stands for anything. A field
    that is not well formed matches nothing: the client gets the answer.
    """
    for field in if_none_match:
        text = field.strip()
        if text == "*":
            return True
        if etag in _read_tags(text):
            return True
    return False


def _read_tags(text: str) -> list[str]:
    tags: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in " \t,":
            at += 1
            continue
        found = _TAG.match(text, at)
        if found is None:
            return []
        tags.append(found[1])
        at = found.end()
    return tags
