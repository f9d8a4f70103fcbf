"""The schemas of what is relayed, registered under the names of its topics."""

from archive.topics.record_values import AvroValues, avro_schema_of
from archive.topics.relay_topics import ALL, RelayTopics
from ingest.schemas.avro_schema import AvroSchema
from ingest.schemas.registry import open_registry


def register(topics: RelayTopics, registry_url: str) -> AvroValues:
    """Register the schema of each topic's values, as ``<topic>-value``.

    Raises RegistryAway and RegistryRefused.
    """
    registry, schemas = open_registry(registry_url), {}
    for kind in ALL:
        text = avro_schema_of(kind)
        number = registry.register(f"{topics.topic(kind).topic}-value", text)
        schemas[kind] = number, AvroSchema(text)
    return AvroValues(schemas)
