package peers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** Runs a topology from the oldest record on until the process is told to end. */
final class Streams {
    static final Serde<byte[]> BYTES = Serdes.ByteArray();

    private Streams() {}

    static void run(StreamsBuilder builder, Options options) {
        Properties properties = properties(options);
        KafkaStreams streams = new KafkaStreams(builder.build(properties), properties);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                Events.ready();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            Events.late(dropped(streams));
            Events.ended();
            streams.close(Duration.ofSeconds(5));
        }));
        streams.start();
    }

    /** Return how many records were dropped for being late, of all tasks. */
    private static long dropped(KafkaStreams streams) {
        double dropped = 0;
        for (Metric metric : streams.metrics().values()) {
            if (metric.metricName().name().equals("dropped-records-total")) {
                dropped += (Double) metric.metricValue();
            }
        }
        return (long) dropped;
    }

    private static Properties properties(Options options) {
        Properties all = new Properties();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, Options.freshGroup());
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.servers());
        all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, options.threads());
        all.put(StreamsConfig.STATE_DIR_CONFIG, scratch());
        // Live trades at once, a backlog in large pieces.
        all.put(StreamsConfig.POLL_MS_CONFIG, 10);
        all.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 5_000);
        all.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        all.put(consumer(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        all.put(consumer(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5_000);
        all.put(consumer(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG), 10);
        all.put(consumer(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG), 4 << 20);
        // By default, windows that are over are given away once a second.
        all.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        return all;
    }

    private static String consumer(String name) {
        return StreamsConfig.consumerPrefix(name);
    }

    private static String scratch() {
        try {
            return Files.createTempDirectory("streams-").toString();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
