"""What may be shown of a server's address: never a piece of its password. Pure."""

import re
from urllib.parse import SplitResult, urlsplit

MASK = "***"

ENCODE = (
    "cannot be taken apart: what ends a user, a password or an option must be "
    "percent-encoded there: / as %2F, ? as %3F, # as %23, @ as %40, [ as %5B, ] as %5D"
)

BAD_PORT = (
    "the port must be a number from 1 to 65535; a password stands before an @, and "
    "its / ? # @ : are percent-encoded (%2F %3F %23 %40 %3A)"
)


def split_url(url: str) -> SplitResult:
    """Take an address of one server or of several apart.

    Raises ValueError where it is not clear what is the password, which repeats nothing
    of the address.
    """
    try:
        parts = _split(url)
    except ValueError:
        raise ValueError(ENCODE) from None
    user, _, hosts = parts.netloc.rpartition("@")
    # What stands behind the host with an @ in it may be the end of a password.
    if url.count("@") != parts.netloc.count("@") or set("[]") & set(user):
        raise ValueError(ENCODE)
    for host in hosts.split(","):
        try:
            is_possible = urlsplit(f"//{host}").port != 0
        except ValueError:
            is_possible = False
        if not is_possible:
            raise ValueError(BAD_PORT)
    return parts


def _split(url: str) -> SplitResult:
    """Return the parts of an address, however many hosts it has. Raises ValueError."""
    scheme, slashes, rest = url.partition("//")
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    first, comma, _ = netloc.partition(",")
    if not comma or "@" in netloc.partition(",")[2]:
        return urlsplit(url)
    # Newer Pythons take what stands before a bracket for a fault.
    parts = urlsplit(f"{scheme}{slashes}{first}{rest.removeprefix(netloc)}")
    return parts._replace(netloc=netloc)


def server_address(url: str) -> str:
    """Return a server's address without the password its URL may hold."""
    try:
        parts = split_url(url)
    except ValueError:
        # What cannot be told apart may be a password.
        return MASK
    if "://" not in url:
        return MASK if url else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
