"""The command that makes the topic for trades, or says what it is like."""

from datetime import timedelta
from typing import Annotated

import typer

from deploy.entry import KafkaServers, KafkaTopicName, fail, read_settings


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(topic)


def topic(
    partitions: Annotated[
        int | None, typer.Option(help="Of a new topic. [default: 4]")
    ] = None,
    replication: Annotated[
        int, typer.Option(help="Brokers that hold each partition of a new topic.")
    ] = 1,
    retention_s: Annotated[
        int, typer.Option(help="How long a new topic keeps trades, seconds.")
    ] = 86_400,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
) -> None:
    """Create the topic that is the trade log, or tell what is there.

    A new topic is stamped by its brokers and never compacted. An existing one stays
    as it is; what does not fit a trade log is told as a warning.
    """
    from deploy.arguments import BadArgument, check_bounds
    from ingest.kafka_topic import TopicPlan, create_topic, look_at
    from ingest.log import LogAway, LogUnusable
    from ingest.settings import IngestSettings

    settings = read_settings(
        IngestSettings,
        log="kafka",
        partitions=partitions,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
    )
    try:
        check_bounds("replication", replication, 1, 100)
        check_bounds("retention_s", retention_s, 60, 1_000_000_000)
        retention = timedelta(seconds=retention_s)
        place = settings.topic()
        if place is None:
            return
        plan = TopicPlan(settings.partitions, replication, retention)
        was_made = create_topic(place, plan)
        state = look_at(place)
    except BadArgument as error:
        fail(str(error), code=2)
    except LogAway as error:
        fail(f"{error}; start one, or set TICKTHROTTLE_KAFKA_SERVERS to where it is")
    except LogUnusable as error:
        fail(str(error))
    if state is None:
        fail(f"{place}: was deleted while it was looked at")
    typer.echo(f"{place}: {'created' if was_made else 'exists'}")
    for line in state.lines():
        typer.echo(f"  {line}")
    for warning in state.warnings():
        typer.echo(f"  warning: {warning}")
