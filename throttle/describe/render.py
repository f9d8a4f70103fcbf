"""A topology on paper: as text, or as a flowchart that Mermaid draws. Pure."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ingest.process.docstrings import Key, Part
from throttle.describe.topology import Topology

_WIDTH = 88


def to_text(topology: Topology, *others: Part) -> str:
    """Write a topology for people, and other parts of the pipeline after it."""
    return "\n".join(_text_lines([*_parts(topology), *others]))


def to_mermaid(
    topology: Topology, products: Sequence[Part] = (), archive: Part | None = None
) -> str:
    """Write a topology as a Mermaid flowchart, from the feeds to the gateways.

    ``products`` of the analytics job and the ``archive`` read what is drawn.
    """
    lines = [*_mermaid_lines(topology), *_products_lines(products)]
    if archive is not None:
        lines.append(f"  archive[({_label(archive.title, _item(archive, 'place'))})]")
        lines.append("  key_windows --> archive")
        if any(product.name == "bars" for product in products):
            lines.append("  bars -->|bars| archive")
        lines.append("  archive --> gateways")
    return "\n".join(lines)


def _products_lines(products: Sequence[Part]) -> Iterator[str]:
    if not products:
        return
    yield f"  subgraph analytics[{_label('analytics job')}]"
    yield "    direction LR"
    for part in products:
        items = (_item(part, name) for name in ("windows", "state"))
        yield f"    {part.name}[{_label(part.name, *items)}]"
    yield "  end"
    for part in products:
        yield f"  log -->|read| {part.name}"
        yield f"  {part.name} --> gateways"


def _item(part: Part, name: str) -> str:
    return dict(part.items)[name]


def _parts(topology: Topology) -> list[Part]:
    known = (
        f"the log's own ({topology.log_id})"
        if topology.is_actual
        else "as configured, the log itself could not be asked"
    )
    return [
        _part(
            "Trade log",
            ("kind", topology.log),
            ("server", topology.address),
            *(_topic_or_streams(topology)),
            ("partitions", f"{topology.partitions}, {known}"),
            ("read", _read(topology)),
            ("placing", topology.placed_by),
        ),
        _part(
            "Windows",
            ("length", f"{topology.window_ms} ms"),
            ("cut", topology.cut),
            ("margin", f"{topology.margin_ms} ms after a window's end"),
        ),
        _part("Stages", *((stage.name, stage.does) for stage in topology.stages)),
        _part(
            "Latest",
            ("grouping", topology.grouping),
            ("order", ", ".join(topology.order)),
        ),
        _part(
            "Keys and channels",
            ("server", topology.redis),
            *((key.key, key.holds) for key in topology.keys),
        ),
        _part(
            "Settings",
            *(
                (f"{one.variable} = {one.value or 'not set'}", one.means)
                for one in topology.settings
            ),
        ),
    ]


def _part(title: str, *items: tuple[str, str]) -> Part:
    return Part(title.lower().replace(" ", "_"), title, items)


def _topic_or_streams(topology: Topology) -> list[tuple[str, str]]:
    if topology.topic is not None:
        return [("topic", topology.topic)]
    streams = ", ".join(topology.streams)
    return [("namespace", topology.namespace), ("streams", streams)]


def _read(topology: Topology) -> str:
    if not topology.only:
        return "all partitions, by this job"
    return f"the partitions {', '.join(map(str, topology.only))}, by this job"


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


def _mermaid_lines(topology: Topology) -> Iterator[str]:
    streams = topology.streams
    shown = streams[0] if len(streams) == 1 else f"{streams[0]} to {streams[-1]}"
    known = "" if topology.is_actual else " (as configured)"
    yield "flowchart LR"
    yield f"  feeds({_label('feeds', topology.placed_by)})"
    yield (
        "  log[("
        + _label(
            f"trade log, {topology.partitions} partitions{known}",
            shown,
            topology.address,
        )
        + ")]"
    )
    yield "  feeds -->|append| log"
    title = _label(f"throttle job, windows of {topology.window_ms} ms")
    yield f"  subgraph job[{title}]"
    yield "    direction LR"
    decides = {
        "source": topology.cut,
        "conflate": f"{topology.grouping} Order: {', '.join(topology.order)}.",
    }
    for stage in topology.stages:
        label = _label(stage.name, stage.does, decides.get(stage.name, ""))
        yield f"    {stage.name}[{label}]"
    yield "    " + " --> ".join(stage.name for stage in topology.stages)
    yield "  end"
    yield f"  log -->|read| {topology.stages[0].name}"
    for key in topology.keys:
        yield f"  key_{key.name}{_shape(key)}"
        yield f"  {topology.stages[-1].name} --> key_{key.name}"
    yield f"  gateways({_label('gateways')})"
    for name in ("updates", "windows", "last"):
        yield f"  key_{name} --> gateways"


def _shape(key: Key) -> str:
    label = _label(key.key, key.holds)
    return f"([{label}])" if key.kind == "channel" else f"[({label})]"


def _label(*texts: str) -> str:
    """Return a quoted label of some lines; Mermaid breaks the long ones."""
    return '"' + "<br/>".join(_escape(text) for text in texts if text) + '"'


def _escape(text: str) -> str:
    """Write what means something in a label as Mermaid's own entities."""
    for character, entity in (
        ("#", "#35;"),
        ('"', "#quot;"),
        ("<", "#lt;"),
        (">", "#gt;"),
        ("`", "#96;"),
    ):
        text = text.replace(character, entity)
    return text
