"""`make kafka`: a Kafka broker in the foreground, until Ctrl-C."""

import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.entry import fail
from tests.kafka_broker.broker import Broker, BrokerFailed, BrokerMissing


def main(
    port: Annotated[int, typer.Option(min=1024, max=65534)] = 9092,
    state_dir: Annotated[Path, typer.Option()] = Path(".tickthrottle"),
    heap_mb: Annotated[int, typer.Option(min=128)] = 512,
) -> None:
    """Run a broker on loopback; clients with credentials use the next port."""
    # As an exception, so that it also ends a start that is under way.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = (state_dir / f"kafka-{port}").absolute()
    began = time.monotonic()
    try:
        with Broker(folder, port, port + 1, heap_mb=heap_mb, is_quick=False) as broker:
            _say(f"Kafka is ready after {time.monotonic() - began:.1f} s")
            _say(f"  {broker.servers}  without credentials")
            _say(
                f"  {broker.sasl_servers}  SASL_PLAINTEXT, mechanism PLAIN, user "
                f"{broker.user}, password {broker.password}"
            )
            _say(f"  topics stay in {folder}; Ctrl-C stops")
            while broker.exit_code() is None:
                time.sleep(0.1)
            fail(
                f"the broker ended (exit code {broker.exit_code()}): {broker.log_file}"
            )
    except (BrokerFailed, BrokerMissing) as error:
        fail(str(error))
    except KeyboardInterrupt:
        _say("stopped")


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


if __name__ == "__main__":
    typer.run(main)
