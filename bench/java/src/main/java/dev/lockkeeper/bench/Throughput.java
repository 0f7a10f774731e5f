package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** As many messages as go through; what is under way is bounded, so that no queue grows. */
final class Throughput {

    private static final int UNDER_WAY_MAX = 5000;
    private static final int TRANSACTION = 100;

    private Throughput() {}

    /** Scenario a: one producer waits for the broker's answer to each persistent message. */
    static void persistentSends(Clients clients, Meter meter) throws Exception {
        Semaphore permits = new Semaphore(0);
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, clients.queue(), true);
        Meter.Recorder recorder = meter.recorder();
        clients.run(() -> {
            while (!clients.stopping()) {
                long start = System.nanoTime();
                producer.send(Clients.message(session));
                recorder.record(System.nanoTime() - start);
                meter.count();
            }
        });
        meter.measure();
        clients.stop(permits);
        clients.empty();
    }

    /** Scenario b: 16 producers and 16 consumers share a queue of persistent messages. */
    static void sharedQueue(Clients clients, Meter meter) throws Exception {
        through(clients, meter, clients.queue(), 16, 16, true, new Semaphore(UNDER_WAY_MAX));
    }

    /** Scenario d: one producer, one consumer, non-persistent. */
    static void nonPersistent(Clients clients, Meter meter) throws Exception {
        through(clients, meter, clients.queue(), 1, 1, false, new Semaphore(UNDER_WAY_MAX));
    }

    private static void through(
            Clients clients,
            Meter meter,
            Destination destination,
            int producers,
            int consumers,
            boolean persistent,
            Semaphore permits)
            throws Exception {
        for (int i = 0; i < consumers; i++) {
            clients.listen(destination, permits);
        }
        for (int i = 0; i < producers; i++) {
            Session session = clients.session(false);
            MessageProducer producer = Clients.producer(session, destination, persistent);
            clients.run(() -> {
                while (!clients.stopping()) {
                    permits.acquire();
                    producer.send(Clients.message(session));
                }
            });
        }
        meter.measure();
        clients.stop(permits);
        clients.settle();
    }

    /** Scenario c: four producers and four consumers, transactions of 100 persistent messages. */
    static void transactions(Clients clients, Meter meter) throws Exception {
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        for (int i = 0; i < 4; i++) {
            Session session = clients.session(true);
            MessageConsumer consumer = session.createConsumer(clients.queue());
            clients.run(() -> consumeInTransactions(clients, meter, session, consumer, permits));
        }
        for (int i = 0; i < 4; i++) {
            Session session = clients.session(true);
            MessageProducer producer = Clients.producer(session, clients.queue(), true);
            clients.run(() -> {
                while (!clients.stopping()) {
                    permits.acquire(TRANSACTION);
                    for (int each = 0; each < TRANSACTION; each++) {
                        producer.send(Clients.message(session));
                    }
                    session.commit();
                }
            });
        }
        meter.measure();
        clients.stop(permits);
        clients.empty();
    }

    private static void consumeInTransactions(
            Clients clients,
            Meter meter,
            Session session,
            MessageConsumer consumer,
            Semaphore permits)
            throws JMSException {
        Meter.Recorder recorder = meter.recorder();
        int open = 0;
        while (!clients.stopping()) {
            var message = consumer.receive(500);
            if (message != null) {
                recorder.record(Clients.age(message));
                open++;
            }
            if (open == TRANSACTION || message == null && open > 0) {
                session.commit();
                meter.count(open);
                permits.release(open);
                open = 0;
            }
        }
    }

    /** Scenario e: one producer, ten consumers of a topic; counted are deliveries. */
    static void fanOut(Clients clients, Meter meter) throws Exception {
        int consumers = 10;
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        for (int i = 0; i < consumers; i++) {
            clients.listen(clients.topic(), permits);
        }
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, clients.topic(), false);
        clients.run(() -> {
            while (!clients.stopping()) {
                permits.acquire(consumers);
                producer.send(Clients.message(session));
            }
        });
        meter.measure();
        clients.stop(permits);
        clients.settle();
    }
}
