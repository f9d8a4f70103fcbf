"""How figures are worded, the same in the terminal, the report and a verdict. Pure."""

NONE = "\N{EN DASH}"


def count(number: float | None) -> str:
    """Return a whole number with its thousands apart."""
    return NONE if number is None else f"{number:,.0f}"


def plural(number: int, noun: str) -> str:
    """Return how many of something: ``1 client``, ``2,000 clients``."""
    return f"{count(number)} {noun if number == 1 else noun + 's'}"


def duration(ms: float | None) -> str:
    """Return a time as short as a reader needs it: the longer, the coarser."""
    if ms is None:
        return NONE
    if ms < 9.95:
        return f"{ms:.1f} ms" if ms > 0 else "0 ms"
    if ms < 9_995:
        return f"{ms:,.0f} ms"
    if ms < 119_500:
        return f"{ms / 1_000:.1f} s"
    minutes, seconds = divmod(round(ms / 1_000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def size(byte_count: float | None) -> str:
    """Return an amount of bytes in the largest fitting unit."""
    if byte_count is None:
        return NONE
    amount, units = float(byte_count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1_024
        units.pop(0)
    digits = 1 if amount < 9.95 and units[0] != "B" else 0
    return f"{amount:.{digits}f} {units[0]}"


def cores(share: float | None) -> str:
    """Return CPU as a share of one core."""
    return NONE if share is None else f"{share * 100:,.0f}%"


def ratio(number: float | None) -> str:
    """Return a factor: ``3.7``, ``412``."""
    if number is None:
        return NONE
    return f"{number:.1f}" if number < 99.5 else f"{number:,.0f}"


def rate(per_second: float | None) -> str:
    """Return a rate without its unit; small ones with a decimal."""
    if per_second is None:
        return NONE
    is_small = 0 < per_second < 9.95 and per_second != int(per_second)
    return f"{per_second:.1f}" if is_small else count(per_second)
