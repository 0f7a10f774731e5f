package dev.lockkeeper.rocketmq;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** What is refused, with which code and which words. */
final class Refusals {
    private static final int PERMISSION_READ = 4;
    private static final int PERMISSION_WRITE = 2;

    /** What RocketMQ says where it says nothing. */
    private static final String NOTHING_SET = "not set any response code";

    private Refusals() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("refused-too-large", Refusals::tooLarge);
        scenarios.put("refused-long-properties", Refusals::longProperties);
        scenarios.put("refused-read-only", Refusals::readOnly);
        scenarios.put("refused-write-only", Refusals::writeOnly);
        scenarios.put("refused-queue", Refusals::queue);
        scenarios.put("refused-topic-names", Refusals::topicNames);
        scenarios.put("raw-unknown-code", Refusals::unknownCode);
        scenarios.put("raw-name-server", Refusals::nameServer);
        scenarios.put("raw-offsets", Refusals::offsets);
        scenarios.put("raw-pull", Refusals::pull);
        scenarios.put("raw-send", Refusals::send);
        scenarios.put("raw-locks", Refusals::locks);
        scenarios.put("raw-queries", Refusals::queries);
    }

    private static void tooLarge(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        DefaultMQProducer producer = scene.producer();
        producer.setMaxMessageSize(32 << 20);
        producer.setRetryTimesWhenSendFailed(0);
        byte[] body = new byte[5 << 20];
        new Random(1).nextBytes(body);
        scene.saw("5 MB", () -> producer.send(new Message(topic, body)).getSendStatus());
        scene.saw("empty", () -> producer.send(new Message(topic, new byte[0])).getSendStatus());
    }

    private static void longProperties(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        Message message = Scene.message(topic, "m");
        message.putUserProperty("long", "x".repeat(32_768));
        DefaultMQProducer producer = scene.producer();
        producer.setRetryTimesWhenSendFailed(0);
        scene.saw("sent", () -> producer.send(message).getSendStatus());
    }

    private static void readOnly(Scene scene) throws Exception {
        String topic = scene.topic("a", 1, PERMISSION_READ);
        scene.saw("to a queue", () -> scene.producer()
                .send(Scene.message(topic, "m"), scene.queue(topic, 0)).getSendStatus());
        scene.saw("anywhere", () -> scene.producer().send(Scene.message(topic, "m"))
                .getSendStatus());
    }

    private static void writeOnly(Scene scene) throws Exception {
        String topic = scene.topic("a", 1, PERMISSION_WRITE);
        scene.saw("sent", () -> scene.producer().send(Scene.message(topic, "m")).getSendStatus());
        DefaultMQPullConsumer consumer = scene.pull();
        scene.saw("pulled", () -> consumer.pull(scene.queue(topic, 0), "*", 0, 32).getPullStatus());
    }

    private static void queue(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.saw("queue 7", () -> scene.producer()
                .send(Scene.message(topic, "m"), scene.queue(topic, 7)).getSendStatus());
    }

    private static void topicNames(Scene scene) throws Exception {
        for (String name : List.of("SCHEDULE_TOPIC_XXXX", "with a space", "a*b")) {
            scene.saw(name, () -> scene.producer().send(Scene.message(name, "m")).getSendStatus());
        }
        Map<String, String> fields = new HashMap<>(Map.of(
                "defaultTopic", "TBW102", "readQueueNums", "1", "writeQueueNums", "1", "perm", "6",
                "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"));
        for (String name : List.of("with a space", "TBW102", "x".repeat(128), "")) {
            fields.put("topic", name);
            raw(scene, "topic of " + name.length(), 17, fields);
        }
    }

    /** Sends a request as it is, and takes down what the broker answers. */
    private static void raw(Scene scene, String what, int code, Map<String, String> fields)
            throws Exception {
        scene.saw("%s: %s", what, told(request(scene, scene.broker(), code, fields, null)));
    }

    private static RemotingCommand request(
            Scene scene, String address, int code, Map<String, String> fields, byte[] body)
            throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(code, null);
        request.setExtFields(new HashMap<>(fields));
        request.setBody(body);
        return scene.producer().getDefaultMQProducerImpl().getMqClientFactory()
                .getMQClientAPIImpl().getRemotingClient().invokeSync(address, request, 20_000);
    }

    private static String told(RemotingCommand answer) {
        Map<String, String> fields = new TreeMap<>(
                answer.getExtFields() == null ? Map.of() : answer.getExtFields());
        for (String varying : List.of("msgId", "transactionId", "MSG_REGION", "TRACE_ON",
                "indexLastUpdateTimestamp", "indexLastUpdatePhyoffset", "timestamp")) {
            fields.computeIfPresent(varying, (key, value) -> "...");
        }
        String remark = Scene.first(answer.getRemark());
        if (NOTHING_SET.equals(remark) || "".equals(remark)) {
            remark = null;
        }
        return String.format(
                "code %d %s %s, body %s", answer.getCode(), remark, fields,
                answer.getBody() == null ? "none" : "there");
    }

    private static void unknownCode(Scene scene) throws Exception {
        for (int code : new int[] {9_999, 1, 0, -5}) {
            raw(scene, "code " + code, code, Map.of());
        }
    }

    private static void nameServer(Scene scene) throws Exception {
        for (int code : new int[] {105, 206, 9_999}) {
            var answer = request(scene, scene.address, code, Map.of("topic", "unheard-of"), null);
            scene.saw("%d: %s", code, told(answer));
        }
        var info = request(scene, scene.address, 106, Map.of(), null);
        scene.saw("cluster: %s", told(info));
    }

    private static void offsets(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 2);
        Map<String, String> fields = new HashMap<>(Map.of("topic", topic, "queueId", "0"));
        Scene.eventually("2", () -> request(scene, scene.broker(), 30, fields, null)
                .getExtFields().get("offset"));
        raw(scene, "max", 30, fields);
        raw(scene, "min", 31, fields);
        raw(scene, "max of an unknown topic", 30, Map.of("topic", "unheard-of", "queueId", "0"));
        fields.put("consumerGroup", scene.group());
        raw(scene, "of an unknown group", 14, fields);
        fields.put("setZeroIfNotFound", "false");
        raw(scene, "of an unknown group, not zero", 14, fields);
        fields.put("commitOffset", "1");
        raw(scene, "update", 15, fields);
        raw(scene, "updated", 14, fields);
        fields.put("commitOffset", "99");
        raw(scene, "update beyond", 15, fields);
        raw(scene, "updated beyond", 14, fields);
    }

    private static void pull(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        scene.fill(topic, 1, 0, 2);
        Map<String, String> fields = new HashMap<>(Map.of(
                "consumerGroup", scene.group(), "topic", topic, "queueId", "0", "queueOffset", "0",
                "maxMsgNums", "32", "sysFlag", "4", "commitOffset", "0",
                "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0"));
        Scene.eventually("2", () -> request(scene, scene.broker(), 30, fields, null)
                .getExtFields().get("offset"));
        raw(scene, "found", 11, fields);
        fields.put("queueOffset", "2");
        raw(scene, "at the end", 11, fields);
        fields.put("queueOffset", "9");
        raw(scene, "beyond", 11, fields);
        fields.put("queueId", "5");
        raw(scene, "no such queue", 11, fields);
        fields.put("queueId", "0");
        fields.put("topic", "unheard-of");
        raw(scene, "no such topic", 11, fields);
        fields.put("topic", topic);
        fields.put("sysFlag", "0");
        raw(scene, "without a subscription", 11, fields);
        fields.put("sysFlag", "4");
        fields.put("queueOffset", "0");
        fields.put("expressionType", "SQL92");
        fields.put("subscription", "a >");
        raw(scene, "with a wrong selector", 11, fields);
        fields.put("expressionType", "UNKNOWN");
        raw(scene, "with a wrong type", 11, fields);
    }

    private static void send(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        Map<String, String> fields = new HashMap<>(Map.of(
                "producerGroup", scene.group(), "topic", topic, "defaultTopic", "TBW102",
                "defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0",
                "bornTimestamp", "1700000000000", "flag", "0", "properties", "",
                "reconsumeTimes", "0"));
        byte[] body = "m".getBytes();
        scene.saw("v1: %s", told(request(scene, scene.broker(), 10, fields, body)));
        fields.put("queueId", "-1");
        var anywhere = request(scene, scene.broker(), 10, fields, body);
        scene.saw("any queue: %d %s", anywhere.getCode(), anywhere.getExtFields().get("queueId"));
        fields.put("queueId", "8");
        scene.saw("queue 8: %s", told(request(scene, scene.broker(), 10, fields, body)));
        Map<String, String> brief = new HashMap<>(Map.of(
                "a", scene.group(), "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0",
                "g", "1700000000000", "h", "0", "i", "k\u0001v\u0002", "j", "0"));
        brief.put("k", "false");
        scene.saw("v2: %s", told(request(scene, scene.broker(), 310, brief, body)));
        brief.put("b", "%RETRY%" + scene.group("unheard-of"));
        scene.saw("retry topic: %s", told(request(scene, scene.broker(), 310, brief, body)));
    }

    private static void locks(Scene scene) throws Exception {
        String topic = scene.topic("a", 2);
        String queues = "[" + lockable(scene, topic, 0) + "," + lockable(scene, topic, 1) + "]";
        scene.saw("first locks: %s", locked(scene, "one", queues, 41));
        scene.saw("again: %s", locked(scene, "one", queues, 41));
        scene.saw("another: %s", locked(scene, "other", queues, 41));
        scene.saw("unlocked: %s", locked(scene, "one", queues, 42));
        scene.saw("another: %s", locked(scene, "other", queues, 41));
    }

    private static String lockable(Scene scene, String topic, int id) throws Exception {
        return String.format(
                "{\"topic\":\"%s\",\"brokerName\":\"%s\",\"queueId\":%d}", topic,
                scene.brokerName(), id);
    }

    private static String locked(Scene scene, String client, String queues, int code)
            throws Exception {
        String body = String.format(
                "{\"consumerGroup\":\"%s\",\"clientId\":\"%s\",\"mqSet\":%s}", scene.group(),
                client, queues);
        var answer = request(scene, scene.broker(), code, Map.of(), body.getBytes());
        String told = answer.getBody() == null ? "" : new String(answer.getBody());
        long count = told.split("\"queueId\"", -1).length - 1;
        return "code " + answer.getCode() + ", " + count + " queues";
    }

    private static void queries(Scene scene) throws Exception {
        raw(scene, "view nothing", 33, Map.of("offset", "123456789"));
        raw(scene, "members of nobody", 38, Map.of("consumerGroup", "unheard-of"));
        raw(scene, "connections of nobody", 203, Map.of("consumerGroup", "unheard-of"));
        raw(scene, "progress of nobody", 208, Map.of("consumerGroup", "unheard-of"));
        raw(scene, "query nothing", 12, Map.of(
                "topic", "unheard-of", "key", "k", "maxNum", "10", "beginTimestamp", "0",
                "endTimestamp", "9999999999999"));
        raw(scene, "topic nobody knows", 351, Map.of("topic", "unheard-of"));
        raw(scene, "delete no topic", 215, Map.of("topic", ""));
    }
}
