package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** Scenario g: 1,000 persistent messages a second; latency from the send call to the listener. */
final class FixedRate {

    private static final int PRODUCERS = 4;
    private static final long NANOS_BETWEEN_SENDS = PRODUCERS * 1_000_000L;

    private FixedRate() {}

    static void latency(Clients clients, Meter meter) throws Exception {
        Semaphore unbounded = new Semaphore(0);
        clients.listen(clients.queue(), unbounded);
        for (int i = 0; i < PRODUCERS; i++) {
            Session session = clients.session(false);
            MessageProducer producer = Clients.producer(session, clients.queue(), true);
            long first = System.nanoTime() + i * NANOS_BETWEEN_SENDS / PRODUCERS;
            clients.run(() -> send(clients, session, producer, first));
        }
        meter.measure();
        clients.stop(unbounded);
        clients.settle();
    }

    private static void send(Clients clients, Session session, MessageProducer producer, long first)
            throws Exception {
        for (long due = first; !clients.stopping(); due += NANOS_BETWEEN_SENDS) {
            for (long wait; (wait = due - System.nanoTime()) > 0; ) {
                LockSupport.parkNanos(wait);
            }
            producer.send(Clients.message(session));
        }
    }
}
