package peers;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Kafka Streams with a processor written by hand: a map per window, and a timer at its end.
 *
 * <p>What it promises: a window is published at the first later trade of its partition or,
 * in silence, {@value #MARGIN_MS} ms after its end by the program's own clock; so the last one
 * comes too. A trade that comes after its window is shown with the next one of its partition.
 * A window is one message per partition.
 *
 * <p>What it does not promise: trades that the program reads more than the margin after the
 * window's end, for a pause or a broker that is behind, are in the next window, unmarked. An
 * older trade that is alone in its window is shown again, so a price may go back. The open
 * window is a map in memory: a restart loses it.
 */
public final class AlignedPunctuator {
    private static final long MARGIN_MS = 50;

    private AlignedPunctuator() {}

    public static void main(String[] words) {
        Options options = Options.of(words);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(options.topic(), Consumed.with(Streams.BYTES, Streams.BYTES))
                .process(() -> new OpenWindow(options.redisPort()));
        Streams.run(builder, options);
    }

    /** The one window of a task that is open. */
    private static final class OpenWindow extends ContextualProcessor<byte[], byte[], Void, Void> {
        private final int port;
        private final Map<Bytes, byte[]> latest = new HashMap<>();
        private RedisWindows redis;
        private long endMs;

        OpenWindow(int port) {
            this.port = port;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            super.init(context);
            redis = new RedisWindows(port);
            long nextMs = endAfter(System.currentTimeMillis()) + MARGIN_MS;
            context.schedule(
                    Instant.ofEpochMilli(nextMs),
                    Duration.ofMillis(Options.WINDOW_MS),
                    PunctuationType.WALL_CLOCK_TIME,
                    this::publishWhenOver);
        }

        @Override
        public void process(Record<byte[], byte[]> trade) {
            Events.record();
            long itsEndMs = endAfter(trade.timestamp());
            if (itsEndMs > endMs) {
                publish();
                endMs = itsEndMs;
            }
            latest.merge(Bytes.wrap(trade.key()), trade.value(), Trade::newer);
        }

        private void publishWhenOver(long nowMs) {
            // In a backlog the clock says nothing of what is still to come.
            boolean isLive = nowMs < endMs + Options.WINDOW_MS;
            if (isLive && endMs <= nowMs - MARGIN_MS) {
                publish();
                // What still comes of that window is shown with the next.
                endMs += Options.WINDOW_MS;
            }
        }

        private void publish() {
            redis.publish(endMs, latest.values());
            latest.clear();
        }

        private static long endAfter(long stampMs) {
            return (stampMs / Options.WINDOW_MS + 1) * Options.WINDOW_MS;
        }

        @Override
        public void close() {
            redis.close();
        }
    }
}
