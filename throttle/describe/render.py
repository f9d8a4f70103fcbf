"""A topology on paper: as text, or as a flowchart that Mermaid draws. Pure."""

from collections.abc import Iterator
from textwrap import wrap

from throttle.describe.topology import Key, Topology

_WIDTH = 88


def to_text(topology: Topology) -> str:
    """Write a topology for people."""
    return "\n".join(_text_lines(topology))


def to_mermaid(topology: Topology) -> str:
    """Write a topology as a Mermaid flowchart, from the feeds to the gateways."""
    return "\n".join(_mermaid_lines(topology))


def _parts(topology: Topology) -> list[tuple[str, list[tuple[str, str]]]]:
    known = (
        f"the log's own ({topology.log_id})"
        if topology.is_actual
        else "as configured, the log itself could not be asked"
    )
    return [
        (
            "Trade log",
            [
                ("kind", topology.log),
                ("server", topology.address),
                *(_topic_or_streams(topology)),
                ("partitions", f"{topology.partitions}, {known}"),
                ("read", _read(topology)),
                ("placing", topology.placed_by),
            ],
        ),
        (
            "Windows",
            [
                ("length", f"{topology.window_ms} ms"),
                ("cut", topology.cut),
                ("margin", f"{topology.margin_ms} ms after a window's end"),
            ],
        ),
        ("Stages", [(stage.name, stage.does) for stage in topology.stages]),
        (
            "Latest",
            [("grouping", topology.grouping), ("order", ", ".join(topology.order))],
        ),
        (
            "Keys and channels",
            [
                ("server", topology.redis),
                *((key.key, key.holds) for key in topology.keys),
            ],
        ),
        (
            "Settings",
            [
                (f"{one.variable} = {one.value or 'not set'}", one.means)
                for one in topology.settings
            ],
        ),
    ]


def _topic_or_streams(topology: Topology) -> list[tuple[str, str]]:
    if topology.topic is not None:
        return [("topic", topology.topic)]
    streams = ", ".join(topology.streams)
    return [("namespace", topology.namespace), ("streams", streams)]


def _read(topology: Topology) -> str:
    if not topology.only:
        return "all partitions, by this job"
    return f"the partitions {', '.join(map(str, topology.only))}, by this job"


def _text_lines(topology: Topology) -> Iterator[str]:
    for number, (title, items) in enumerate(_parts(topology)):
        if number:
            yield ""
        yield title
        for name, text in items:
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
