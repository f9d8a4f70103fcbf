"""All trials of a server, and what came of each."""

import asyncio
from dataclasses import replace

from websockets.exceptions import InvalidStatus

from conformance.server.chain_checks import CHAIN
from conformance.server.judged_server import Broken, Server, Trying, Untried
from conformance.server.server_checks import STREAM
from conformance.server.status_checks import STATUSES
from conformance.server.token_checks import TOKENS
from conformance.trial_report import Trial

TRIALS = (*STREAM, *STATUSES, *CHAIN, *TOKENS)


async def judge_server(server: Server, only: str = "") -> list[Trial]:
    """Carry out all trials, or those of one clause, at once. Raises OSError."""
    chosen = [(c, trying) for c, trying in TRIALS if not only or only in c]
    return await asyncio.gather(*(_try(server, c, trying) for c, trying in chosen))


async def _try(server: Server, clauses: tuple[str, ...], trying: Trying) -> Trial:
    own = replace(server, found=[])
    left_out = ""
    try:
        await trying(own)
    except Broken as broken:
        own.found.append((broken.clause, str(broken)))
    except Untried as untried:
        left_out = str(untried)
    except (KeyError, TypeError, ValueError, TimeoutError, InvalidStatus) as error:
        own.found.append(("S-4", f"not as the specification says: {error!r}"))
    title = trying.__name__.replace("_", " ")
    return Trial(title, clauses, tuple(dict.fromkeys(own.found)), left_out)
