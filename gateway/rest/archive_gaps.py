"""REST: what an answer of the archive lacks, and why. Pure."""

from collections.abc import Sequence

import orjson

from archive.contract.archive_gap import ArchiveGap

MOST_GAPS = 100
"""So many are in an answer at most, the oldest; what is damaged comes first."""


def gaps_object(gaps: Sequence[ArchiveGap]) -> bytes:
    """Encode gaps for clients."""
    chosen = sorted(gaps, key=lambda gap: not gap.is_damage)[:MOST_GAPS]
    return orjson.dumps(
        [
            {
                "kind": gap.kind,
                "after": gap.after_ms,
                "before": gap.before_ms,
                "windows": gap.windows,
            }
            for gap in gaps
            if gap in chosen
        ]
    )
