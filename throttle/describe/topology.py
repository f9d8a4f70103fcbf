"""The pipeline describes itself: what runs with the settings in force, and where.

Everything that can be is taken from the code that does it: keys and what they hold
from ``Keys``, settings from their class, stages from the first lines of their
modules, the order of trades from ``trade_order.ORDER``. What is added there is here.
It is written as text, or as a flowchart that Mermaid draws. ``info`` is the log's
identity, None if it could not be asked.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from types import ModuleType
from typing import NamedTuple

from ingest.process.docstrings import (
    Key,
    Part,
    keys_of,
    paragraph,
    settings_of,
    summary,
)
from ingest.process.redact import server_address
from ingest.redis_keys import Keys
from ingest.tradelog import redis_log_reader
from ingest.tradelog.contract import LogInfo, partition_of
from throttle.contract import cut
from throttle.contract.trade_order import ORDER
from throttle.publish import publisher
from throttle.settings import ThrottleSettings
from throttle.spark import source
from throttle.window import batch, conflate
from tickthrottle_client.log_v1 import stream_key

_STAGES: tuple[ModuleType, ...] = (source, conflate, batch, publisher)
"""What a trade goes through, in this order."""

_THEIR_OWN = "by whoever appends; the feeds that come with this"

_WIDTH = 88

# What means something in a label, and Mermaid's own entities for it.
_ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
)


def to_text(settings: ThrottleSettings, info: LogInfo | None, *others: Part) -> str:
    """Write the job that would run for people, and other parts after it."""
    return "\n".join(_text_lines([*_parts(settings, info), *others]))


def to_mermaid(
    settings: ThrottleSettings,
    info: LogInfo | None,
    products: Sequence[Part] = (),
    archive: Part | None = None,
) -> str:
    """Write the job that would run as a flowchart, from the feeds to the gateways.

    ``products`` of the analytics job and the ``archive`` read what is drawn.
    """
    lines = [*_mermaid_lines(settings, info), *_products_lines(products)]
    if archive is not None:
        place = dict(archive.items)["place"]
        lines.append(f"  archive[({_label(archive.title, place)})]")
        lines.append("  key_windows --> archive")
        if any(product.name == "bars" for product in products):
            lines.append("  bars -->|bars| archive")
        lines.append("  archive --> gateways")
    return "\n".join(lines)


class _Log(NamedTuple):
    kind: str
    address: str
    partitions: int
    streams: Sequence[str]
    placed_by: str


def _log(settings: ThrottleSettings, info: LogInfo | None) -> _Log:
    partitions = settings.partitions if info is None else info.partitions
    placed_by = summary(partition_of.__doc__).removeprefix("Return ")
    if settings.trade_log == "redis":
        return _Log(
            summary(redis_log_reader.__doc__),
            server_address(settings.redis_url),
            partitions,
            [stream_key(settings.namespace, p) for p in range(partitions)],
            placed_by,
        )
    # Loaded where it is needed only.
    from ingest.kafka import kafka_log_reader

    return _Log(
        summary(kafka_log_reader.__doc__),
        settings.kafka_servers,
        partitions,
        [f"{settings.kafka_topic}-{p}" for p in range(partitions)],
        f"{_THEIR_OWN}: {placed_by}",
    )


def _stages() -> dict[str, str]:
    return {m.__name__.rpartition(".")[2]: summary(m.__doc__) for m in _STAGES}


def _grouping() -> str:
    return summary(conflate.create_conflate.__doc__).removeprefix("Return ")


def _parts(settings: ThrottleSettings, info: LogInfo | None) -> Iterator[Part]:
    log, is_kafka = _log(settings, info), settings.trade_log == "kafka"
    if is_kafka:
        place = [("topic", settings.kafka_topic)]
    else:
        place = [
            ("namespace", settings.namespace),
            ("streams", ", ".join(log.streams)),
        ]
    told_by = (
        "as configured, the log itself could not be asked"
        if info is None
        else f"the log's own ({info.log_id})"
    )
    only = ", ".join(map(str, settings.only()))
    yield _part(
        "Trade log",
        ("kind", log.kind),
        ("server", log.address),
        *place,
        ("partitions", f"{log.partitions}, {told_by}"),
        (
            "read",
            f"{f'the partitions {only}' if only else 'all partitions'}, by this job",
        ),
        ("placing", log.placed_by),
    )
    # With Redis one clock stamps entries and ends windows.
    margin_ms = settings.kafka_margin_ms if is_kafka else 0
    yield _part(
        "Windows",
        ("length", f"{settings.window_ms} ms"),
        ("cut", paragraph(cut.__doc__, 1)),
        ("margin", f"{margin_ms} ms after a window's end"),
    )
    yield _part("Stages", *_stages().items())
    # The payload and what follows it is carried along, it decides nothing.
    yield _part("Latest", ("grouping", _grouping()), ("order", ", ".join(ORDER)))
    yield _part(
        "Keys and channels",
        ("server", server_address(settings.redis_url)),
        *((key.key, key.holds) for key in _keys(settings)),
    )
    yield _part(
        "Settings",
        *(
            (f"{setting.variable} = {setting.value or 'not set'}", setting.means)
            for setting in settings_of(settings)
        ),
    )


def _part(title: str, *items: tuple[str, str]) -> Part:
    return Part(title.lower().replace(" ", "_"), title, items)


def _keys(settings: ThrottleSettings) -> Iterator[Key]:
    return keys_of(Keys(settings.namespace), settings.job)


def _text_lines(parts: Sequence[Part]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if number:
            yield ""
        yield part.title
        for name, text in part.items:
            yield from wrap(
                f"{name}: {text}" if text else name,
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="      ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _mermaid_lines(settings: ThrottleSettings, info: LogInfo | None) -> Iterator[str]:
    log, stages = _log(settings, info), _stages()
    first, last = log.streams[0], log.streams[-1]
    shown = first if first == last else f"{first} to {last}"
    configured = " (as configured)" if info is None else ""
    title = f"trade log, {log.partitions} partitions{configured}"
    yield "flowchart LR"
    yield f"  feeds({_label('feeds', log.placed_by)})"
    yield f"  log[({_label(title, shown, log.address)})]"
    yield "  feeds -->|append| log"
    title = _label(f"throttle job, windows of {settings.window_ms} ms")
    yield f"  subgraph job[{title}]"
    yield "    direction LR"
    decides = {
        "source": paragraph(cut.__doc__, 1),
        "conflate": f"{_grouping()} Order: {', '.join(ORDER)}.",
    }
    for name, does in stages.items():
        yield f"    {name}[{_label(name, does, decides.get(name, ''))}]"
    yield "    " + " --> ".join(stages)
    yield "  end"
    names = list(stages)
    yield f"  log -->|read| {names[0]}"
    for key in _keys(settings):
        label = _label(key.key, key.holds)
        shape = f"([{label}])" if key.kind == "channel" else f"[({label})]"
        yield f"  key_{key.name}{shape}"
        yield f"  {names[-1]} --> key_{key.name}"
    yield f"  gateways({_label('gateways')})"
    for name in ("updates", "windows", "last"):
        yield f"  key_{name} --> gateways"


def _products_lines(products: Sequence[Part]) -> Iterator[str]:
    if not products:
        return
    yield f"  subgraph analytics[{_label('analytics job')}]"
    yield "    direction LR"
    for part in products:
        items = dict(part.items)
        label = _label(part.name, items["windows"], items["state"])
        yield f"    {part.name}[{label}]"
    yield "  end"
    for part in products:
        yield f"  log -->|read| {part.name}"
        yield f"  {part.name} --> gateways"


def _label(*texts: str) -> str:
    """Return a quoted label of some lines; Mermaid breaks the long ones."""
    lines = (text.translate(_ENTITIES) for text in texts if text)
    return f'"{"<br/>".join(lines)}"'
