package dev.lockkeeper.bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** Scenarios f and p: a consumer, prefetch 1000, AUTO acknowledge, empties a full queue. */
final class Backlog {

    static final int WARM_UP_MESSAGES = 5_000;
    private static final int TRANSACTION = 500;
    static final long SECONDS_MAX = 600;

    private Backlog() {}

    /** Returns the load that empties a queue of so many messages. */
    static Load.Workload of(int messages) {
        return (clients, meter) -> {
            fill(clients, WARM_UP_MESSAGES);
            consume(clients, meter, WARM_UP_MESSAGES);
            fill(clients, messages);
            meter.start();
            consume(clients, meter, messages);
            meter.end();
        };
    }

    private static void fill(Clients clients, int count) throws Exception {
        Session session = clients.session(true);
        MessageProducer producer = Clients.producer(session, clients.queue(), true);
        for (int sent = 0; sent < count; sent += TRANSACTION) {
            for (int each = 0; each < TRANSACTION; each++) {
                producer.send(Clients.message(session));
            }
            session.commit();
        }
        session.close();
    }

    private static void consume(Clients clients, Meter meter, int count) throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        Session session = clients.session(false);
        session.createConsumer(clients.queue()).setMessageListener(message -> {
            meter.count();
            left.countDown();
        });
        if (!left.await(SECONDS_MAX, TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " messages never came");
        }
        session.close();
    }
}
