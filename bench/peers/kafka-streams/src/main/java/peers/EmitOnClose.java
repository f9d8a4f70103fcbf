package peers;

import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Kafka Streams' own windows, given away when they close: the latest trade of each instrument.
 *
 * <p>What it promises: each instrument once per window, the newest of the trades that were in time;
 * each partition of the topic is a task and publishes its own part of a window. A window is
 * one message per partition, so a subscriber never knows whether he has all of it.
 *
 * <p>What it does not promise: a window closes when a later trade comes into the same
 * partition. In a partition that falls silent the last window never comes. A trade that comes
 * after its window has closed is dropped; only a metric counts it. The open window is in
 * memory, without a changelog: a restart loses it or, going on from the last commit, publishes
 * a part of it.
 */
public final class EmitOnClose {
    private static final Duration KEPT = Duration.ofSeconds(10);

    private EmitOnClose() {}

    public static void main(String[] words) {
        Options options = Options.of(words);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> trades =
                builder.stream(options.topic(), Consumed.with(Streams.BYTES, Streams.BYTES));
        KStream<Long, byte[]> closed = trades.groupByKey(Grouped.with(Streams.BYTES, Streams.BYTES))
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(Options.WINDOW_MS)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .reduce(Trade::newer, inMemory())
                .toStream()
                .map((instrument, trade) -> KeyValue.pair(instrument.window().end(), trade));
        // The windows' branch is older, so a record comes here after all it has closed.
        closed.merge(trades.map((isin, trade) -> KeyValue.pair(Publisher.NO_ROW, trade)))
                .process(() -> new Publisher(options.redisPort()));
        Streams.run(builder, options);
    }

    private static Materialized<byte[], byte[], WindowStore<Bytes, byte[]>> inMemory() {
        return Materialized.<byte[], byte[], WindowStore<Bytes, byte[]>>with(Streams.BYTES, Streams.BYTES)
                .withStoreType(BuiltInDslStoreSuppliers.IN_MEMORY)
                .withRetention(KEPT)
                .withLoggingDisabled()
                .withCachingDisabled();
    }

    /** Gathers a task's rows of a window; publishes them at the record that has closed it. */
    private static final class Publisher extends ContextualProcessor<Long, byte[], Void, Void> {
        static final Long NO_ROW = -1L;

        private final int port;
        private RedisWindows redis;
        private RedisWindows.Gathered rows;

        Publisher(int port) {
            this.port = port;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            super.init(context);
            redis = new RedisWindows(port);
            rows = new RedisWindows.Gathered(redis);
        }

        @Override
        public void process(Record<Long, byte[]> record) {
            if (record.key().equals(NO_ROW)) {
                Events.record();
                rows.publish();
            } else {
                rows.add(record.key(), record.value());
            }
        }

        @Override
        public void close() {
            redis.close();
        }
    }
}
