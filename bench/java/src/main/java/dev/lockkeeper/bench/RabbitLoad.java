package dev.lockkeeper.bench;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** The loads of {@link Load} that RabbitMQ can carry, with its own client. */
final class RabbitLoad {

    private static final int UNDER_WAY_MAX = 5000;
    private static final int TRANSACTION = 100;
    private static final int FILLING = 500;
    private static final long ANSWER_SECONDS_MAX = 30;

    static final Map<String, Workload> WORKLOADS = Map.ofEntries(
            Map.entry("a", RabbitLoad::persistentSends),
            Map.entry("b", shared(16, 16, true, RabbitClients.BODY_BYTES, UNDER_WAY_MAX)),
            Map.entry("c", RabbitLoad::transactions),
            Map.entry("d", shared(1, 1, false, RabbitClients.BODY_BYTES, UNDER_WAY_MAX)),
            Map.entry("e", fanOut(10)),
            Map.entry("f", backlog(50_000)),
            Map.entry("g", fixedRate(4, 1)),
            Map.entry("j", RabbitLoad::durableSubscribers),
            Map.entry("k", shared(4, 4, true, 100 << 10, 200)),
            Map.entry("l", shared(1, 1, true, 5 << 20, 8)),
            Map.entry("m", fixedRate(500, 500)),
            Map.entry("n", fanOut(100)),
            Map.entry("o", RabbitLoad::roundTrips),
            Map.entry("p", backlog(1_000_000)),
            Map.entry("q", shared(16, 16, true, RabbitClients.BODY_BYTES, UNDER_WAY_MAX)),
            Map.entry("r", shared(1, 1, false, RabbitClients.BODY_BYTES, UNDER_WAY_MAX)));

    private RabbitLoad() {}

    private static void persistentSends(RabbitClients clients, Meter meter) throws Exception {
        RabbitClients.Producer producer = clients.producer("", clients.queue(true), true);
        Meter.Recorder recorder = meter.recorder();
        clients.run(() -> {
            while (!clients.stopping()) {
                long start = System.nanoTime();
                producer.send(RabbitClients.body());
                recorder.record(System.nanoTime() - start);
                meter.count();
            }
        });
        meter.measure();
        clients.stop(new Semaphore(0));
    }

    private static Workload shared(
            int producers, int consumers, boolean persistent, int bytes, int underWay) {
        return (clients, meter) -> {
            Semaphore permits = new Semaphore(underWay);
            String queue = clients.queue(persistent);
            for (int i = 0; i < consumers; i++) {
                clients.listen(queue, permits);
            }
            for (int i = 0; i < producers; i++) {
                send(clients, clients.producer("", queue, persistent), permits, 1, bytes);
            }
            measure(clients, meter, permits);
        };
    }

    private static Workload fanOut(int consumers) {
        return (clients, meter) -> {
            Semaphore permits = new Semaphore(UNDER_WAY_MAX);
            String topic = clients.topic();
            for (int i = 0; i < consumers; i++) {
                clients.subscribe(topic, permits);
            }
            send(clients, clients.producer(topic, "", false), permits, consumers,
                    RabbitClients.BODY_BYTES);
            measure(clients, meter, permits);
        };
    }

    /** A durable subscriber is a durable queue that is bound to the topic. */
    private static void durableSubscribers(RabbitClients clients, Meter meter) throws Exception {
        int subscribers = 100;
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        String topic = clients.topic();
        for (int i = 0; i < subscribers; i++) {
            clients.listen(clients.durable(topic, clients.name + "." + i), permits);
        }
        send(clients, clients.producer(topic, "", true), permits, subscribers,
                RabbitClients.BODY_BYTES);
        measure(clients, meter, permits);
    }

    private static void send(
            RabbitClients clients,
            RabbitClients.Producer producer,
            Semaphore permits,
            int copies,
            int bytes) {
        clients.run(() -> {
            while (!clients.stopping()) {
                permits.acquire(copies);
                producer.send(RabbitClients.body(bytes));
            }
        });
    }

    private static void measure(RabbitClients clients, Meter meter, Semaphore permits)
            throws Exception {
        meter.measure();
        clients.stop(permits);
        clients.settle();
    }

    private static void transactions(RabbitClients clients, Meter meter) throws Exception {
        Semaphore permits = new Semaphore(UNDER_WAY_MAX);
        String queue = clients.queue(true);
        for (int i = 0; i < 4; i++) {
            Channel channel = clients.channel();
            clients.run(() -> consumeInTransactions(clients, meter, channel, queue, permits));
        }
        for (int i = 0; i < 4; i++) {
            Channel channel = clients.channel();
            channel.txSelect();
            clients.run(() -> {
                while (!clients.stopping()) {
                    permits.acquire(TRANSACTION);
                    publish(channel, queue, TRANSACTION);
                    channel.txCommit();
                }
            });
        }
        measure(clients, meter, permits);
    }

    private static void publish(Channel channel, String queue, int count) throws Exception {
        for (int each = 0; each < count; each++) {
            channel.basicPublish(
                    "", queue, MessageProperties.MINIMAL_PERSISTENT_BASIC, RabbitClients.body());
        }
    }

    private static void consumeInTransactions(
            RabbitClients clients, Meter meter, Channel channel, String queue, Semaphore permits)
            throws Exception {
        channel.txSelect();
        BlockingQueue<Delivery> come = consume(channel, queue, false);
        int open = 0;
        for (long last = 0; !clients.stopping(); ) {
            Delivery delivery = come.poll(500, TimeUnit.MILLISECONDS);
            if (delivery != null) {
                last = delivery.getEnvelope().getDeliveryTag();
                open++;
            }
            if (open == TRANSACTION || delivery == null && open > 0) {
                channel.basicAck(last, true);
                channel.txCommit();
                meter.count(open);
                permits.release(open);
                open = 0;
            }
        }
    }

    private static BlockingQueue<Delivery> consume(
            Channel channel, String queue, boolean unacknowledged) throws Exception {
        BlockingQueue<Delivery> come = new LinkedBlockingQueue<>();
        channel.basicQos(RabbitClients.PREFETCH);
        channel.basicConsume(
                queue, unacknowledged, (tag, delivery) -> come.add(delivery), tag -> {});
        return come;
    }

    private static Workload backlog(int messages) {
        return (clients, meter) -> {
            String queue = clients.queue(true);
            int warmUp = Backlog.WARM_UP_MESSAGES;
            fill(clients, queue, warmUp);
            empty(clients, meter, queue, warmUp);
            fill(clients, queue, messages);
            meter.start();
            empty(clients, meter, queue, messages);
            meter.end();
        };
    }

    private static void fill(RabbitClients clients, String queue, int count) throws Exception {
        try (Channel channel = clients.channel()) {
            channel.confirmSelect();
            for (int sent = 0; sent < count; sent += FILLING) {
                publish(channel, queue, FILLING);
                channel.waitForConfirmsOrDie();
            }
        }
    }

    private static void empty(RabbitClients clients, Meter meter, String queue, int count)
            throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        try (Channel channel = clients.channel()) {
            channel.basicQos(RabbitClients.PREFETCH);
            channel.basicConsume(queue, false, (tag, delivery) -> {
                channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
                meter.count();
                left.countDown();
            }, tag -> {});
            if (!left.await(Backlog.SECONDS_MAX, TimeUnit.SECONDS)) {
                throw new IllegalStateException(left.getCount() + " messages never came");
            }
        }
    }

    private static Workload fixedRate(int producers, int queues) {
        return (clients, meter) -> {
            Semaphore unbounded = new Semaphore(0);
            for (int i = 0; i < queues; i++) {
                clients.listen(clients.queue(clients.name + "." + i, true), unbounded);
            }
            for (int i = 0; i < producers; i++) {
                String queue = clients.name + "." + i % queues;
                RabbitClients.Producer producer = clients.producer("", queue, true);
                FixedRate.start(clients, () -> producer.send(RabbitClients.body()), i, producers);
            }
            measure(clients, meter, unbounded);
        };
    }

    /** Replies go to a queue of the client's own, which ends with its connection. */
    private static void roundTrips(RabbitClients clients, Meter meter) throws Exception {
        String queue = clients.queue(false);
        for (int i = 0; i < RequestReply.PAIRS; i++) {
            Channel channel = clients.channel();
            channel.basicQos(RabbitClients.PREFETCH);
            channel.basicConsume(queue, false, (tag, request) -> {
                BasicProperties asked = request.getProperties();
                BasicProperties told = new BasicProperties.Builder()
                        .correlationId(asked.getCorrelationId()).build();
                channel.basicPublish("", asked.getReplyTo(), told, "done".getBytes());
                channel.basicAck(request.getEnvelope().getDeliveryTag(), false);
            }, tag -> {});
        }
        for (int i = 0; i < RequestReply.PAIRS; i++) {
            Channel channel = clients.channel();
            clients.run(() -> ask(clients, meter, channel, queue));
        }
        measure(clients, meter, new Semaphore(0));
    }

    private static void ask(RabbitClients clients, Meter meter, Channel channel, String queue)
            throws Exception {
        Meter.Recorder recorder = meter.recorder();
        String own = channel.queueDeclare().getQueue();
        BlockingQueue<Delivery> answers = consume(channel, own, true);
        for (long number = 0; !clients.stopping(); number++) {
            String identity = Long.toString(number);
            BasicProperties asked = new BasicProperties.Builder()
                    .deliveryMode(RabbitClients.mode(false))
                    .correlationId(identity).replyTo(own).build();
            long began = System.nanoTime();
            channel.basicPublish("", queue, asked, RabbitClients.body());
            Delivery reply = answers.poll(ANSWER_SECONDS_MAX, TimeUnit.SECONDS);
            if (reply == null || !identity.equals(reply.getProperties().getCorrelationId())) {
                throw new IllegalStateException("no answer, or that of another request");
            }
            recorder.record(System.nanoTime() - began);
            meter.count();
        }
    }

    /** Something that clients can do to a RabbitMQ while a meter runs. */
    @FunctionalInterface
    interface Workload {
        void run(RabbitClients clients, Meter meter) throws Exception;
    }
}
