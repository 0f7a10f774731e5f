package dev.lockkeeper.rocketmq;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group beside those in other languages: {@code Member ADDRESS GROUP TOPIC orderly}
 * or {@code concurrently}. Prints each message that it consumes, "QUEUE TEXT"; a line of its
 * standard input that is not empty is sent to the topic, with itself as the key of the queue.
 * Leaves the group when the input ends.
 */
public final class Member {
    private Member() {}

    public static void main(String[] arguments) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments[1]);
        consumer.setNamesrvAddr(arguments[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(500);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.setInstanceName("member-" + System.nanoTime());
        consumer.subscribe(arguments[2], "*");
        if (arguments[3].equals("orderly")) {
            consumer.registerMessageListener(
                    (MessageListenerOrderly) (List<MessageExt> messages,
                            ConsumeOrderlyContext context) -> {
                        messages.forEach(Member::print);
                        return ConsumeOrderlyStatus.SUCCESS;
                    });
        } else {
            consumer.registerMessageListener(
                    (MessageListenerConcurrently) (List<MessageExt> messages,
                            ConsumeConcurrentlyContext context) -> {
                        messages.forEach(Member::print);
                        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                    });
        }
        consumer.start();
        DefaultMQProducer producer = new DefaultMQProducer("member-producers");
        producer.setNamesrvAddr(arguments[0]);
        producer.setInstanceName("producer-" + System.nanoTime());
        producer.setSendMsgTimeout(Scene.SEND_TIMEOUT);
        producer.start();
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (!line.isEmpty()) {
                Message message = Scene.message(arguments[2], line);
                producer.send(message, new SelectMessageQueueByHash(), line);
            }
        }
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }

    private static void print(MessageExt message) {
        synchronized (System.out) {
            System.out.println(message.getQueueId() + " " + Scene.text(message));
            System.out.flush();
        }
    }
}
