"""The tables of sale conditions, the product's and users'.

Decoders of users load this in Spark's workers: it loads no pydantic.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from ingest.conditions.rule_table import BadTable, Last, RuleTable, parse_table
from tickthrottle_client.updates_v1 import Updates

_FOLDER = Path(__file__).parent
_NAME = re.compile("[a-z0-9_]+", re.ASCII)
_MOST_BYTES = 2**20

TABLES = tuple(sorted(path.stem for path in _FOLDER.glob("*.csv")))
"""The names of our own tables."""


@lru_cache(maxsize=16)
def find_table(name: str) -> RuleTable:
    """Return a table of ours by name, or a user's by its path. Raises BadTable."""
    if _NAME.fullmatch(name) and name not in TABLES:
        raise BadTable(
            f"{name!r}: is no table; there are {', '.join(TABLES)}, and a file of your "
            "own is named with its folder, such as ./conditions.csv"
        )
    path = _FOLDER / f"{name}.csv" if name in TABLES else Path(name)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise BadTable(f"has over {_MOST_BYTES} bytes")
        return parse_table(name, content.decode("utf-8-sig"))
    except OSError as error:
        raise BadTable(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadTable(f"{name}: must be UTF-8") from None
    except BadTable as error:
        raise BadTable(f"{name}: {error}") from None


def updates_of(table: str, codes: Any, tape: Any = "") -> str:
    """Return the field ``updates`` of a trade with these sale conditions.

    For decoders, which see one entry at a time: a condition under which a trade sets
    the last price only at times (``first_only``, ``own_market``) does not set it here.
    ``codes`` are a list, or text with blanks or commas between them. An unknown code
    counts for the volume alone. Raises ValueError for an unknown table or tape.
    """
    rules = find_table(table)
    rule = rules.rule_of(codes, tape)
    if rule != rules.rule_of("") and rules.plan_of(tape) is None:
        raise BadTable(f"tape {tape!r}: {rules.tape_rule}")
    return Updates(rule.last == Last.YES, rule.range, rule.volume).encode()
