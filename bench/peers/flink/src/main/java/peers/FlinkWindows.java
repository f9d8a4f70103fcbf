package peers;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Flink's tumbling windows of event time: the latest trade of each instrument, in one process.
 *
 * <p>What it promises: each instrument once per window, the newest of the trades that were in time;
 * a window over all partitions is one message.
 *
 * <p>What it does not promise: the watermark, and with it the end of a window, comes from the
 * records of the slowest partition. If one partition falls silent, no window closes any more;
 * if all do, the last one never comes. (Flink can be told to leave a silent partition out;
 * that does not help if all are silent, and what it holds back is then late.) A trade that comes
 * after its window has closed is not published; here it is counted. Without checkpoints, as
 * it runs here, a restart loses the open window; with them it would publish to Redis at least
 * once.
 */
public final class FlinkWindows {
    private static final Duration SIZE = Duration.ofMillis(Options.WINDOW_MS);
    private static final OutputTag<byte[]> LATE =
            new OutputTag<>("late", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private FlinkWindows() {}

    public static void main(String[] words) throws Exception {
        Options options = Options.of(words);
        StreamExecutionEnvironment flink =
                StreamExecutionEnvironment.createLocalEnvironment(options.threads(), configuration());
        SingleOutputStreamOperator<byte[]> latest = flink
                .fromSource(source(options), WatermarkStrategy.forMonotonousTimestamps(), "trades")
                .keyBy(Trade::isin)
                .window(TumblingEventTimeWindows.of(SIZE))
                .sideOutputLateData(LATE)
                .reduce(Trade::newer);
        latest.windowAll(TumblingEventTimeWindows.of(SIZE))
                .process(new Publish(options.redisPort()))
                .sinkTo(new DiscardingSink<>());
        latest.getSideOutput(LATE).process(new CountLate()).sinkTo(new DiscardingSink<>());
        Runtime.getRuntime().addShutdownHook(new Thread(Events::ended));
        flink.executeAsync("windows");
        Events.ready();
    }

    private static Configuration configuration() {
        Configuration all = new Configuration();
        all.setString("taskmanager.memory.network.min", "64mb");
        all.setString("taskmanager.memory.network.max", "64mb");
        all.setString("taskmanager.memory.managed.size", "32mb");
        all.setString("pipeline.object-reuse", "true");
        all.setString("restart-strategy.type", "none");
        // A window closes as soon as the next one's first trade is there.
        all.setString("pipeline.auto-watermark-interval", "10 ms");
        all.setString("execution.buffer-timeout.interval", "5 ms");
        return all;
    }

    private static KafkaSource<byte[]> source(Options options) {
        return KafkaSource.<byte[]>builder()
                .setBootstrapServers(options.servers())
                .setTopics(options.topic())
                .setGroupId(Options.freshGroup())
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("max.poll.records", "5000")
                .setProperty("fetch.max.wait.ms", "10")
                .setProperty("max.partition.fetch.bytes", String.valueOf(4 << 20))
                .setValueOnlyDeserializer(new Unread())
                .build();
    }

    /** A trade stays as it came. */
    private static final class Unread extends AbstractDeserializationSchema<byte[]> {
        @Override
        public byte[] deserialize(byte[] trade) {
            Events.record();
            return trade;
        }
    }

    /** Publishes a window as one message. */
    private static final class Publish extends ProcessAllWindowFunction<byte[], Long, TimeWindow> {
        private final int port;
        private transient RedisWindows redis;

        Publish(int port) {
            this.port = port;
        }

        @Override
        public void open(OpenContext context) {
            redis = new RedisWindows(port);
        }

        @Override
        public void process(Context context, Iterable<byte[]> trades, Collector<Long> out) {
            List<byte[]> rows = new ArrayList<>();
            trades.forEach(rows::add);
            redis.publish(context.window().getEnd(), rows);
        }

        @Override
        public void close() {
            if (redis != null) {
                redis.close();
            }
        }
    }

    /** Counts trades whose window is over. */
    private static final class CountLate extends ProcessFunction<byte[], Long> {
        @Override
        public void processElement(byte[] trade, Context context, Collector<Long> out) {
            Events.late(1);
        }
    }
}
