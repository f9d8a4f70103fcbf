"""A published window as the archive takes it from the window log. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class LoggedWindow:
    """A message of the window log and what its header says.

    The message is unchanged, but without days so far, which are nothing to keep: rows
    add up to them.

    ``instruments`` is the version of the instrument table that the job used, None if
    the header does not say: then the table of ``published_us`` counts.
    """

    epoch: str
    offset: int
    window: int
    published_us: int
    instruments: int | None
    message: bytes

    @classmethod
    def decode(cls, message: bytes) -> "LoggedWindow":
        """Decode the header. Raises ValueError for what no throttle has written."""
        message = message.partition(b"\n\n")[0]
        head = message.partition(b"\n")[0]
        header = orjson.loads(head)
        try:
            instruments = header.get("instruments")
            return cls(
                str(header["epoch"]),
                int(header["offset"]),
                int(header["window"]),
                int(header["published"]),
                None if instruments is None else int(instruments),
                message,
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"header {head[:200]!r}: {error!r}") from None

    @classmethod
    def of_entry(cls, fields: Mapping[bytes, bytes]) -> "LoggedWindow":
        """Decode an entry of the window log. Raises ValueError as ``decode`` does."""
        return cls.decode(fields.get(b"snapshot", b""))

    @property
    def first_ms(self) -> int:
        """Its end."""
        return self.window

    @property
    def last_ms(self) -> int:
        """Its end."""
        return self.window

    @property
    def size_bytes(self) -> int:
        """How long its message is."""
        return len(self.message)

    @property
    def lines(self) -> list[bytes]:
        """Its rows, encoded."""
        return self.message.split(b"\n")[1:]
