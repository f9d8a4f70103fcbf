"""How long something is, in words that a person can take in. Pure."""

_UNITS = (
    ("year", 31_557_600_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
)


def span_words(span_us: int) -> str:
    """Return a span of time in its largest fitting unit: ``2.5 minutes``."""
    for name, unit_us in _UNITS:
        if span_us >= unit_us:
            text = f"{span_us / unit_us:.1f}".removesuffix(".0")
            return f"{text} {name}" + ("" if text == "1" else "s")
    return f"{span_us / 1000:g} ms"
