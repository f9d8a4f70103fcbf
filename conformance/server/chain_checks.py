"""Trials of a server: the chain of windows."""

from conformance.server.chain_rules import ChainRules
from conformance.server.judged_server import Server, Trials, Untried, must

CHAIN = Trials()


@CHAIN.of("S-51", "S-52", "S-53", "S-54")
async def the_chain_of_windows_is_whole(server: Server) -> None:
    async with server.line() as line:
        ack = await line.ask(op="subscribe", keys=["*"], chain=True)
        line.rules.chain = rules = ChainRules(has_all="market" not in line.welcome)
        last, _ = await line.snapshot()
        if "chain" not in ack and "chain" not in last:
            raise Untried("the server has no chain")
        must(ack.get("chain") is True, "S-51", f"{ack!s:.200}")
        if rules.place is None:
            raise Untried("the store of the server has no links")
        known = rules.place
        for _ in range(max(3, server.windows)):
            await line.until("update")
    since = {"epoch": known.epoch, "offset": known.offset}
    for name, begun in ((known.epoch, known), ("nowhere", None)):
        async with server.line() as line:
            wanted = {**since, "epoch": name}
            await line.ask(op="subscribe", keys=["*"], since=wanted, chain=known.offset)
            line.rules.chain = rules = ChainRules(begun, has_all=False)
            await line.snapshot()
            await line.until("update")
            must(rules.place != begun, "S-53", f"no hash is told after {wanted}")
