"""What errors of a server of Redis mean: which pass, and what a refusal asks for."""

from redis import exceptions

TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)
"""What passes when the server is back, fails over, or has room again."""

# Connection errors by class, but no waiting cures them.
_LASTING = (exceptions.AuthenticationError, exceptions.AuthorizationError)
# Error codes without a class of their own: a slow script, a failed save, a replica that
# has lost its primary or a primary its replicas, a primary that was just demoted.
_CODES = ("BUSY ", "MISCONF ", "NOREPLICAS ", "MASTERDOWN ", "LOADING ", "UNBLOCKED ")
_NO_PASSWORD = ("NOAUTH", "Authentication required", "already authenticated")
_WRONG_PASSWORD = ("WRONGPASS", "invalid username-password", "invalid password")


def is_passing(error: Exception) -> bool:
    """Tell whether an error of the server may pass by itself.

    A wrong password, a key of another type or an unknown command do not.
    """
    if isinstance(error, _LASTING):
        return False
    text = str(error)
    return isinstance(error, TRANSIENT) or any(code in text for code in _CODES)


def in_words(error: Exception) -> str:
    """Say what a server's error means: of a password what to do, else its own words."""
    text = str(error)
    # What is said about HELLO says the same.
    if any(words in text for words in _NO_PASSWORD):
        return (
            "it asks for a password: put it into the address (REDIS_URL), as in "
            "redis://user:password@host:6379/0"
        )
    if any(words in text for words in _WRONG_PASSWORD):
        return (
            "user and password of the address (REDIS_URL) are not the server's; "
            "characters such as / ? # @ % must be percent-encoded (%2F %3F %23 %40 %25)"
        )
    return text
