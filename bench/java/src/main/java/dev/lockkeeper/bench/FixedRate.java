package dev.lockkeeper.bench;

import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import javax.jms.Destination;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQQueue;

/** 1,000 persistent messages a second; latency from the send call to the listener. */
final class FixedRate {

    private static final long RATE = 1000;

    private FixedRate() {}

    /** Scenario g: four producers and a consumer of one queue. */
    static void latency(Clients clients, Meter meter) throws Exception {
        Semaphore unbounded = new Semaphore(0);
        clients.listen(clients.queue(), unbounded);
        for (int i = 0; i < 4; i++) {
            start(clients, clients.queue(), i, 4);
        }
        measure(clients, meter, unbounded);
    }

    /** Scenario m: the same over 1,000 connections, two for each queue. */
    static void connections(Clients clients, Meter meter) throws Exception {
        Semaphore unbounded = new Semaphore(0);
        int queues = 500;
        for (int i = 0; i < queues; i++) {
            Destination queue = new ActiveMQQueue(clients.name + "." + i);
            clients.listen(queue, unbounded);
            start(clients, queue, i, queues);
        }
        measure(clients, meter, unbounded);
    }

    private static void measure(Clients clients, Meter meter, Semaphore unbounded)
            throws Exception {
        meter.measure();
        clients.stop(unbounded);
        clients.settle();
    }

    /** Lets one of several producers send its share of the messages. */
    private static void start(Clients clients, Destination queue, int number, int producers)
            throws Exception {
        Session session = clients.session(false);
        MessageProducer producer = Clients.producer(session, queue, true);
        start(clients, () -> producer.send(Clients.message(session)), number, producers);
    }

    /** Lets a sender send the share of one of several producers. */
    static void start(Workers workers, Workers.Task sender, int number, int producers) {
        long between = producers * 1_000_000_000L / RATE;
        long first = System.nanoTime() + number * between / producers;
        workers.run(() -> send(workers, sender, first, between));
    }

    private static void send(
            Workers workers, Workers.Task sender, long first, long between) throws Exception {
        for (long due = first; !workers.stopping(); due += between) {
            for (long wait; (wait = due - System.nanoTime()) > 0 && !workers.stopping(); ) {
                LockSupport.parkNanos(wait);
            }
            sender.run();
        }
    }
}
