package peers;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Jedis;

/**
 * Publishes windows: the last value of every instrument into a hash and one message, in one
 * transaction.
 *
 * <p>At least once: whoever starts again where it last committed publishes windows a second
 * time. Nobody is kept from publishing an older window, or from publishing beside another
 * program.
 */
public final class RedisWindows implements AutoCloseable {
    private static final byte[] CHANNEL = "peers:windows".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] LAST = "peers:last".getBytes(StandardCharsets.US_ASCII);

    private final Jedis redis;

    public RedisWindows(int port) {
        redis = new Jedis("127.0.0.1", port);
    }

    /** Publish the rows of a window, named by its end in ms; without a row, do nothing. */
    public void publish(long endMs, Collection<byte[]> trades) {
        if (trades.isEmpty()) {
            return;
        }
        Map<byte[], byte[]> last = new HashMap<>();
        ByteArrayOutputStream message = new ByteArrayOutputStream(1 << 16);
        message.writeBytes(("{\"window\":" + endMs + ",\"rows\":").getBytes(StandardCharsets.US_ASCII));
        char before = '[';
        for (byte[] trade : trades) {
            last.put(Trade.isin(trade).getBytes(StandardCharsets.US_ASCII), trade);
            message.write(before);
            message.writeBytes(trade);
            before = ',';
        }
        message.writeBytes("]}".getBytes(StandardCharsets.US_ASCII));
        try (AbstractTransaction both = redis.multi()) {
            both.hset(LAST, last);
            both.publish(CHANNEL, message.toByteArray());
            both.exec();
        }
    }

    @Override
    public void close() {
        redis.close();
    }

    /** The rows of one window, gathered one by one until they are published. */
    public static final class Gathered {
        private final RedisWindows windows;
        private final List<byte[]> trades = new ArrayList<>();
        private long endMs;

        public Gathered(RedisWindows windows) {
            this.windows = windows;
        }

        /** Take a row; one of another window publishes those of the window before. */
        public void add(long windowEndMs, byte[] trade) {
            if (windowEndMs != endMs) {
                publish();
                endMs = windowEndMs;
            }
            trades.add(trade);
        }

        /** Publish what there is. */
        public void publish() {
            if (!trades.isEmpty()) {
                windows.publish(endMs, trades);
                trades.clear();
            }
        }
    }
}
