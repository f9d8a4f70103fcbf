"""What would end a run is said before anything of it is started."""

import socket
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from cli.local.ports_and_memory import RunFailed
from cli.local.settings import RunSettings
from ingest.adapters.adapter import AdapterFault
from ingest.adapters.exchange_http import unreachable
from ingest.exchanges.known import find_adapter
from ingest.settings import TopicSettings
from ingest.tradelog.contract import LogAway, LogUnusable
from throttle.spark.java import NoJava, choose_java
from throttle.window.decoder import NoDecoder, find_decoder
from tickthrottle_client.kafka_client import open_topic
from tickthrottle_client.loopback import is_loopback

_CONNECTED_WITHIN_S = 10.0
_PORTS = {"ws": 80, "wss": 443}

_LASTING = (AdapterFault, NoJava, NoDecoder, LogAway, LogUnusable)


def check_parts(
    settings: RunSettings, java_home: str | None, log: TopicSettings | None
) -> None:
    """Check whatever the parts need that can be known. Raises RunFailed.

    A tape was looked at by the command, which knows its form.

    ``log`` says where the topic is that a run follows, None if it has its own log.
    """
    try:
        choose_java(Path(java_home) if java_home else None)
        if settings.exchange is not None:
            _check_exchange(settings.exchange)
        if settings.follows_log:
            find_decoder(settings.decoder or "", settings.schema_registry_url or "")
        topic = None if log is None else log.topic()
        if topic is not None:
            open_topic(topic)
    except _LASTING as error:
        raise RunFailed(str(error)) from None


def _check_exchange(name: str) -> None:
    """Check that somebody listens where an exchange's trades come from.

    Where a proxy leads there, it is left to the feed. Raises AdapterFault.
    """
    kind = find_adapter(name)
    parts = urlsplit(kind.url)
    host = parts.hostname
    if host is None or parts.scheme not in _PORTS:
        return
    has_proxy = urllib.request.getproxies().keys() - {"no"}
    if has_proxy and not (is_loopback(host) or urllib.request.proxy_bypass(host)):
        return
    place = host, parts.port or _PORTS[parts.scheme]
    try:
        socket.create_connection(place, _CONNECTED_WITHIN_S).close()
    except OSError as error:
        words = unreachable(host, error)
        raise AdapterFault(f"feed {kind.name}: {words}") from None
