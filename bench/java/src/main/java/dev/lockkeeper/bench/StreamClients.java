package dev.lockkeeper.bench;

import java.net.URI;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The producers and groups of one run, with RocketMQ's client, each with own connections. */
final class StreamClients extends Workers {

    private static final int BODY_BYTES = 1024;
    private static final int PARTITIONS = 4;
    private static final long START_MILLIS_MAX = 60_000;
    private static final long RETRY_MILLIS = 200;

    private final String address;
    private final String topic;
    private final Meter meter;
    private final List<DefaultMQProducer> producers = new ArrayList<>();
    private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();

    StreamClients(String url, String name, Meter meter) throws Exception {
        super(meter);
        URI server = URI.create(url);
        this.address = server.getHost() + ":" + server.getPort();
        this.topic = name.replace('.', '-');
        this.meter = meter;
        create(started());
    }

    /** Makes the topic, as soon as the broker is known to the name server. */
    private void create(DefaultMQProducer producer) throws Exception {
        long deadline = System.currentTimeMillis() + START_MILLIS_MAX;
        while (true) {
            try {
                producer.createTopic("TBW102", topic, PARTITIONS, Map.of());
                producer.fetchPublishMessageQueues(topic);
                return;
            } catch (MQClientException early) {
                if (System.currentTimeMillis() > deadline) {
                    throw early;
                }
                Thread.sleep(RETRY_MILLIS);
            }
        }
    }

    private DefaultMQProducer started() throws MQClientException {
        DefaultMQProducer producer = new DefaultMQProducer("bench");
        producer.setNamesrvAddr(address);
        producer.start();
        producers.add(producer);
        return producer;
    }

    /** Returns something that sends a message and waits until it is on the disk. */
    Task producer() throws MQClientException {
        DefaultMQProducer producer = started();
        return () -> {
            byte[] body =
                    ByteBuffer.allocate(BODY_BYTES).putLong(System.nanoTime()).array();
            SendResult result = producer.send(new Message(topic, body));
            if (result.getSendStatus() != SendStatus.SEND_OK) {
                throw new IllegalStateException("sent: " + result.getSendStatus());
            }
        };
    }

    /** Consumes with a group of one member. */
    void consume(String group, Semaphore permits) throws MQClientException {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(topic + "-" + group);
        consumer.setNamesrvAddr(address);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        Meter.Recorder recorder = meter.recorder();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                long sent = ByteBuffer.wrap(message.getBody()).getLong();
                recorder.record(System.nanoTime() - sent);
                meter.count();
                permits.release();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        consumers.add(consumer);
    }

    @Override
    public void close() {
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        producers.forEach(DefaultMQProducer::shutdown);
    }
}
