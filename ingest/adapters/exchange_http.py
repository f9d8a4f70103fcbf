"""The few requests over HTTP that an adapter needs: its list, a connection's key."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from urllib.parse import urlsplit

from ingest.adapters.adapter import AdapterFault
from ingest.process.direct_http import open_url

MAX_ANSWER_BYTES = 64 * 2**20
_TIMEOUT_S = 10.0
_RATE_LIMITS = {418, 429}
_SHOWN_CHARS = 200


def fetch(address: str, fields: Mapping[str, str] | None = None) -> bytes:
    """Return what is at an address; with ``fields`` they are posted as JSON.

    Raises AdapterFault with one sentence, which never has a field's value.
    """
    parts = urlsplit(address)
    host = parts.hostname or address
    if parts.scheme not in ("http", "https"):
        raise AdapterFault(f"{address}: must begin with http:// or https://")
    headers = {"Accept": "application/json", "User-Agent": "tickthrottle"}
    body = None
    if fields is not None:
        body = json.dumps(fields).encode()
        headers["Content-Type"] = "application/json; charset=utf-8"
    request = urllib.request.Request(address, body, headers)
    try:
        with open_url(request, _TIMEOUT_S) as response:
            answer = response.read(MAX_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            told = error.read(4096).decode("utf-8", "replace")
        for secret in filter(None, (fields or {}).values()):
            told = told.replace(secret, "...")
        raise AdapterFault(
            f"{host} refuses with HTTP {error.code}: {_words(told)[:_SHOWN_CHARS]}",
            can_pass=error.code >= 500,
            is_rate_limit=error.code in _RATE_LIMITS,
        ) from None
    except urllib.error.URLError as error:
        raise unreachable(host, error.reason) from None
    except (OSError, HTTPException) as error:
        raise unreachable(host, error) from None
    if len(answer) > MAX_ANSWER_BYTES:
        raise AdapterFault(f"{host}: answered with over {MAX_ANSWER_BYTES} bytes")
    return answer


def unreachable(host: str, error: object) -> AdapterFault:
    """Return the fault of a host that cannot be reached."""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    words = _words(why) or type(error).__name__
    return AdapterFault(f"{host} cannot be reached: {words}", can_pass=True)


def _words(text: str) -> str:
    return " ".join(text.split())
