package dev.lockkeeper.bench;

import java.util.ArrayList;
import java.util.List;
import javax.jms.Destination;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/**
 * Sends a message to itself every few milliseconds, which no disk has to do with, and so sees how
 * long the broker does not answer. What its own process stood still meanwhile is not the broker's.
 */
final class Prober {

    private static final long BETWEEN_MILLIS = 5;
    private static final long ANSWER_MILLIS_MAX = 60_000;
    private static final long NAP_NANOS = 1_000_000;
    private static final long STALL_NANOS = 1_000_000;
    private static final long NOTICED_NANOS = 5_000_000;
    private static final long KEPT_NANOS = ANSWER_MILLIS_MAX * 1_000_000;

    private final Clients clients;
    private final Meter meter;
    private final List<long[]> stalls = new ArrayList<>();

    Prober(Clients clients, Meter meter) {
        this.clients = clients;
        this.meter = meter;
    }

    void start() throws Exception {
        Session session = clients.session(false);
        Destination own = session.createTemporaryQueue();
        MessageProducer producer = Clients.producer(session, own, false);
        MessageConsumer consumer = session.createConsumer(own);
        clients.run(this::watchItself);
        clients.run(() -> {
            while (!clients.stopping()) {
                long began = System.nanoTime();
                producer.send(session.createMessage());
                if (consumer.receive(ANSWER_MILLIS_MAX) == null) {
                    throw new IllegalStateException("the prober has got no answer");
                }
                long ended = System.nanoTime();
                long pause = ended - began;
                if (pause > NOTICED_NANOS) {
                    // By then the other thread has noticed what it slept too long.
                    Thread.sleep(BETWEEN_MILLIS);
                    pause -= stalled(began, ended);
                }
                meter.probe(pause);
                Thread.sleep(BETWEEN_MILLIS);
            }
        });
    }

    /** Notes whenever a nap of a millisecond took much longer. */
    private void watchItself() throws Exception {
        while (!clients.stopping()) {
            long began = System.nanoTime();
            Thread.sleep(0, (int) NAP_NANOS - 1);
            long ended = System.nanoTime();
            if (ended - began - NAP_NANOS > STALL_NANOS) {
                meter.stall(ended - began - NAP_NANOS);
                note(began + NAP_NANOS, ended);
            }
        }
    }

    private synchronized void note(long began, long ended) {
        stalls.removeIf(each -> ended - each[1] > KEPT_NANOS);
        stalls.add(new long[] {began, ended});
    }

    /** Returns for how many nanoseconds of a time the process stood still. */
    private synchronized long stalled(long began, long ended) {
        return stalls.stream()
                .mapToLong(each -> Math.min(each[1], ended) - Math.max(each[0], began))
                .filter(each -> each > 0)
                .sum();
    }
}
