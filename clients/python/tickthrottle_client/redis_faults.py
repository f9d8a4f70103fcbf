"""Which errors of a server of Redis pass, so that an append is worth another try."""

from redis import exceptions

TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
)
"""What passes when the server is back, fails over, or has room again."""
