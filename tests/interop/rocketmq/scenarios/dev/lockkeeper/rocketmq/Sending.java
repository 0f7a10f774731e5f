package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What producers do, and what consumers see of it. */
final class Sending {
    private static final int MEGABYTE = 1 << 20;

    private Sending() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("send-sync", Sending::sync);
        scenarios.put("send-async", Sending::async);
        scenarios.put("send-one-way", Sending::oneWay);
        scenarios.put("send-batch", Sending::batch);
        scenarios.put("send-selector", Sending::selector);
        scenarios.put("send-hash", Sending::hash);
        scenarios.put("send-to-all-queues", Sending::toAllQueues);
        scenarios.put("send-properties", Sending::properties);
        scenarios.put("send-characters", Sending::characters);
        scenarios.put("send-large", Sending::large);
        scenarios.put("send-compressed", Sending::compressed);
        scenarios.put("send-new-topic", Sending::newTopic);
        scenarios.put("send-many-at-once", Sending::manyAtOnce);
    }

    private static String result(SendResult result) {
        return String.format(
                "%s queue %d offset %d ids of %d and %d characters",
                result.getSendStatus(), result.getMessageQueue().getQueueId(),
                result.getQueueOffset(), result.getMsgId().length(),
                result.getOffsetMsgId().length());
    }

    private static void sync(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        for (int number = 0; number < 3; number++) {
            scene.saw(result(scene.producer().send(Scene.message(topic, "m" + number))));
        }
        var got = scene.started(scene.consumer(), topic);
        for (MessageExt message : byOffset(Scene.next(got, 3))) {
            scene.saw(
                    "%s queue %d offset %d flag %d system flag %d again %d prepared at %d",
                    Scene.text(message), message.getQueueId(), message.getQueueOffset(),
                    message.getFlag(), message.getSysFlag(), message.getReconsumeTimes(),
                    message.getPreparedTransactionOffset());
        }
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void async(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        for (int number = 0; number < 3; number++) {
            CompletableFuture<SendResult> sent = new CompletableFuture<>();
            scene.producer().send(Scene.message(topic, "m" + number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    sent.complete(result);
                }

                @Override
                public void onException(Throwable error) {
                    sent.completeExceptionally(error);
                }
            });
            scene.saw(result(sent.get(Scene.SOON, TimeUnit.MILLISECONDS)));
        }
        var got = scene.started(scene.consumer(), topic);
        scene.saw("got %s", Scene.sorted(got, 3));
    }

    private static List<MessageExt> byOffset(List<MessageExt> messages) {
        return messages.stream().sorted(Comparator.comparing(MessageExt::getQueueOffset)).toList();
    }

    private static void oneWay(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        for (int number = 0; number < 3; number++) {
            scene.producer().sendOneway(Scene.message(topic, "m" + number));
        }
        scene.saw("got %s", Scene.sorted(got, 3));
    }

    private static void batch(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.producer().send(Scene.message(topic, "first"));
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            Message message = Scene.message(topic, "tag" + number, "m" + number);
            message.putUserProperty("number", "" + number);
            message.setKeys("key" + number);
            message.setFlag(number);
            batch.add(message);
        }
        SendResult result = scene.producer().send(batch);
        scene.saw(
                "%s queue %d offset %d, %d ids, %d offset ids", result.getSendStatus(),
                result.getMessageQueue().getQueueId(), result.getQueueOffset(),
                result.getMsgId().split(",").length, result.getOffsetMsgId().split(",").length);
        var got = scene.started(scene.consumer(), topic);
        for (MessageExt message : byOffset(Scene.next(got, 4))) {
            scene.saw(
                    "%s offset %d flag %d %s", Scene.text(message), message.getQueueOffset(),
                    message.getFlag(), Scene.properties(message));
        }
    }

    private static void selector(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        for (int number = 0; number < 4; number++) {
            SendResult result = scene.producer().send(
                    Scene.message(topic, "m" + number),
                    (queues, message, argument) -> queues.stream()
                            .filter(queue -> queue.getQueueId() == (Integer) argument)
                            .findFirst().orElseThrow(),
                    3 - number);
            scene.saw(result(result));
        }
    }

    private static void hash(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        for (String key : List.of("one", "two", "three", "one", "two", "three")) {
            SendResult result = scene.producer().send(
                    Scene.message(topic, key), new SelectMessageQueueByHash(), key);
            scene.saw("%s: %s", key, result(result));
        }
    }

    private static void toAllQueues(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        Map<Integer, Integer> counts = new TreeMap<>();
        for (int number = 0; number < 16; number++) {
            SendResult result = scene.producer().send(Scene.message(topic, "m"));
            counts.merge(result.getMessageQueue().getQueueId(), 1, Integer::sum);
        }
        scene.saw("%s", counts);
        List<MessageQueue> queues = scene.producer().fetchPublishMessageQueues(topic);
        scene.saw("%s", queues.stream().map(MessageQueue::getQueueId).sorted().toList());
    }

    private static void properties(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        Message message = new Message(topic, "tag", "key1 key2", 42, "body".getBytes(), false);
        message.putUserProperty("a", "1");
        message.putUserProperty("b", "two words");
        message.setBuyerId("buyer");
        scene.producer().send(message);
        MessageExt got = Scene.next(scene.started(scene.consumer(), topic));
        scene.saw("%s", Scene.properties(got));
        scene.saw(
                "topic %s tags %s keys %s flag %d wait %s buyer %s", got.getTopic(), got.getTags(),
                got.getKeys(), got.getFlag(), got.isWaitStoreMsgOK(), got.getBuyerId());
        scene.saw("born before stored %s", got.getBornTimestamp() <= got.getStoreTimestamp());
        scene.saw("body check %s", got.getBodyCRC() == crc(got.getBody()));
        scene.saw("born at %s", got.getBornHostString());
    }

    private static void characters(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        Message message = Scene.message(topic, "Gr\u00fc\u00dfe", "\u65e5\u672c \ud83d\ude00");
        message.putUserProperty("\u00e4", "\ud83d\ude00 = \u65e5");
        message.setKeys("\u00f6");
        scene.producer().send(message);
        MessageExt got = Scene.next(scene.started(scene.consumer(), topic, "Gr\u00fc\u00dfe"));
        scene.saw("%s %s", Scene.text(got), Scene.properties(got));
    }

    private static byte[] random(int size) {
        byte[] body = new byte[size];
        new Random(1).nextBytes(body);
        return body;
    }

    private static long crc(byte[] body) {
        CRC32 crc = new CRC32();
        crc.update(body);
        return crc.getValue() & 0x7FFFFFFF;
    }

    private static void large(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQProducer producer = scene.producer();
        producer.setCompressMsgBodyOverHowmuch(8 * MEGABYTE);
        var got = scene.started(scene.consumer(), topic);
        for (int size : new int[] {1, 4096, MEGABYTE, 3 * MEGABYTE}) {
            byte[] body = random(size);
            producer.send(new Message(topic, body));
            MessageExt message = Scene.next(got);
            scene.saw(
                    "%d bytes, equal %s, system flag %d", size,
                    Arrays.equals(body, message.getBody()), message.getSysFlag());
        }
    }

    private static void compressed(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        byte[] body = "compress me ".repeat(1000).getBytes();
        scene.producer().send(new Message(topic, body));
        MessageExt got = Scene.next(scene.started(scene.consumer(), topic));
        scene.saw(
                "equal %s, system flag %d, stored small %s", Arrays.equals(body, got.getBody()),
                got.getSysFlag(), got.getStoreSize() < 1000);
    }

    private static void newTopic(Scene scene) throws Exception {
        String topic = scene.topicName("new");
        scene.producer().setDefaultTopicQueueNums(3);
        scene.saw("before", () -> scene.admin().examineTopicRouteInfo(topic));
        SendResult sent = scene.producer().send(Scene.message(topic, "m"));
        scene.saw("%s offset %d", sent.getSendStatus(), sent.getQueueOffset());
        var queues = Scene.eventually(
                3, () -> scene.admin().examineTopicRouteInfo(topic).getQueueDatas().get(0)
                        .getWriteQueueNums());
        scene.saw("%d queues", queues);
        scene.saw("got %s", Scene.texts(Scene.next(scene.started(scene.consumer(), topic), 1)));
    }

    private static void manyAtOnce(Scene scene) throws Exception {
        String topic = scene.topic("a", 4);
        DefaultMQProducer producer = scene.producer();
        List<CompletableFuture<SendResult>> sent = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            CompletableFuture<SendResult> one = new CompletableFuture<>();
            sent.add(one);
            producer.send(Scene.message(topic, "m" + number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    one.complete(result);
                }

                @Override
                public void onException(Throwable error) {
                    one.completeExceptionally(error);
                }
            });
        }
        for (CompletableFuture<SendResult> one : sent) {
            one.get(Scene.SOON, TimeUnit.MILLISECONDS);
        }
        var got = scene.started(scene.consumer(), topic);
        scene.saw("%d different ones", Scene.sorted(got, 500).stream().distinct().count());
        scene.saw("surplus %s", Scene.surplus(got));
    }
}
