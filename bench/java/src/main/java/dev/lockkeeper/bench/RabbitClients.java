package dev.lockkeeper.bench;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import javax.net.ssl.SSLContext;

/** The producers and consumers of one run at a RabbitMQ, each on a connection of its own. */
final class RabbitClients extends Workers {

    static final int BODY_BYTES = 1024;
    /** As many as ActiveMQ's client asks for from a queue. */
    static final int PREFETCH = 1000;
    private static final long CONFIRM_MILLIS_MAX = 30_000;
    private static final int VOLATILE = 1;
    private static final int PERSISTENT = 2;

    final String name;
    private final ConnectionFactory factory = new ConnectionFactory();
    private final ExecutorService listeners = Executors.newCachedThreadPool();
    private final Meter meter;
    private final List<Connection> connections = new ArrayList<>();
    private final List<String> queues = new ArrayList<>();
    private final Channel declaring;

    RabbitClients(String url, String name, Meter meter) throws Exception {
        super(meter);
        this.name = name;
        this.meter = meter;
        URI address = URI.create(url);
        factory.setHost(address.getHost());
        factory.setPort(address.getPort());
        factory.setSharedExecutor(listeners);
        if (address.getScheme().equals("amqps")) {
            factory.useSslProtocol(SSLContext.getDefault());
            factory.enableHostnameVerification();
        }
        declaring = channel();
    }

    /** Returns a channel on a connection of its own. */
    Channel channel() throws Exception {
        Connection connection = factory.newConnection();
        connections.add(connection);
        return connection.createChannel();
    }

    /** Declares the queue of this run. */
    String queue(boolean persistent) throws Exception {
        return queue(name, persistent);
    }

    /**
     * Declares a queue, which is deleted at the end: a quorum queue for persistent messages, since
     * it syncs them before it confirms them and is faster at that than a durable classic queue;
     * else a classic queue, since a quorum queue writes every message.
     */
    String queue(String queue, boolean persistent) throws Exception {
        Map<String, Object> kind = Map.of("x-queue-type", persistent ? "quorum" : "classic");
        declaring.queueDeclare(queue, true, false, false, kind);
        queues.add(queue);
        return queue;
    }

    /** Declares the exchange that stands for a topic: each queue bound to it gets everything. */
    String topic() throws Exception {
        declaring.exchangeDeclare(name, "fanout", false, true, null);
        return name;
    }

    /** Declares a durable queue that gets everything of a topic, also while nobody listens. */
    String durable(String topic, String queue) throws Exception {
        declaring.queueBind(queue(queue, true), topic, "");
        return queue;
    }

    /** Returns a producer that waits for a confirm of each message when they are persistent. */
    Producer producer(String exchange, String key, boolean persistent) throws Exception {
        Channel channel = channel();
        if (persistent) {
            channel.confirmSelect();
        }
        BasicProperties properties =
                new BasicProperties.Builder().deliveryMode(mode(persistent)).build();
        return body -> {
            channel.basicPublish(exchange, key, properties, body);
            if (persistent) {
                channel.waitForConfirmsOrDie(CONFIRM_MILLIS_MAX);
            }
        };
    }

    static int mode(boolean persistent) {
        return persistent ? PERSISTENT : VOLATILE;
    }

    /** Returns a body of 1 KiB that starts with the time of its sending. */
    static byte[] body() {
        return body(BODY_BYTES);
    }

    /** Returns a body of so many bytes that starts with the time of its sending. */
    static byte[] body(int bytes) {
        return ByteBuffer.allocate(bytes).putLong(System.nanoTime()).array();
    }

    /** Returns how long ago a message was sent, in ns. */
    static long age(Delivery delivery) {
        return System.nanoTime() - ByteBuffer.wrap(delivery.getBody()).getLong();
    }

    /** Consumes with a listener that acknowledges each message. */
    void listen(String queue, Semaphore permits) throws Exception {
        Channel channel = channel();
        channel.basicQos(PREFETCH);
        Meter.Recorder recorder = meter.recorder();
        channel.basicConsume(queue, false, (tag, delivery) -> {
            recorder.record(age(delivery));
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
            meter.count();
            permits.release();
        }, tag -> {});
    }

    /** Consumes from a queue of its own, bound to an exchange, which needs no acknowledgements. */
    void subscribe(String exchange, Semaphore permits) throws Exception {
        Channel channel = channel();
        String own = channel.queueDeclare().getQueue();
        channel.queueBind(own, exchange, "");
        Meter.Recorder recorder = meter.recorder();
        channel.basicConsume(own, true, (tag, delivery) -> {
            recorder.record(age(delivery));
            meter.count();
            permits.release();
        }, tag -> {});
    }

    @Override
    public void close() throws Exception {
        for (String queue : queues) {
            declaring.queueDelete(queue);
        }
        for (Connection connection : connections) {
            try {
                connection.close();
            } catch (IOException exception) {
                connection.abort();
            }
        }
        listeners.shutdownNow();
    }

    /** Something that sends bodies. */
    @FunctionalInterface
    interface Producer {
        void send(byte[] body) throws Exception;
    }
}
