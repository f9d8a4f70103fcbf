"""Items that wait for a reader who is slower than the stream. Pure."""

from typing import Any

from tickthrottle_client.item_sums import SUMS, traded

Item = dict[str, Any]


def folded(before: Item, item: Item) -> Item:
    """Return an item, newer than one before, that stands for the trades of both.

    Sums that nobody knows of one are left out of both.
    """
    if not before["trades"]:
        return item
    rest = {name: value for name, value in item.items() if name not in SUMS}
    if not item["trades"]:
        sums = {name: before[name] for name in SUMS if name in before}
        one = traded(before)
        if not sums and one is not None:
            # It said them by its own price and size.
            sums = one._asdict()
        own = {name: before[name] for name in ("window",) if name in before}
        return {**rest, **own, **sums, "trades": before["trades"]}
    known, more = traded(before), traded(item)
    rest["trades"] = before["trades"] + item["trades"]
    if known is None or more is None:
        return rest
    total = known.fold(more)._asdict().items()
    return rest | {name: value for name, value in total if value is not None}


class WaitingItems:
    """Holds one item of each instrument: the newest, for all trades since the last.

    Of a group it holds the newest figures. Who has waited longest comes first.
    """

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        """Add an item that is newer than all before of its instrument."""
        key = item.get("isin") or item["group"]
        before = self._items.get(key)
        if before is not None and "group" not in item:
            item = folded(before, item)
        self._items[key] = item

    def take(self) -> Item:
        """Return the item that has waited longest. Raises KeyError if there is none."""
        key = next(iter(self._items), "")
        return self._items.pop(key)
