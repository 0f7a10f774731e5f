package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/**
 * Scenario s: a day at which everything happens at once, none of it as fast as it can.
 *
 * <p>Every second there are 300 orders, 200 persistent messages in transactions of 20, 200 prices
 * for 5 listeners, 50 news for 4 durable subscribers, one of which is away for a third of the time,
 * 100 messages for two consumers that select, and 20 for a consumer that takes half as many; every
 * 20 s 500 scheduled ones come due at once. Meanwhile a {@link Prober} watches.
 */
final class MixedDay {

    private static final int UNIT = 20;
    private static final int PRICE_LISTENERS = 5;
    private static final int SUBSCRIBERS = 4;
    private static final int LANES = 2;
    private static final int BURST = 500;
    private static final long BURST_SECONDS = 20;
    private static final long DELAY_MILLIS = 5_000;
    private static final long AWAY_SECONDS = 10;
    private static final long SLOW_MILLIS = 100;

    private final Clients clients;
    private final Meter meter;
    private final Semaphore unbounded = new Semaphore(0);

    private MixedDay(Clients clients, Meter meter) {
        this.clients = clients;
        this.meter = meter;
    }

    /** Lets the day pass. */
    static void pass(Clients clients, Meter meter) throws Exception {
        MixedDay day = new MixedDay(clients, meter);
        day.orders();
        day.units();
        day.prices();
        day.news();
        day.selected();
        day.slow();
        day.bursts();
        new Prober(clients, meter).start();
        meter.measure();
        clients.stop(day.unbounded);
    }

    private ActiveMQQueue queue(String part) {
        return new ActiveMQQueue(clients.name + "." + part);
    }

    private ActiveMQTopic topic(String part) {
        return new ActiveMQTopic(clients.name + "." + part);
    }

    private void orders() throws Exception {
        for (int i = 0; i < 3; i++) {
            clients.listen(queue("orders"), unbounded);
            Session session = clients.session(false);
            MessageProducer producer = Clients.producer(session, queue("orders"), true);
            each(100, () -> producer.send(Clients.message(session)));
        }
    }

    private void units() throws Exception {
        for (int i = 0; i < 2; i++) {
            Session session = clients.session(true);
            MessageProducer producer = Clients.producer(session, queue("units"), true);
            each(5, () -> {
                for (int sent = 0; sent < UNIT; sent++) {
                    producer.send(Clients.message(session));
                }
                session.commit();
            });
        }
        Session session = clients.session(true);
        MessageConsumer consumer = session.createConsumer(queue("units"));
        clients.run(() -> {
            for (int open = 0; !clients.stopping(); ) {
                open += consumer.receive(500) == null ? 0 : 1;
                if (open == UNIT) {
                    session.commit();
                    meter.count(open);
                    open = 0;
                }
            }
        });
    }

    private void prices() throws Exception {
        for (int i = 0; i < PRICE_LISTENERS; i++) {
            clients.listen(topic("prices"), unbounded);
        }
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, topic("prices"), false);
        each(200, () -> producer.send(Clients.message(session)));
    }

    private void news() throws Exception {
        for (int i = 1; i < SUBSCRIBERS; i++) {
            Session session = clients.session(false, clients.name + "." + i);
            clients.listen(session.createDurableSubscriber(topic("news"), "news"), unbounded);
        }
        Session absent = clients.session(false, clients.name + ".0");
        clients.run(() -> {
            while (!clients.stopping()) {
                MessageConsumer consumer = absent.createDurableSubscriber(topic("news"), "news");
                consumer.setMessageListener(message -> meter.count());
                rest(2 * AWAY_SECONDS);
                consumer.close();
                rest(AWAY_SECONDS);
            }
        });
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, topic("news"), true);
        each(50, () -> producer.send(Clients.message(session)));
    }

    private void selected() throws Exception {
        for (int lane = 0; lane < LANES; lane++) {
            Session session = clients.session(false);
            String selector = "lane = " + lane;
            clients.listen(session.createConsumer(queue("selected"), selector), unbounded);
        }
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, queue("selected"), true);
        AtomicLong sent = new AtomicLong();
        each(100, () -> {
            Message message = Clients.message(session);
            message.setLongProperty("lane", sent.getAndIncrement() % LANES);
            producer.send(message);
        });
    }

    private void slow() throws Exception {
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, queue("slow"), true);
        each(20, () -> producer.send(Clients.message(session)));
        MessageConsumer consumer = clients.session(false).createConsumer(queue("slow"));
        clients.run(() -> {
            while (!clients.stopping()) {
                if (consumer.receive(500) != null) {
                    meter.count();
                    Thread.sleep(SLOW_MILLIS);
                }
            }
        });
    }

    private void bursts() throws Exception {
        MessageConsumer consumer = clients.session(false).createConsumer(queue("bursts"));
        consumer.setMessageListener(message -> meter.count());
        Session session = clients.session(true);
        MessageProducer producer = Clients.producer(session, queue("bursts"), true);
        clients.run(() -> {
            while (!clients.stopping()) {
                long due = System.currentTimeMillis() + DELAY_MILLIS;
                for (int sent = 0; sent < BURST; sent++) {
                    Message message = Clients.message(session);
                    long delay = Math.max(1, due - System.currentTimeMillis());
                    message.setLongProperty("AMQ_SCHEDULED_DELAY", delay);
                    producer.send(message);
                }
                session.commit();
                rest(BURST_SECONDS);
            }
        });
    }

    /** Does something so many times a second until the load is stopped. */
    private void each(long perSecond, Workers.Task task) {
        long between = 1_000_000_000L / perSecond;
        clients.run(() -> {
            for (long due = System.nanoTime(); !clients.stopping(); due += between) {
                for (long wait; (wait = due - System.nanoTime()) > 0 && !clients.stopping(); ) {
                    LockSupport.parkNanos(wait);
                }
                task.run();
            }
        });
    }

    private void rest(long seconds) throws InterruptedException {
        for (long tenths = 0; tenths < seconds * 10 && !clients.stopping(); tenths++) {
            Thread.sleep(100);
        }
    }
}
