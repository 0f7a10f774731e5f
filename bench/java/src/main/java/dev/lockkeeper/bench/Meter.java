package dev.lockkeeper.bench;

import java.math.BigDecimal;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;

/** Counts messages and keeps latencies while the measured time runs. */
final class Meter {

    private static final double[] CURVE = {
        0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999
    };

    private final LongAdder counted = new LongAdder();
    private final List<Recorder> recorders = new CopyOnWriteArrayList<>();
    private final double warmUpSeconds;
    private final double seconds;
    private volatile boolean measuring;
    private long began;
    private long countedBefore;
    private long messages;
    private double measuredSeconds;
    private long longestPause;
    private long longestStall;

    Meter(double warmUpSeconds, double seconds) {
        this.warmUpSeconds = warmUpSeconds;
        this.seconds = seconds;
    }

    /** Counts a message that has done its way. */
    void count() {
        counted.increment();
    }

    /** Counts several. */
    void count(int several) {
        counted.add(several);
    }

    long total() {
        return counted.sum();
    }

    /** Returns a recorder of latencies for one thread. */
    Recorder recorder() {
        Recorder recorder = new Recorder();
        recorders.add(recorder);
        return recorder;
    }

    /** Notes for how many ns the broker gave a prober no answer. */
    synchronized void probe(long pause) {
        if (measuring) {
            longestPause = Math.max(longestPause, pause);
        }
    }

    /** Notes for how many ns the prober itself stood still. */
    synchronized void stall(long nanos) {
        if (measuring) {
            longestStall = Math.max(longestStall, nanos);
        }
    }

    /** Lets the load warm up, and measures it for the time that was asked for. */
    void measure() throws InterruptedException {
        Thread.sleep((long) (warmUpSeconds * 1000));
        start();
        Thread.sleep((long) (seconds * 1000));
        end();
    }

    void start() {
        countedBefore = counted.sum();
        measuring = true;
        System.out.println("START");
        System.out.flush();
        began = System.nanoTime();
    }

    void end() {
        measuredSeconds = (System.nanoTime() - began) / 1e9;
        messages = counted.sum() - countedBefore;
        System.out.println("END");
        System.out.flush();
        measuring = false;
    }

    /** Returns the result; latencies are in microseconds. */
    String json(String scenario) {
        long[] all = recorders.stream().flatMapToLong(Recorder::nanos).sorted().toArray();
        StringBuilder latency = new StringBuilder();
        if (all.length > 0) {
            latency.append(String.format(
                    ", \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f",
                    at(all, 0.5), at(all, 0.99), at(all, 0.999), all[all.length - 1] / 1e3));
            latency.append(curve(all));
        }
        if (longestPause > 0) {
            latency.append(String.format(
                    ", \"pause_us\": %.1f, \"stall_us\": %.1f",
                    longestPause / 1e3, longestStall / 1e3));
        }
        return String.format(
                "{\"scenario\": \"%s\", \"messages\": %d, \"seconds\": %.4f%s}",
                scenario, messages, measuredSeconds, latency);
    }

    /** Returns latencies by percentile; those of which fewer than ten are left say nothing. */
    private static String curve(long[] sorted) {
        return Arrays.stream(CURVE)
                .filter(share -> share <= 0.5 || (1 - share) * sorted.length >= 10)
                .mapToObj(share -> String.format("\"%s\": %.1f", name(share), at(sorted, share)))
                .collect(Collectors.joining(", ", ", \"curve\": {", "}"));
    }

    private static String name(double share) {
        return BigDecimal.valueOf(share).movePointRight(2).stripTrailingZeros().toPlainString();
    }

    private static double at(long[] sorted, double share) {
        return sorted[(int) Math.min(sorted.length - 1, Math.floor(share * sorted.length))] / 1e3;
    }

    /** The latencies that one thread has seen. */
    final class Recorder {
        private long[] nanos = new long[1024];
        private int size;

        synchronized void record(long latency) {
            if (!measuring) {
                return;
            }
            if (size == nanos.length) {
                nanos = Arrays.copyOf(nanos, size * 2);
            }
            nanos[size++] = latency;
        }

        private synchronized java.util.stream.LongStream nanos() {
            return Arrays.stream(nanos, 0, size);
        }
    }
}
