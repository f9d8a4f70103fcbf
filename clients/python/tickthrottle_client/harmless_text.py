"""Text of others, as it may be written to a terminal. Pure."""


def harmless(value: object) -> str:
    """Return a value as text in which nothing acts on a terminal."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
