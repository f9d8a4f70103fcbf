"""Has Java write down the classes of the broker: each later start takes less work."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kafka import make_topic, produce, read
from tests.kafka_broker.broker import CLASSES, Broker


def main() -> None:
    """Use a broker as tests do; its Java writes the file as it ends."""
    CLASSES.unlink(missing_ok=True)
    with TemporaryDirectory() as name:
        Broker(Path(name)).format()
        written = Path(name) / CLASSES.name
        options = [f"-XX:AOTCacheOutput={written}", "-Xlog:aot*=off"]
        broker = Broker(Path(name), more_java_options=options)
        with broker:
            topic = make_topic(broker)
            produce(broker, topic, [b"trade"])
            assert read(broker, topic) == [b"trade"]
            broker.stop(within_s=300)
        CLASSES.write_bytes(written.read_bytes())


if __name__ == "__main__":
    main()
