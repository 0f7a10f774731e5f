package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** What one push consumer gets. */
final class Consuming {
    private Consuming() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("push-concurrently", Consuming::concurrently);
        scenarios.put("push-orderly", Consuming::orderly);
        scenarios.put("push-tags", Consuming::tags);
        scenarios.put("push-sql", Consuming::sql);
        scenarios.put("push-sql-refused", Consuming::sqlRefused);
        scenarios.put("push-from-first", Consuming::fromFirst);
        scenarios.put("push-from-last", Consuming::fromLast);
        scenarios.put("push-from-time", Consuming::fromTime);
        scenarios.put("push-goes-on", Consuming::goesOn);
        scenarios.put("push-suspended", Consuming::suspended);
        scenarios.put("push-two-topics", Consuming::twoTopics);
        scenarios.put("push-unsubscribed", Consuming::unsubscribed);
        scenarios.put("push-several-at-once", Consuming::severalAtOnce);
        scenarios.put("push-added-queues", Consuming::addedQueues);
        scenarios.put("push-quickly", Consuming::quickly);
    }

    private static void concurrently(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        var got = scene.started(scene.consumer(), topic);
        scene.fill(topic, 4, 0, 20);
        scene.saw("%s", Scene.sorted(got, 20));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void orderly(Scene scene) throws Exception {
        String topic = scene.topic("a", 3);
        scene.fill(topic, 3, 0, 30);
        Map<Integer, List<String>> seen = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(message -> seen
                    .computeIfAbsent(message.getQueueId(),
                            id -> Collections.synchronizedList(new ArrayList<>()))
                    .add(Scene.text(message)));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Scene.until(() -> seen.values().stream().mapToInt(List::size).sum() == 30, "30 messages");
        scene.saw("%s", new TreeMap<>(seen));
    }

    private static void tags(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic, "red || blue");
        for (String tag : List.of("red", "green", "blue", "redder")) {
            scene.producer().send(Scene.message(topic, tag, "is " + tag));
        }
        scene.producer().send(Scene.message(topic, "no tag"));
        scene.producer().send(Scene.message(topic, "red", "the last"));
        scene.saw("%s", Scene.sorted(got, 3));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void sql(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, MessageSelector.bySql(
                "(TAGS IS NOT NULL AND TAGS IN ('a', 'b')) AND n BETWEEN 2 AND 5"
                        + " OR name = 'always'"));
        var got = Scene.collected(consumer);
        consumer.start();
        for (int number = 0; number < 8; number++) {
            Message message = Scene.message(topic, number % 2 == 0 ? "a" : "c", "m" + number);
            message.putUserProperty("n", "" + number);
            if (number == 7) {
                message.putUserProperty("name", "always");
            }
            scene.producer().send(message);
        }
        scene.saw("%s", Scene.sorted(got, 3));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void sqlRefused(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, MessageSelector.bySql("a >"));
        Scene.collected(consumer);
        try {
            consumer.start();
            scene.saw("started");
        } catch (MQClientException refused) {
            scene.saw("code %d", refused.getResponseCode());
        }
    }

    private static void fromFirst(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        var got = scene.started(scene.consumer(), topic);
        scene.saw("%s", Scene.sorted(got, 3));
        scene.fill(topic, 1, 3, 5);
        scene.saw("%s", Scene.sorted(got, 2));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void fromLast(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        var got = scene.started(consumer, topic);
        scene.saw("%s", Scene.sorted(got, 3));
        scene.fill(topic, 1, 3, 5);
        scene.saw("%s", Scene.sorted(got, 2));
    }

    private static void fromTime(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        Thread.sleep(2_100);
        long time = System.currentTimeMillis();
        scene.fill(topic, 1, 3, 5);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        consumer.setConsumeTimestamp(UtilAll.timeMillisToHumanString3(time));
        var got = scene.started(consumer, topic);
        scene.saw("%s", Scene.next(got, 1).size() == 1 ? "something came" : "");
        Scene.surplus(got);
    }

    private static void goesOn(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 6);
        DefaultMQPushConsumer first = scene.consumer();
        scene.saw("%s", Scene.sorted(scene.started(first, topic), 6));
        scene.leave(first, topic);
        scene.fill(topic, 2, 6, 10);
        var got = scene.started(scene.consumer(), topic);
        scene.saw("%s", Scene.sorted(got, 4));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void suspended(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        var got = scene.started(consumer, topic);
        scene.fill(topic, 1, 0, 1);
        scene.saw("%s", Scene.sorted(got, 1));
        consumer.suspend();
        Thread.sleep(1_500);
        consumer.resume();
        scene.fill(topic, 1, 1, 3);
        scene.saw("%s", Scene.sorted(got, 2));
    }

    private static void twoTopics(Scene scene) throws Exception {
        String one = scene.topic("a", 2);
        String other = scene.topic("b", 2);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(other, "*");
        var got = scene.started(consumer, one);
        scene.producer().send(Scene.message(one, "one"));
        scene.producer().send(Scene.message(other, "other"));
        scene.saw("%s", Scene.sorted(got, 2));
    }

    private static void unsubscribed(Scene scene) throws Exception {
        String one = scene.topic("a", 1);
        String other = scene.topic("b", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(other, "*");
        var got = scene.started(consumer, one);
        scene.producer().send(Scene.message(one, "one"));
        scene.saw("%s", Scene.sorted(got, 1));
        consumer.unsubscribe(one);
        Thread.sleep(2_500);
        scene.producer().send(Scene.message(one, "unheard"));
        scene.producer().send(Scene.message(other, "other"));
        scene.saw("%s", Scene.sorted(got, 1));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void severalAtOnce(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 10);
        List<List<String>> handed = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setConsumeMessageBatchMaxSize(4);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            handed.add(Scene.texts(messages));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Scene.until(() -> handed.stream().mapToInt(List::size).sum() == 10, "10 messages");
        scene.saw("%s", handed);
    }

    private static void addedQueues(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        scene.fill(topic, 1, 0, 2);
        scene.saw("%s", Scene.sorted(got, 2));
        scene.declare(topic, 3, 6);
        scene.fill(topic, 3, 2, 8);
        scene.saw("%s", Scene.sorted(got, 6));
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void quickly(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        scene.fill(topic, 1, 0, 1);
        Scene.next(got);
        // The pull waits at the broker for some seconds: what comes is there at once.
        long slowest = 0;
        for (int number = 1; number < 6; number++) {
            Thread.sleep(300);
            long before = System.currentTimeMillis();
            scene.fill(topic, 1, number, number + 1);
            Scene.next(got);
            slowest = Math.max(slowest, System.currentTimeMillis() - before);
        }
        scene.saw("within two seconds %s", slowest < 2_000);
    }
}
