"""How many examples hypothesis tries: many in `make test-all`, few in `make test`."""

from hypothesis import settings

THOROUGH, QUICK = "thorough", "quick"
FEWER = 8

# How long an example takes says how busy the machine is, not whether it is right.
settings.register_profile(THOROUGH, deadline=None, max_examples=100)
settings.register_profile(QUICK, deadline=None, max_examples=100 // FEWER)


def many(examples: int) -> int:
    """Return how many examples the chosen profile tries of so many."""
    is_quick = settings.get_current_profile_name() == QUICK
    return max(1, examples // FEWER) if is_quick else examples
