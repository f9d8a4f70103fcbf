"""Instruments by number: a list is faster than a dictionary. Pure."""


class InstrumentNumbers(dict[str, int]):
    """The number of each ISIN that was ever published, from 0, in order of arrival.

    Asking for an ISIN numbers it; ``get`` does not. A number never changes, and what
    strangers ask for is not numbered, so there are as many as instruments were traded.
    """

    def __missing__(self, isin: str) -> int:
        """Number an ISIN that was never published before."""
        self[isin] = number = len(self)
        return number
