"""How many examples hypothesis tries: all, a third in `make test-all`, or fewer.

`make test` tries an eighth. Each run draws others, so what one leaves out is tried
another day.
"""

from hypothesis import settings

THOROUGH, USUAL, QUICK = "thorough", "usual", "quick"
_PARTS = {THOROUGH: 1, USUAL: 3, QUICK: 8}
"""By profile, which part of the examples is tried."""

# How long an example takes says how busy the machine is, not whether it is right.
for _name, _part in _PARTS.items():
    settings.register_profile(_name, deadline=None, max_examples=100 // _part)


def many(examples: int) -> int:
    """Return how many examples the chosen profile tries of so many."""
    return max(1, examples // _PARTS[settings.get_current_profile_name()])
