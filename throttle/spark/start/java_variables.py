"""What Java reads from the environment by itself, and what of it Spark's may have.

Pure.
"""

import re
from collections.abc import Mapping

VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Every Java takes options from these; from the last one, whatever its command says."""

# The heap and its collector are the job's: with less Spark does not start, and of two
# collectors Java takes none.
_OURS = re.compile(
    r"-X(?:mx|ms|mn)\S+"
    r"|-XX:(?:Max|Initial|Min)(?:HeapSize|RAMPercentage|RAM)=\S+"
    r"|-XX:\+Use\w+GC"
)


def without_heap(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables without options of the heap, and what was left out.

    Of the first only those that change; the second is in words, a variable each.
    """
    changed: dict[str, str] = {}
    left_out: list[str] = []
    for name in VARIABLES:
        options = environment.get(name, "").split()
        ours = [option for option in options if _OURS.fullmatch(option)]
        if ours:
            changed[name] = " ".join(o for o in options if o not in ours)
            left_out.append(f"{name}={' '.join(ours)}")
    return changed, left_out


def named(environment: Mapping[str, str]) -> list[str]:
    """Return which of the variables are set; what they say may be secret."""
    return [name for name in VARIABLES if environment.get(name)]
