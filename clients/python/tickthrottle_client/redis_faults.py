"""Which errors of a server of Redis pass, so that it is worth another try."""

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


def is_passing(error: Exception) -> bool:
    """Tell whether an error of the server may pass by itself.

    A wrong password, a key of another type or an unknown command do not.
    """
    if isinstance(error, _LASTING):
        return False
    text = str(error)
    return isinstance(error, TRANSIENT) or any(code in text for code in _CODES)
