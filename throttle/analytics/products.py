"""The products of the analytics job; a further one is a folder and a line here."""

from throttle.analytics.bars.bar_product import BARS
from throttle.analytics.bursts.burst_product import BURSTS
from throttle.analytics.movers.movers_product import MOVERS
from throttle.analytics.moves.moves_product import MOVES

ALL = (BARS, MOVERS, BURSTS, MOVES)

BY_NAME = {product.name: product for product in ALL}
