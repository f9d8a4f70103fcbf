"""The adapters there are, and those of users."""

import re
from pkgutil import resolve_name

from ingest.adapters.adapter import Adapter, BadChoice
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.binance import Binance
from ingest.exchanges.kis import Kis
from ingest.exchanges.upbit import Upbit
from ingest.process.packages import PACKAGES

BUILT_IN: dict[str, type[Adapter]] = {
    kind.name: kind for kind in (Upbit, Binance, Alpaca, Kis)
}
_OWN_FORM = re.compile(r"[\w.]+:[\w.]+")
_SOME_TEXT = re.compile(".+", re.DOTALL)
_RULES = (
    ("name", re.compile("[a-z][a-z0-9_-]{0,31}"), "must be of a-z, 0-9, _ and -"),
    ("venue", _SOME_TEXT, "must be there: it is a field of every trade"),
    ("prefix", re.compile("(?:Q[M-Z])?"), "must be from QM to QZ"),
    ("url", _SOME_TEXT, "must be there"),
)


def find_adapter(name: str) -> type[Adapter]:
    """Return an adapter by its name, or a user's as ``package.module:Class``.

    Raises BadChoice.
    """
    kind = BUILT_IN.get(name)
    if kind is not None:
        return kind
    if not _OWN_FORM.fullmatch(name):
        raise BadChoice(
            f"adapter {name!r}: must be one of {', '.join(BUILT_IN)}, or a class of "
            "yours as module:Class"
        )
    package = name.partition(":")[0].partition(".")[0]
    if package in PACKAGES:
        raise BadChoice(
            f"adapter {name}: {package} is a package of tickthrottle, which would hide "
            "yours: give it another name"
        )
    try:
        own = resolve_name(name)
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        raise BadChoice(f"adapter {name}: {type(error).__name__}: {error}") from None
    if not (isinstance(own, type) and issubclass(own, Adapter)):
        raise BadChoice(
            f"adapter {name}: is no class derived from ingest.adapters.adapter.Adapter"
        )
    for field, form, rule in _RULES:
        value = getattr(own, field)
        if not (isinstance(value, str) and form.fullmatch(value)):
            raise BadChoice(f"adapter {name}: {field} {value!r}: {rule}")
    return own
