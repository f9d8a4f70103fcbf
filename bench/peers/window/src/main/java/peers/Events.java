package peers;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** What the benchmark is told of a program, as lines of JSON on standard output. */
public final class Events {
    private static final AtomicBoolean HAS_BEGUN = new AtomicBoolean();
    private static final AtomicLong LATE = new AtomicLong();

    private Events() {}

    /** Say that it is ready for trades. */
    public static void ready() {
        say("ready", "");
    }

    /** Say when the first record was worked on; later calls say nothing. */
    public static void record() {
        if (!HAS_BEGUN.getPlain() && HAS_BEGUN.compareAndSet(false, true)) {
            say("first_record", ",\"at_ms\":" + System.currentTimeMillis());
        }
    }

    /** Count trades that were lost for being late. */
    public static void late(long trades) {
        LATE.addAndGet(trades);
    }

    /** Say how it ended. */
    public static void ended() {
        say("ended", ",\"late\":" + LATE.get());
    }

    private static synchronized void say(String event, String fields) {
        System.out.println("{\"event\":\"" + event + "\"" + fields + "}");
        System.out.flush();
    }
}
