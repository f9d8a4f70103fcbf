"""A job whose windows have links, and a gateway that serves them."""

from tests.gateway.servers import Gateway
from throttle.testing.driver import ThrottleDriver

W = 2_000
A, B = "KR7005930003", "KR7000660001"


class Market:
    """A job whose windows are published one by one, and a gateway."""

    def __init__(self, driver: ThrottleDriver, gateway: Gateway) -> None:
        self.driver = driver
        self.gateway = gateway
        self.windows = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.gateway.port}/v1/stream"

    def trade(self, *isins: str, late: bool = False) -> None:
        """Publish the next window, with trades of these."""
        at_ms = self.windows * W
        for number, isin in enumerate(isins):
            for more in range(1 + number):
                self.driver.trade(
                    isin,
                    f"{self.windows + 1}.50",
                    at_ms=at_ms + 10 + more,
                    time_ms=1 if late else None,
                    side="B",
                )
        self.windows += 1
        self.driver.turn_clock(self.windows * W)
