package dev.lockkeeper.bench;

import java.util.Map;

/**
 * Puts one kind of load on a broker: {@code Load SCENARIO URL WARM_UP_SECONDS SECONDS}.
 *
 * <p>Prints {@code START} and {@code END} at the ends of the measured time, so that the caller can
 * look at the broker's CPU time at the same moments, and then one line of JSON.
 */
public final class Load {

    private static final Map<String, Workload> WORKLOADS = Map.of(
            "a", Throughput::persistentSends,
            "b", Throughput::sharedQueue,
            "c", Throughput::transactions,
            "d", Throughput::nonPersistent,
            "e", Throughput::fanOut,
            "f", Backlog::drain,
            "g", FixedRate::latency);

    private Load() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 4 || !WORKLOADS.containsKey(arguments[0])) {
            System.err.println("usage: Load a|b|c|d|e|f|g BROKER_URL WARM_UP_SECONDS SECONDS");
            System.exit(2);
        }
        Meter meter =
                new Meter(Double.parseDouble(arguments[2]), Double.parseDouble(arguments[3]));
        String queue = "BENCH." + arguments[0] + "." + System.nanoTime();
        try (Clients clients = new Clients(arguments[1], queue, meter)) {
            WORKLOADS.get(arguments[0]).run(clients, meter);
        }
        System.out.println(meter.json(arguments[0]));
    }

    /** Something that clients can do to a broker while a meter runs. */
    @FunctionalInterface
    interface Workload {
        void run(Clients clients, Meter meter) throws Exception;
    }
}
