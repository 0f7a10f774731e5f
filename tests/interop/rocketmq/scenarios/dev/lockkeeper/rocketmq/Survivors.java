package dev.lockkeeper.rocketmq;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A producer and two groups of two members each while their broker changes: {@code Survivors
 * ADDRESSES TOPIC QUEUES BROKER}. For each queue a thread sends numbers one after the other, and
 * each again until it is answered.
 *
 * <p>Prints "sent QUEUE OFFSET NUMBER", "unsure QUEUE NUMBER" where a number had no answer, and
 * "KIND MEMBER QUEUE OFFSET NUMBER" for what is consumed, KIND being the group, orderly or
 * concurrently. A line of the standard input ends the sending, its end ends the program.
 */
public final class Survivors {
    private static final int INTERVAL = Integer.getInteger("survivors.interval", 500);

    private static final int ATTEMPTS_MAX = 60;

    private final String addresses;
    private final String topic;
    private volatile boolean isSending = true;

    private Survivors(String addresses, String topic) {
        this.addresses = addresses;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        Survivors survivors = new Survivors(arguments[0], arguments[1]);
        survivors.run(Integer.parseInt(arguments[2]), arguments[3]);
        System.exit(0);
    }

    private void run(int queues, String broker) throws Exception {
        for (int number = 0; number < 2; number++) {
            int member = number;
            persistently(() -> consume("orderly", member));
            persistently(() -> consume("concurrently", member));
        }
        DefaultMQProducer producer = persistently(this::producer);
        CountDownLatch ended = new CountDownLatch(queues);
        for (int queue = 0; queue < queues; queue++) {
            MessageQueue to = new MessageQueue(topic, broker, queue);
            new Thread(() -> {
                send(producer, to);
                ended.countDown();
            }).start();
        }
        System.in.read();
        isSending = false;
        ended.await();
        print("ended");
        while (System.in.read() >= 0) {
            continue;
        }
    }

    /**
     * Makes a client, again if need be: one of the line 5 does not start that asks the standby
     * first, which does not listen.
     */
    private static <C> C persistently(Callable<C> made) throws Exception {
        for (int attempt = 1; ; attempt++) {
            try {
                return made.call();
            } catch (IllegalStateException refused) {
                if (attempt == ATTEMPTS_MAX) {
                    throw refused;
                }
                pause(500);
            }
        }
    }

    private DefaultMQProducer producer() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("survivors");
        prepare(producer);
        producer.start();
        return producer;
    }

    private void prepare(ClientConfig client) {
        client.setNamesrvAddr(addresses);
        client.setInstanceName("survivor-" + System.nanoTime());
        client.setPollNameServerInterval(INTERVAL);
        client.setHeartbeatBrokerInterval(INTERVAL);
        client.setPersistConsumerOffsetInterval(500);
    }

    private void send(DefaultMQProducer producer, MessageQueue queue) {
        for (int number = 0; isSending; number++) {
            while (!sends(producer, queue, number)) {
                print("unsure %d %d", queue.getQueueId(), number);
                pause(100);
            }
            pause(5);
        }
    }

    private boolean sends(DefaultMQProducer producer, MessageQueue queue, int number) {
        try {
            var sent = producer.send(Scene.message(topic, "" + number), queue);
            if (sent.getSendStatus() != SendStatus.SEND_OK) {
                return false;
            }
            print("sent %d %d %d", queue.getQueueId(), sent.getQueueOffset(), number);
            return true;
        } catch (Exception unanswered) {
            return false;
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private DefaultMQPushConsumer consume(String kind, int member) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("survivors-" + kind);
        prepare(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        consumer.subscribe(topic, "*");
        if (kind.equals("orderly")) {
            consumer.registerMessageListener(
                    (MessageListenerOrderly) (List<MessageExt> messages,
                            ConsumeOrderlyContext context) -> {
                        messages.forEach(message -> print(kind, member, message));
                        return ConsumeOrderlyStatus.SUCCESS;
                    });
        } else {
            consumer.registerMessageListener(
                    (MessageListenerConcurrently) (List<MessageExt> messages,
                            ConsumeConcurrentlyContext context) -> {
                        messages.forEach(message -> print(kind, member, message));
                        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                    });
        }
        consumer.start();
        return consumer;
    }

    private static void print(String kind, int member, MessageExt message) {
        print("%s %d %d %d %s", kind, member, message.getQueueId(), message.getQueueOffset(),
                Scene.text(message));
    }

    private static synchronized void print(String format, Object... values) {
        System.out.println(String.format(format, values));
        System.out.flush();
    }
}
