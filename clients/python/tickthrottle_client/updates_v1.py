"""What a trade counts for, as its field ``updates`` says. Pure.

Exchanges publish which trades set the last price, which of them widen the range of the
day, and which add to its volume. A trade that says nothing counts for all three.
"""

from itertools import permutations
from typing import NamedTuple

FIELD = "updates"
"""The name of the field."""

NOTHING = "none"
"""What a trade says that counts for none of the three."""


class Updates(NamedTuple):
    """Whether a trade counts for the last price, for high and low, for the volume."""

    last: bool
    range: bool
    volume: bool

    @classmethod
    def parse(cls, text: object) -> "Updates":
        """Return what a field says. Raises ValueError, which says the rule."""
        try:
            return _BY_TEXT[text]
        except (KeyError, TypeError):
            raise ValueError(RULE) from None

    def encode(self) -> str:
        """Return the text that says it; who counts for all may leave it out."""
        names = (name for name, counts in self._asdict().items() if counts)
        return ",".join(names) or NOTHING

    def both(self, other: "Updates") -> "Updates":
        """Return what both allow: the rule for a trade with several conditions."""
        return Updates(*(a and b for a, b in zip(self, other, strict=True)))


ALL = Updates(True, True, True)
"""What a trade counts for that says nothing."""

RULE = (
    "must name what the trade counts for, one or more of last, range and volume, "
    f"with commas between them, or be {NOTHING}; left out, it counts for all of them"
)

_BY_TEXT: dict[object, Updates] = {
    ",".join(names) or NOTHING: Updates(*(name in names for name in Updates._fields))
    for count in range(len(Updates._fields) + 1)
    for names in permutations(Updates._fields, count)
}

PATTERN = f'"{FIELD}":"(?P<updates>{"|".join(map(str, _BY_TEXT))})"'
"""The field in JSON, with any text that is allowed; Arrow's RE2 reads it, too."""
