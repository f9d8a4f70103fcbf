"""What Java said before it ended, as the reason of a message.

Pure.
"""

import re
from collections.abc import Iterable

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
    """Return in one line what Java said of its end; empty if it said nothing.

    ``lines`` are the last ones of its output, or those of an exception of Java's.
    """
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
