package dev.lockkeeper.bench;

import java.util.Map;
import java.util.concurrent.Semaphore;

/** The loads of streams, by RocketMQ's protocol. */
final class StreamLoad {

    private static final int UNDER_WAY_MAX = 5000;

    static final Map<String, Workload> WORKLOADS = Map.of(
            "t", sends(1),
            "u", sends(16),
            "v", StreamLoad::groups,
            "w", StreamLoad::latency);

    private StreamLoad() {}

    private static Workload sends(int producers) {
        return (clients, meter) -> {
            for (int i = 0; i < producers; i++) {
                Workers.Task producer = clients.producer();
                Meter.Recorder recorder = meter.recorder();
                clients.run(() -> {
                    while (!clients.stopping()) {
                        long start = System.nanoTime();
                        producer.run();
                        recorder.record(System.nanoTime() - start);
                        meter.count();
                    }
                });
            }
            measure(clients, meter, new Semaphore(0));
        };
    }

    private static void groups(StreamClients clients, Meter meter) throws Exception {
        int groups = 10;
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        for (int i = 0; i < groups; i++) {
            clients.consume("group" + i, permits);
        }
        for (int i = 0; i < 4; i++) {
            Workers.Task producer = clients.producer();
            clients.run(() -> {
                while (!clients.stopping()) {
                    permits.acquire(groups);
                    producer.run();
                }
            });
        }
        measure(clients, meter, permits);
    }

    private static void latency(StreamClients clients, Meter meter) throws Exception {
        Semaphore unbounded = new Semaphore(0);
        clients.consume("group", unbounded);
        for (int i = 0; i < 4; i++) {
            FixedRate.start(clients, clients.producer(), i, 4);
        }
        measure(clients, meter, unbounded);
    }

    private static void measure(StreamClients clients, Meter meter, Semaphore permits)
            throws Exception {
        meter.measure();
        clients.stop(permits);
        clients.settle();
    }

    /** Something that clients can do to streams while a meter runs. */
    @FunctionalInterface
    interface Workload {
        void run(StreamClients clients, Meter meter) throws Exception;
    }
}
