package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** As many messages as go through; what is under way is bounded, so that no queue grows. */
final class Throughput {

    private static final int UNDER_WAY_MAX = 5000;
    private static final int TRANSACTION = 100;
    private static final int LANES = 10;
    private static final int GROUPS = 1000;

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
            send(clients, destination, persistent, permits, 1, Clients::message);
        }
        measure(clients, meter, permits);
    }

    /** Scenario h: four producers, ten consumers with a selector each, which share nothing. */
    static void selectors(Clients clients, Meter meter) throws Exception {
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        for (int lane = 0; lane < LANES; lane++) {
            Session session = clients.session(false);
            clients.listen(session.createConsumer(clients.queue(), "lane = " + lane), permits);
        }
        AtomicInteger sent = new AtomicInteger();
        for (int i = 0; i < 4; i++) {
            send(clients, clients.queue(), true, permits, 1, session -> {
                Message message = Clients.message(session);
                message.setIntProperty("lane", sent.getAndIncrement() % LANES);
                return message;
            });
        }
        measure(clients, meter, permits);
    }

    /** Scenario i: four producers and four consumers, 1,000 message groups. */
    static void groups(Clients clients, Meter meter) throws Exception {
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        for (int i = 0; i < 4; i++) {
            clients.listen(clients.queue(), permits);
        }
        AtomicInteger sent = new AtomicInteger();
        for (int i = 0; i < 4; i++) {
            send(clients, clients.queue(), true, permits, 1, session -> {
                Message message = Clients.message(session);
                message.setStringProperty("JMSXGroupID", "g" + sent.getAndIncrement() % GROUPS);
                return message;
            });
        }
        measure(clients, meter, permits);
    }

    /** Returns the load of persistent messages of so many bytes, as many producers as consumers. */
    static Load.Workload ofSize(int bytes, int workers, int underWay) {
        return (clients, meter) -> {
            Semaphore permits = new Semaphore(underWay);
            for (int i = 0; i < workers; i++) {
                clients.listen(clients.queue(), permits);
                send(clients, clients.queue(), true, permits, 1,
                        session -> Clients.message(session, bytes));
            }
            measure(clients, meter, permits);
        };
    }

    /** Scenario j: one producer, 100 durable subscribers of a topic; counted are deliveries. */
    static void durableSubscribers(Clients clients, Meter meter) throws Exception {
        int subscribers = 100;
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        Session[] sessions = new Session[subscribers];
        MessageConsumer[] consumers = new MessageConsumer[subscribers];
        for (int i = 0; i < subscribers; i++) {
            sessions[i] = clients.session(false, clients.name + "." + i);
            consumers[i] = sessions[i].createDurableSubscriber(clients.topic(), "s");
            clients.listen(consumers[i], permits);
        }
        send(clients, clients.topic(), true, permits, subscribers, Clients::message);
        measure(clients, meter, permits);
        for (int i = 0; i < subscribers; i++) {
            consumers[i].close();
            sessions[i].unsubscribe("s");
        }
    }

    /** Lets a producer send, as long as there are permits for *copies* of each message. */
    private static void send(
            Clients clients,
            Destination destination,
            boolean persistent,
            Semaphore permits,
            int copies,
            Maker maker)
            throws JMSException {
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, destination, persistent);
        clients.run(() -> {
            while (!clients.stopping()) {
                permits.acquire(copies);
                producer.send(maker.message(session));
            }
        });
    }

    private static void measure(Clients clients, Meter meter, Semaphore permits) throws Exception {
        meter.measure();
        clients.stop(permits);
        clients.settle();
    }

    /** Makes the next message. */
    @FunctionalInterface
    private interface Maker {
        Message message(Session session) throws JMSException;
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

    /** Returns the load of one producer and so many consumers of a topic; counts deliveries. */
    static Load.Workload fanOut(int consumers) {
        return (clients, meter) -> {
            Semaphore permits = new Semaphore(UNDER_WAY_MAX);
            for (int i = 0; i < consumers; i++) {
                clients.listen(clients.topic(), permits);
            }
            send(clients, clients.topic(), false, permits, consumers, Clients::message);
            measure(clients, meter, permits);
        };
    }
}
