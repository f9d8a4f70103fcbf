package peers;

import java.util.UUID;

/** What a program is told: {@code <servers> <topic> <port of Redis> <threads>}. */
public record Options(String servers, String topic, int redisPort, int threads) {
    public static final long WINDOW_MS = 2_000;

    public static Options of(String[] words) {
        return new Options(words[0], words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
    }

    /** A name for the consumer group that nobody has had before. */
    public static String freshGroup() {
        return "peers-" + UUID.randomUUID();
    }
}
