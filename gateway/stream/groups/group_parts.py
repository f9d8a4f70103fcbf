"""The figures of a group in a window that came in parts, added up. Pure."""

import json

import orjson

from throttle.contract.group import (
    CHANGE_PLACES,
    MEAN_PLACES,
    Group,
    GroupFigures,
    units,
)


def add_parts(one: Group, other: Group) -> Group:
    """Return the figures of two parts of one window together.

    Sums are exact. An instrument that is in both parts counts twice. The mean change is
    weighted by the instruments that have one, and as exact as the means of the parts.
    """
    window, sum_ = _read(one)
    _, more = _read(other)
    for name in GroupFigures.__slots__:
        setattr(sum_, name, getattr(sum_, name) + getattr(more, name))
    return sum_.encode(one.key, window)


def window_of(group: Group) -> int:
    """Return the end of the window that a group's figures are of."""
    return int(orjson.loads(group.body)["window"])


def _read(group: Group) -> tuple[int, GroupFigures]:
    # As text: volume and value may have more digits than a double keeps.
    said = json.loads(group.body, parse_float=str, parse_int=str)
    figures = GroupFigures(
        int(said["instruments"]),
        int(said["advancing"]),
        int(said["declining"]),
        int(said["unchanged"]),
        int(said["trades"]),
        units(said["volume"]),
        units(said["value"]),
    )
    mean = said["mean_change_pct"]
    if mean is not None:
        finer = 10 ** (CHANGE_PLACES - MEAN_PLACES)
        figures.changes = int(mean.replace(".", "")) * finer * figures.priced
    return int(said["window"]), figures
