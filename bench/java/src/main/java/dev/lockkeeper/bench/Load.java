package dev.lockkeeper.bench;

import java.util.Map;

/**
 * Puts one kind of load on a broker: {@code Load SCENARIO URL WARM_UP_SECONDS SECONDS}.
 *
 * <p>Prints {@code START} and {@code END} at the ends of the measured time, so that the caller can
 * look at the broker's CPU time at the same moments, and then one line of JSON.
 */
public final class Load {

    private static final Map<String, Workload> WORKLOADS = Map.ofEntries(
            Map.entry("a", Throughput::persistentSends),
            Map.entry("b", Throughput::sharedQueue),
            Map.entry("c", Throughput::transactions),
            Map.entry("d", Throughput::nonPersistent),
            Map.entry("e", Throughput.fanOut(10)),
            Map.entry("f", Backlog.of(50_000)),
            Map.entry("g", FixedRate::latency),
            Map.entry("h", Throughput::selectors),
            Map.entry("i", Throughput::groups),
            Map.entry("j", Throughput::durableSubscribers),
            Map.entry("k", Throughput.ofSize(100 << 10, 4, 200)),
            Map.entry("l", Throughput.ofSize(5 << 20, 1, 8)),
            Map.entry("m", FixedRate::connections),
            Map.entry("n", Throughput.fanOut(100)),
            Map.entry("o", RequestReply::roundTrips),
            Map.entry("p", Backlog.of(1_000_000)),
            Map.entry("q", Throughput::sharedQueue),
            Map.entry("r", Throughput::nonPersistent),
            Map.entry("s", MixedDay::pass));

    private Load() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 4 || !isKnown(arguments[0])) {
            System.err.println("usage: Load a|b|…|w BROKER_URL WARM_UP_SECONDS SECONDS");
            System.exit(2);
        }
        Meter meter =
                new Meter(Double.parseDouble(arguments[2]), Double.parseDouble(arguments[3]));
        String scenario = arguments[0];
        String url = arguments[1];
        String queue = "BENCH." + scenario + "." + System.nanoTime();
        if (url.startsWith("rocketmq")) {
            var workload = carriedBy("RocketMQ", StreamLoad.WORKLOADS, scenario);
            try (StreamClients clients = new StreamClients(url, queue, meter)) {
                workload.run(clients, meter);
            }
        } else if (url.startsWith("amqp")) {
            var workload = carriedBy("RabbitMQ", RabbitLoad.WORKLOADS, scenario);
            try (RabbitClients clients = new RabbitClients(url, queue, meter)) {
                workload.run(clients, meter);
            }
        } else {
            var workload = carriedBy("JMS", WORKLOADS, scenario);
            try (Clients clients = new Clients(url, queue, meter)) {
                workload.run(clients, meter);
            }
        }
        System.out.println(meter.json(scenario));
    }

    private static boolean isKnown(String scenario) {
        return WORKLOADS.containsKey(scenario) || StreamLoad.WORKLOADS.containsKey(scenario);
    }

    private static <W> W carriedBy(String name, Map<String, W> workloads, String scenario) {
        W workload = workloads.get(scenario);
        if (workload == null) {
            System.err.println(name + " cannot carry scenario " + scenario);
            System.exit(2);
        }
        return workload;
    }

    /** Something that clients can do to a broker while a meter runs. */
    @FunctionalInterface
    interface Workload {
        void run(Clients clients, Meter meter) throws Exception;
    }
}
