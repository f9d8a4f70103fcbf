package peers;

import java.nio.charset.StandardCharsets;

/**
 * A trade as it is on the wire: JSON that begins with ISIN, time and seq, in this order.
 *
 * <p>Only what the order of an instrument's trades needs is read. Nothing is checked: that an
 * ISIN, a price or a size is one, that a time is not in the future, that there is no other
 * field before them.
 */
public final class Trade {
    private static final int ISIN_AT = "{\"isin\":\"".length();
    private static final int ISIN_END = ISIN_AT + 12;
    private static final int TIME_AT = ISIN_END + "\",\"time\":".length();
    private static final int BETWEEN = ",\"seq\":".length();

    private Trade() {}

    /** Return the instrument's ISIN. */
    public static String isin(byte[] trade) {
        return new String(trade, ISIN_AT, ISIN_END - ISIN_AT, StandardCharsets.ISO_8859_1);
    }

    /** Return the one with the greater (time, seq), the second if they are equal. */
    public static byte[] newer(byte[] one, byte[] other) {
        int oneEnd = digitsEnd(one, TIME_AT);
        int otherEnd = digitsEnd(other, TIME_AT);
        int byTime = Long.compare(number(one, TIME_AT, oneEnd), number(other, TIME_AT, otherEnd));
        if (byTime != 0) {
            return byTime > 0 ? one : other;
        }
        return seq(one, oneEnd + BETWEEN) > seq(other, otherEnd + BETWEEN) ? one : other;
    }

    private static long seq(byte[] trade, int at) {
        return number(trade, at, digitsEnd(trade, at));
    }

    private static int digitsEnd(byte[] trade, int at) {
        while (trade[at] >= '0' && trade[at] <= '9') {
            at++;
        }
        return at;
    }

    private static long number(byte[] trade, int from, int end) {
        long number = 0;
        for (int at = from; at < end; at++) {
            number = 10 * number + trade[at] - '0';
        }
        return number;
    }
}
