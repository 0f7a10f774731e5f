package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that ask: DefaultLitePullConsumer, and DefaultMQPullConsumer below it. */
final class Pulling {
    private Pulling() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("lite-subscribe", Pulling::subscribe);
        scenarios.put("lite-goes-on", Pulling::goesOn);
        scenarios.put("lite-commit", Pulling::commit);
        scenarios.put("lite-assign", Pulling::assign);
        scenarios.put("lite-seek", Pulling::seek);
        scenarios.put("lite-pause", Pulling::pause);
        scenarios.put("lite-tags", Pulling::tags);
        scenarios.put("lite-sql", Pulling::sql);
        scenarios.put("lite-offset-of-time", Pulling::offsetOfTime);
        scenarios.put("pull-statuses", Pulling::statuses);
        scenarios.put("pull-waiting", Pulling::waiting);
        scenarios.put("pull-offsets", Pulling::offsets);
        scenarios.put("pull-progress", Pulling::progress);
        scenarios.put("pull-send-back", Pulling::sendBack);
    }

    /** Polls until so many messages came; returns their texts, sorted. */
    private static List<String> polled(DefaultLitePullConsumer consumer, int count) {
        List<MessageExt> got = new ArrayList<>();
        long deadline = System.currentTimeMillis() + Scene.SOON;
        while (got.size() < count && System.currentTimeMillis() < deadline) {
            got.addAll(consumer.poll(200));
        }
        return Scene.texts(got).stream().sorted().toList();
    }

    private static DefaultLitePullConsumer subscribed(Scene scene, String topic) throws Exception {
        DefaultLitePullConsumer consumer = scene.lite(scene.group());
        consumer.subscribe(topic, "*");
        consumer.start();
        return consumer;
    }

    private static DefaultLitePullConsumer assigned(Scene scene, String topic, int queues)
            throws Exception {
        DefaultLitePullConsumer consumer = scene.lite(scene.group());
        consumer.start();
        List<MessageQueue> assignment = new ArrayList<>();
        for (int id = 0; id < queues; id++) {
            assignment.add(scene.queue(topic, id));
        }
        consumer.assign(assignment);
        return consumer;
    }

    private static void subscribe(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 6);
        DefaultLitePullConsumer consumer = subscribed(scene, topic);
        scene.saw("%s", polled(consumer, 6));
        scene.saw("surplus %s", Scene.texts(consumer.poll(Scene.NEVER)));
    }

    private static void goesOn(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 6);
        DefaultLitePullConsumer first = subscribed(scene, topic);
        scene.saw("%s", polled(first, 6));
        first.commitSync();
        first.shutdown();
        scene.fill(topic, 2, 6, 8);
        scene.saw("%s", polled(subscribed(scene, topic), 2));
    }

    private static void commit(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 4);
        DefaultLitePullConsumer consumer = scene.lite(scene.group());
        consumer.setAutoCommit(false);
        consumer.subscribe(topic, "*");
        consumer.start();
        scene.saw("%s", polled(consumer, 4));
        MessageQueue queue = scene.queue(topic, 0);
        scene.saw("committed %d", consumer.committed(queue));
        consumer.commitSync();
        scene.saw("committed %d", Scene.eventually(4L, () -> consumer.committed(queue)));
    }

    private static void assign(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 2, 0, 6);
        DefaultLitePullConsumer consumer = assigned(scene, topic, 1);
        scene.saw("%s", polled(consumer, 3));
        scene.saw("surplus %s", Scene.texts(consumer.poll(Scene.NEVER)));
        scene.saw(
                "%s", consumer.fetchMessageQueues(topic).stream().map(MessageQueue::getQueueId)
                        .sorted().toList());
    }

    private static void seek(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 5);
        DefaultLitePullConsumer consumer = assigned(scene, topic, 1);
        MessageQueue queue = scene.queue(topic, 0);
        scene.saw("%s", polled(consumer, 5));
        consumer.seek(queue, 3);
        scene.saw("from 3 %s", polled(consumer, 2));
        consumer.seekToBegin(queue);
        scene.saw("from the beginning %s", polled(consumer, 5));
        consumer.seekToEnd(queue);
        scene.fill(topic, 1, 5, 6);
        scene.saw("from the end %s", polled(consumer, 1));
        scene.saw("beyond", () -> {
            consumer.seek(queue, 100);
            return "sought";
        });
    }

    private static void pause(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        DefaultLitePullConsumer consumer = assigned(scene, topic, 2);
        consumer.pause(List.of(scene.queue(topic, 0)));
        Thread.sleep(500);
        scene.fill(topic, 2, 0, 4);
        scene.saw("paused %s", polled(consumer, 2));
        consumer.resume(List.of(scene.queue(topic, 0)));
        scene.saw("resumed %s", polled(consumer, 2));
    }

    private static void tags(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultLitePullConsumer consumer = scene.lite(scene.group());
        consumer.subscribe(topic, "red || blue");
        consumer.start();
        for (String tag : List.of("red", "green", "blue")) {
            scene.producer().send(Scene.message(topic, tag, tag));
        }
        scene.saw("%s", polled(consumer, 2));
    }

    private static void sql(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultLitePullConsumer consumer = scene.lite(scene.group());
        consumer.subscribe(topic, MessageSelector.bySql("n > 1"));
        consumer.start();
        for (int number = 0; number < 4; number++) {
            Message message = Scene.message(topic, "m" + number);
            message.putUserProperty("n", "" + number);
            scene.producer().send(message);
        }
        scene.saw("%s", polled(consumer, 2));
    }

    private static void offsetOfTime(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        Thread.sleep(50);
        long between = System.currentTimeMillis();
        Thread.sleep(50);
        scene.fill(topic, 1, 3, 5);
        DefaultLitePullConsumer consumer = assigned(scene, topic, 1);
        MessageQueue queue = scene.queue(topic, 0);
        scene.saw("between %d", Scene.eventually(
                3L, () -> consumer.offsetForTimestamp(queue, between)));
        scene.saw("before all %d", consumer.offsetForTimestamp(queue, between - 60_000));
        scene.saw("after all %d", consumer.offsetForTimestamp(queue, between + 60_000));
    }

    private static String told(PullResult result) {
        String texts = result.getMsgFoundList() == null ? "none"
                : Scene.texts(result.getMsgFoundList()).toString();
        return String.format(
                "%s next %d min %d max %d %s", result.getPullStatus(), result.getNextBeginOffset(),
                result.getMinOffset(), result.getMaxOffset(), texts);
    }

    private static void statuses(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        for (String tag : List.of("red", "green", "red", "green")) {
            scene.producer().send(Scene.message(topic, tag, tag));
        }
        DefaultMQPullConsumer consumer = scene.pull();
        MessageQueue queue = scene.queue(topic, 0);
        Scene.eventually(4L, () -> consumer.maxOffset(queue));
        scene.saw("all", () -> told(consumer.pull(queue, "*", 0, 32)));
        scene.saw("two", () -> told(consumer.pull(queue, "*", 1, 2)));
        scene.saw("tagged", () -> told(consumer.pull(queue, "red", 0, 32)));
        scene.saw("not tagged", () -> told(consumer.pull(queue, "blue", 0, 32)));
        scene.saw("the end", () -> told(consumer.pull(queue, "*", 4, 32)));
        scene.saw("beyond", () -> told(consumer.pull(queue, "*", 5, 32)));
        scene.saw("far beyond", () -> told(consumer.pull(queue, "*", 500, 32)));
        scene.saw("empty queue", () -> told(
                consumer.pull(scene.queue(scene.topic("empty", 1), 0), "*", 0, 32)));
        scene.saw("empty, beyond", () -> told(
                consumer.pull(scene.queue(scene.topic("empty", 1), 0), "*", 7, 32)));
        scene.saw("no such queue", () -> told(consumer.pull(scene.queue(topic, 9), "*", 0, 32)));
    }

    private static void waiting(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQPullConsumer consumer = scene.pull();
        MessageQueue queue = scene.queue(topic, 0);
        Thread sender = new Thread(() -> {
            try {
                Thread.sleep(500);
                scene.fill(topic, 1, 0, 1);
            } catch (Exception failed) {
                scene.saw("sender: %s", failed);
            }
        });
        sender.start();
        scene.saw("waited", () -> told(consumer.pullBlockIfNotFound(queue, "*", 0, 32)));
        sender.join();
    }

    private static void offsets(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        scene.fill(topic, 1, 0, 3);
        DefaultMQPullConsumer consumer = scene.pull();
        for (int id = 0; id < 3; id++) {
            MessageQueue queue = scene.queue(topic, id);
            long expected = id == 0 ? 3 : 0;
            Scene.eventually(expected, () -> consumer.maxOffset(queue));
            scene.saw("max", () -> consumer.maxOffset(queue));
            scene.saw("min", () -> consumer.minOffset(queue));
            scene.saw("earliest known", () -> consumer.earliestMsgStoreTime(queue) > 0);
            scene.saw("of now", () -> consumer.searchOffset(queue, System.currentTimeMillis() + 1));
        }
    }

    private static void progress(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 3);
        DefaultMQPullConsumer consumer = scene.pull();
        MessageQueue queue = scene.queue(topic, 0);
        scene.saw("at first", () -> consumer.fetchConsumeOffset(queue, true));
        scene.saw("updated", () -> Scene.eventually(2L, () -> {
            // Before its first heartbeat nobody knows the group.
            consumer.updateConsumeOffset(queue, 2);
            consumer.getOffsetStore().persist(queue);
            Thread.sleep(200);
            return consumer.getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_STORE);
        }));
    }

    @SuppressWarnings("deprecation")
    private static void sendBack(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.producer().send(Scene.message(topic, "tag", "m"));
        DefaultMQPullConsumer consumer = scene.pull();
        MessageQueue queue = scene.queue(topic, 0);
        Scene.eventually(1L, () -> consumer.maxOffset(queue));
        MessageExt got = consumer.pull(queue, "*", 0, 32).getMsgFoundList().get(0);
        consumer.sendMessageBack(got, 1);
        MessageQueue retry = scene.queue("%RETRY%" + scene.group(), 0);
        Scene.eventually(1L, () -> consumer.maxOffset(retry));
        MessageExt again = consumer.pull(retry, "*", 0, 32).getMsgFoundList().get(0);
        scene.saw(
                "%s again %d topic %s %s", Scene.text(again), again.getReconsumeTimes(),
                again.getTopic(), Scene.properties(again));
    }
}
