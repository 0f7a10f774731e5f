package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that a consumer could not cope with. */
final class Retrying {
    private Retrying() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("retry-later", Retrying::later);
        scenarios.put("retry-thrown", Retrying::thrown);
        scenarios.put("retry-level", Retrying::level);
        scenarios.put("retry-some-of-several", Retrying::someOfSeveral);
        scenarios.put("retry-dead-letter", Retrying::deadLetter);
        scenarios.put("retry-at-once-dead", Retrying::atOnceDead);
        scenarios.put("retry-orderly", Retrying::orderly);
        scenarios.put("retry-orderly-dead-letter", Retrying::orderlyDeadLetter);
        scenarios.put("retry-broadcast", Retrying::broadcast);
        scenarios.put("retry-tags", Retrying::tags);
    }

    /** Consumes one by one; returns what was seen, which grows. */
    private static List<String> consume(
            DefaultMQPushConsumer consumer, String topic,
            Function<MessageExt, ConsumeConcurrentlyStatus> verdict)
            throws Exception {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            seen.add(String.format(
                    "%s again %d topic %s system flag %d %s", Scene.text(message),
                    message.getReconsumeTimes(), message.getTopic(), message.getSysFlag(),
                    Scene.properties(message)));
            return verdict.apply(message);
        });
        consumer.start();
        return seen;
    }

    private static void later(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var seen = consume(scene.consumer(), topic, message -> message.getReconsumeTimes() < 2
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                : ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        Message message = Scene.message(topic, "tag", "m");
        message.setKeys("key");
        message.putUserProperty("mine", "1");
        scene.producer().send(message);
        Scene.until(() -> seen.size() == 3, "three times");
        Thread.sleep(Scene.NEVER);
        seen.forEach(scene::saw);
    }

    private static void thrown(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var seen = consume(scene.consumer(), topic, message -> {
            if (message.getReconsumeTimes() == 0) {
                throw new IllegalStateException("a listener that fails");
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        scene.fill(topic, 1, 0, 1);
        Scene.until(() -> seen.size() == 2, "twice");
        seen.forEach(scene::saw);
    }

    private static void level(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            seen.add(message.getReconsumeTimes() + " " + message.getProperty("DELAY"));
            context.setDelayLevelWhenNextConsume(2);
            return message.getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        scene.fill(topic, 1, 0, 1);
        Scene.until(() -> seen.size() == 2, "twice");
        seen.forEach(scene::saw);
    }

    private static void someOfSeveral(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 4);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setConsumeMessageBatchMaxSize(4);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(each -> seen.add(Scene.text(each) + " " + each.getReconsumeTimes()));
            context.setAckIndex(1);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Scene.until(() -> seen.size() >= 6, "four and two again");
        Thread.sleep(Scene.NEVER);
        scene.saw("%s", seen.stream().sorted().distinct().toList());
    }

    private static void deadLetter(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setMaxReconsumeTimes(1);
        var seen = consume(
                consumer, topic, message -> ConsumeConcurrentlyStatus.RECONSUME_LATER);
        Message message = Scene.message(topic, "tag", "poison");
        message.putUserProperty("mine", "1");
        scene.producer().send(message);
        told(scene, deadLetters(scene));
        seen.forEach(scene::saw);
    }

    /** Waits for the queue of dead letters and returns the first one. */
    private static MessageExt deadLetters(Scene scene) throws Exception {
        String dead = "%DLQ%" + scene.group();
        Scene.eventually(1, () -> scene.admin().examineTopicRouteInfo(dead).getQueueDatas().size());
        var queue = scene.admin().examineTopicRouteInfo(dead).getQueueDatas().get(0);
        scene.saw(
                "dead letters: %d write queues, %d read queues, permission %d",
                queue.getWriteQueueNums(), queue.getReadQueueNums(), queue.getPerm());
        scene.declare(dead, 1, 6);
        return Scene.next(scene.started(scene.consumer(scene.group("undertaker")), dead));
    }

    private static void told(Scene scene, MessageExt dead) {
        scene.saw(
                "dead: %s again %d topic %s %s", Scene.text(dead), dead.getReconsumeTimes(),
                dead.getTopic(), Scene.properties(dead));
    }

    private static void atOnceDead(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            seen.add(Scene.text(messages.get(0)));
            context.setDelayLevelWhenNextConsume(-1);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        scene.fill(topic, 1, 0, 1);
        told(scene, deadLetters(scene));
        scene.saw("%s", seen);
    }

    private static void orderly(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 4);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            MessageExt message = messages.get(0);
            String text = Scene.text(message);
            seen.add(text + " " + message.getReconsumeTimes());
            if (text.equals("m1") && message.getReconsumeTimes() < 2) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Scene.until(() -> seen.size() == 6, "four and two again");
        scene.saw("%s", seen);
    }

    private static void orderlyDeadLetter(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.setMaxReconsumeTimes(1);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            String text = Scene.text(messages.get(0));
            seen.add(text + " " + messages.get(0).getReconsumeTimes());
            return text.equals("m1") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                    : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        told(scene, deadLetters(scene));
        Scene.until(() -> seen.contains("m2 0"), "the next one");
        scene.saw("%s", seen);
    }

    private static void broadcast(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPushConsumer consumer = scene.consumer();
        Line.broadcast(consumer);
        var seen = consume(
                consumer, topic, message -> ConsumeConcurrentlyStatus.RECONSUME_LATER);
        scene.fill(topic, 1, 0, 1);
        Scene.until(() -> seen.size() == 1, "once");
        Thread.sleep(2 * Scene.NEVER);
        seen.forEach(scene::saw);
    }

    private static void tags(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = scene.consumer();
        consumer.subscribe(topic, "red");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            seen.add(Scene.text(message) + " " + message.getReconsumeTimes());
            return message.getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        scene.producer().send(Scene.message(topic, "green", "green"));
        scene.producer().send(Scene.message(topic, "red", "red"));
        Scene.until(() -> seen.size() == 2, "twice");
        scene.saw("%s", seen);
    }
}
