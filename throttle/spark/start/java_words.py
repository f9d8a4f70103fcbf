"""What Java takes from the environment, and what it said before it ended. Pure."""

import re
from collections.abc import Iterable, Mapping

VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Every Java takes options from these; from the last one, whatever its command says."""

# The heap and its collector are the job's: with less Spark does not start, and of two
# collectors Java takes none.
_OURS = re.compile(
    r"-X(?:mx|ms|mn)\S+"
    r"|-XX:(?:Max|Initial|Min)(?:HeapSize|RAMPercentage|RAM)=\S+"
    r"|-XX:\+Use\w+GC"
)

_MOST_CHARS = 400

# A stack trace's places, and lines that say nothing of what went wrong.
_NOISE = re.compile(
    r"\s+at |\s+\.\.\. \d+ more|WARNING: |Using Spark's default log4j|Setting default "
    r"log level|To adjust logging level|SLF4J: |\S+ \S+ WARN |\S+: line \d+: CMD|\s*$"
)
# What the variable says may have a password, as of a key store.
_PICKED_UP = re.compile(r"(Picked up \w+):.*")
_CAUSED = "Caused by: "
_NO_ADDRESS = "UnknownHostException"


def cause(lines: Iterable[str]) -> str:
    """Return in one line what the last lines of Java's output say of its end."""
    telling = [
        _PICKED_UP.sub(r"\1", " ".join(line.split()).removeprefix(": "))
        for line in lines
        if not _NOISE.match(line)
    ]
    # Of causes the last is the first thing that went wrong.
    causes = [line for line in telling if line.startswith(_CAUSED)]
    telling = [line for line in telling if line not in causes[:-1]]
    words = "; ".join(dict.fromkeys(telling))[:_MOST_CHARS]
    if _NO_ADDRESS in words:
        words += " (does this machine's name have an address? if not: SPARK_LOCAL_IP)"
    return words


def without_heap(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return variables that change without options of the heap; what was left out."""
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
