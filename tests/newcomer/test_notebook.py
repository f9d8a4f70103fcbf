"""The notebook of the documents shows prices, from a kernel of its own."""

import json
from pathlib import Path

import pytest
import redis

from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.newcomer.notebooks import NOTEBOOK, printed, run_notebook


@pytest.mark.redis
def test_each_cell_prints_what_it_says(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Top-level ``await``, and a data frame with every digit."""
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900.50", 1))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(publisher.offset)
        stream, past = printed(run_notebook(tmp_path, gateway.port))
    assert stream == "71900.50\n"
    assert "71900.50" in past


def test_the_notebook_was_run_before_it_was_kept() -> None:
    """Who reads it without running it sees what it prints."""
    stream, past = printed(json.loads(NOTEBOOK.read_text("utf-8")))
    assert float(stream) > 0
    assert "window" in past
