"""The command that makes the topic for trades, or says what it is like."""

import typer

from cli.commands.entry import fail, failing_on
from cli.commands.setting_options import options_of
from ingest.kafka.topic_plan import TopicPlan
from ingest.settings import IngestSettings


@options_of(TopicPlan, *TopicPlan.model_fields)
@options_of(IngestSettings, "partitions", "kafka_servers", "kafka_topic")
def topic(settings: IngestSettings, plan: TopicPlan) -> None:
    """Create the topic that is the trade log, or describe the one that exists.

    A new topic is stamped by its brokers and never compacted. An existing one stays
    as it is; a warning names each setting that does not fit a trade log.
    """
    from ingest.kafka.topic import create_topic, look_at
    from ingest.tradelog.contract import LogAway, LogUnusable

    settings = settings.model_copy(update={"trade_log": "kafka"})
    with failing_on(LogUnusable):
        place = settings.topic()
        if place is None:
            return
        try:
            was_made = create_topic(place, settings.partitions, plan)
            state = look_at(place)
        except LogAway as error:
            words = "start one, or set TICKTHROTTLE_KAFKA_SERVERS to where it is"
            fail(f"{error}; {words}")
    if state is None:
        fail(f"{place}: was deleted while it was looked at")
    typer.echo(f"{place}: {'created' if was_made else 'exists'}")
    for line in state.lines():
        typer.echo(f"  {line}")
    for warning in state.warnings():
        typer.echo(f"  warning: {warning}")
