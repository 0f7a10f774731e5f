package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.common.message.MessageExt;

/** Groups with several members. */
final class Sharing {
    private Sharing() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("group-shares", Sharing::shares);
        scenarios.put("group-broadcast", Sharing::broadcast);
        scenarios.put("group-two-groups", Sharing::twoGroups);
        scenarios.put("group-member-leaves", Sharing::leaves);
        scenarios.put("group-more-members-than-queues", Sharing::moreMembers);
        scenarios.put("group-by-circle", Sharing::byCircle);
        scenarios.put("group-orderly-moves", Sharing::orderlyMoves);
    }

    private static long queues(Scene scene, DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
                .keySet().stream().filter(queue -> queue.getTopic().equals(topic)).count();
    }

    private static List<Long> owned(
            Scene scene, String topic, List<Long> wanted, DefaultMQPushConsumer... members)
            throws Exception {
        return Scene.eventually(wanted, () -> Stream.of(members)
                .map(member -> queues(scene, member, topic)).sorted().toList());
    }

    private static void shares(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        DefaultMQPushConsumer one = scene.consumer();
        DefaultMQPushConsumer other = scene.consumer();
        var first = scene.started(one, topic);
        scene.saw("alone %s", owned(scene, topic, List.of(4L), one));
        var second = scene.started(other, topic);
        scene.saw("together %s", owned(scene, topic, List.of(2L, 2L), one, other));
        scene.fill(topic, 4, 0, 20);
        Scene.until(() -> first.size() + second.size() >= 20, "20 messages");
        Thread.sleep(Scene.NEVER);
        scene.saw("%d and %d", first.size(), second.size());
    }

    private static void broadcast(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        List<BlockingQueue<MessageExt>> all = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            DefaultMQPushConsumer consumer = scene.consumer();
            Line.broadcast(consumer);
            all.add(scene.started(consumer, topic));
        }
        scene.fill(topic, 2, 0, 4);
        for (BlockingQueue<MessageExt> got : all) {
            scene.saw("%s", Scene.sorted(got, 4));
            scene.saw("surplus %s", Scene.surplus(got));
        }
    }

    private static void twoGroups(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        var one = scene.started(scene.consumer(scene.group("one")), topic);
        var other = scene.started(scene.consumer(scene.group("other")), topic);
        scene.fill(topic, 2, 0, 4);
        scene.saw("%s", Scene.sorted(one, 4));
        scene.saw("%s", Scene.sorted(other, 4));
    }

    private static void leaves(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        DefaultMQPushConsumer one = scene.consumer();
        DefaultMQPushConsumer other = scene.consumer();
        var first = scene.started(one, topic);
        var second = scene.started(other, topic);
        scene.saw("together %s", owned(scene, topic, List.of(2L, 2L), one, other));
        scene.fill(topic, 4, 0, 8);
        Scene.until(() -> first.size() + second.size() == 8, "8 messages");
        other.shutdown();
        scene.saw("alone %s", owned(scene, topic, List.of(4L), one));
        scene.fill(topic, 4, 8, 16);
        List<String> later = IntStream.range(8, 16).mapToObj(number -> "m" + number).toList();
        Scene.until(() -> Scene.texts(first).containsAll(later), "all that was sent later");
        scene.saw("%s", later);
    }

    private static void moreMembers(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        DefaultMQPushConsumer[] members = {scene.consumer(), scene.consumer(), scene.consumer()};
        List<BlockingQueue<MessageExt>> got = new ArrayList<>();
        for (DefaultMQPushConsumer member : members) {
            got.add(scene.started(member, topic));
        }
        scene.saw("%s", owned(scene, topic, List.of(0L, 1L, 1L), members));
        scene.fill(topic, 2, 0, 6);
        Scene.until(() -> got.stream().mapToInt(BlockingQueue::size).sum() == 6, "6 messages");
        scene.saw("%s", got.stream().map(BlockingQueue::size).sorted().toList());
    }

    private static void byCircle(Scene scene) throws Exception {
        String topic = scene.topic("a", 5);
        DefaultMQPushConsumer[] members = {scene.consumer(), scene.consumer()};
        for (DefaultMQPushConsumer member : members) {
            member.setAllocateMessageQueueStrategy(new AllocateMessageQueueAveragelyByCircle());
            scene.started(member, topic);
        }
        scene.saw("%s", owned(scene, topic, List.of(2L, 3L), members));
        List<List<Integer>> ids = Scene.eventually(
                List.of(List.of(0, 2, 4), List.of(1, 3)),
                () -> Stream.of(members).map(member -> ids(member, topic))
                        .sorted((a, b) -> b.size() - a.size()).toList());
        scene.saw("%s", ids);
    }

    private static List<Integer> ids(DefaultMQPushConsumer member, String topic) {
        return member.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
                .keySet().stream().filter(queue -> queue.getTopic().equals(topic))
                .map(queue -> queue.getQueueId()).sorted().toList();
    }

    private static void orderlyMoves(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        Map<Integer, List<String>> seen = new ConcurrentHashMap<>();
        DefaultMQPushConsumer one = orderly(scene, topic, seen);
        scene.fill(topic, 4, 0, 40);
        Scene.until(() -> count(seen) >= 10, "some messages");
        DefaultMQPushConsumer other = orderly(scene, topic, seen);
        scene.saw("together %s", owned(scene, topic, List.of(2L, 2L), one, other));
        scene.fill(topic, 4, 40, 80);
        Scene.until(() -> distinct(seen) == 80, "all messages");
        Map<Integer, List<String>> firsts = new TreeMap<>();
        seen.forEach((queue, texts) -> firsts.put(queue, texts.stream().distinct().toList()));
        scene.saw("%s", firsts);
    }

    private static int count(Map<Integer, List<String>> seen) {
        return seen.values().stream().mapToInt(List::size).sum();
    }

    private static long distinct(Map<Integer, List<String>> seen) {
        return seen.values().stream().mapToLong(texts -> List.copyOf(texts).stream().distinct()
                .count()).sum();
    }

    private static DefaultMQPushConsumer orderly(
            Scene scene, String topic, Map<Integer, List<String>> seen) throws Exception {
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
        return consumer;
    }
}
