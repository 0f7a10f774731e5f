package dev.lockkeeper.rocketmq;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What a scenario has at hand: names of its own, clients, and a list of what it saw. */
final class Scene implements AutoCloseable {

    /** How long, in ms, something that must happen may take. */
    static final long SOON = 100_000;

    /** How long, in ms, something that must not happen is waited for. */
    static final long NEVER = 1_500;

    static final int SEND_TIMEOUT = 60_000;

    final String name;
    final String address;
    private final List<String> facts = Collections.synchronizedList(new ArrayList<>());
    private final List<AutoCloseable> open = Collections.synchronizedList(new ArrayList<>());
    private DefaultMQProducer producer;
    private DefaultMQAdminExt admin;

    Scene(String name, String address) {
        this.name = name;
        this.address = address;
    }

    List<String> facts() {
        return List.copyOf(facts);
    }

    /** Takes down what was seen. */
    void saw(String format, Object... values) {
        String fact = values.length == 0 ? format : String.format(format, values);
        facts.add(fact.replace(Line.PREFIX, ""));
    }

    /** Takes down what an action returns, or what it fails with. */
    void saw(String what, Callable<?> action) throws Exception {
        try {
            saw("%s: %s", what, action.call());
        } catch (MQBrokerException | MQClientException refused) {
            saw("%s: %s", what, told(refused));
        }
    }

    /** Returns a refusal as its code and what it says, without what differs from run to run. */
    static String told(Exception refused) {
        if (refused instanceof MQBrokerException broker) {
            String words = first(broker.getErrorMessage());
            return "broker code " + broker.getResponseCode() + " " + words;
        }
        if (refused instanceof MQClientException client) {
            return "client code " + client.getResponseCode() + " "
                    + first(client.getErrorMessage());
        }
        return refused.getClass().getSimpleName() + " " + first(refused.getMessage());
    }

    static String first(String text) {
        String address = "\\d+\\.\\d+\\.\\d+\\.\\d+:\\d+";
        return text == null ? null : text.split("\n")[0].replaceAll(address, "ADDRESS");
    }

    String group(String part) {
        return Line.PREFIX + "G-" + name + "-" + part;
    }

    String group() {
        return Line.PREFIX + "G-" + name;
    }

    String topicName(String part) {
        return Line.PREFIX + "T-" + name + "-" + part;
    }

    /** Returns a new topic with so many queues. */
    String topic(String part, int queues) throws Exception {
        return topic(part, queues, 6);
    }

    String topic(String part, int queues, int permission) throws Exception {
        String topic = topicName(part);
        declare(topic, queues, permission);
        return topic;
    }

    void declare(String topic, int queues, int permission) throws Exception {
        admin().createAndUpdateTopicConfig(
                broker(), new TopicConfig(topic, queues, queues, permission));
        until(() -> {
            try {
                var data = admin().examineTopicRouteInfo(topic).getQueueDatas().get(0);
                return data.getWriteQueueNums() == queues && data.getPerm() == permission;
            } catch (Exception not) {
                return false;
            }
        }, "a route of " + topic);
    }

    /** Returns the address of the only broker. */
    String broker() throws Exception {
        var table = admin().examineBrokerClusterInfo().getBrokerAddrTable();
        return table.get(brokerName()).selectBrokerAddr();
    }

    DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = producer("producers");
        }
        return producer;
    }

    DefaultMQProducer producer(String part) throws Exception {
        return started(new DefaultMQProducer(group(part)));
    }

    <P extends DefaultMQProducer> P started(P made) throws Exception {
        made.setNamesrvAddr(address);
        made.setSendMsgTimeout(SEND_TIMEOUT);
        made.setPollNameServerInterval(500);
        made.setHeartbeatBrokerInterval(1_000);
        own(made);
        made.start();
        open.add(made::shutdown);
        return made;
    }

    /** Has a client for itself: otherwise all of a process with the same name are one. */
    private void own(org.apache.rocketmq.client.ClientConfig client) {
        client.setInstanceName(name + "-" + System.nanoTime());
    }

    DefaultMQAdminExt admin() throws Exception {
        if (admin == null) {
            admin = new DefaultMQAdminExt(20_000);
            admin.setNamesrvAddr(address);
            own(admin);
            admin.start();
            open.add(admin::shutdown);
        }
        return admin;
    }

    /** Returns a consumer that is not started, and reads from the first offset. */
    DefaultMQPushConsumer consumer() throws Exception {
        return consumer(group());
    }

    DefaultMQPushConsumer consumer(String group) throws Exception {
        DefaultMQPushConsumer made = new DefaultMQPushConsumer(group);
        made.setNamesrvAddr(address);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setPollNameServerInterval(500);
        made.setHeartbeatBrokerInterval(1_000);
        made.setPersistConsumerOffsetInterval(500);
        made.setConsumeThreadMin(4);
        made.setConsumeThreadMax(4);
        own(made);
        open.add(made::shutdown);
        return made;
    }

    DefaultLitePullConsumer lite(String group) throws Exception {
        DefaultLitePullConsumer made = new DefaultLitePullConsumer(group);
        made.setNamesrvAddr(address);
        made.setPollNameServerInterval(500);
        made.setHeartbeatBrokerInterval(1_000);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setPullThreadNums(2);
        own(made);
        open.add(made::shutdown);
        return made;
    }

    @SuppressWarnings("deprecation")
    DefaultMQPullConsumer pull() throws Exception {
        DefaultMQPullConsumer made = new DefaultMQPullConsumer(group());
        made.setNamesrvAddr(address);
        made.setHeartbeatBrokerInterval(1_000);
        own(made);
        made.start();
        open.add(made::shutdown);
        return made;
    }

    /** Starts a consumer of all messages of a topic, which are put into the returned line. */
    BlockingQueue<MessageExt> started(DefaultMQPushConsumer consumer, String topic)
            throws Exception {
        return started(consumer, topic, "*");
    }

    BlockingQueue<MessageExt> started(DefaultMQPushConsumer consumer, String topic, String tags)
            throws Exception {
        consumer.subscribe(topic, tags);
        BlockingQueue<MessageExt> got = collected(consumer);
        consumer.start();
        return got;
    }

    static BlockingQueue<MessageExt> collected(DefaultMQPushConsumer consumer) {
        BlockingQueue<MessageExt> got = new LinkedBlockingQueue<>();
        consumer.registerMessageListener(
                (List<MessageExt> messages, org.apache.rocketmq.client.consumer.listener
                        .ConsumeConcurrentlyContext context) -> {
                    got.addAll(messages);
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
        return got;
    }

    static MessageQueue queue(String topic, MessageQueue like, int id) {
        return new MessageQueue(topic, like.getBrokerName(), id);
    }

    MessageQueue queue(String topic, int id) throws Exception {
        return new MessageQueue(topic, brokerName(), id);
    }

    /** Returns the name of the only broker; a name server forgets one that is silent for long. */
    String brokerName() throws Exception {
        eventually(1, () -> admin().examineBrokerClusterInfo().getBrokerAddrTable().size());
        return admin().examineBrokerClusterInfo().getBrokerAddrTable().keySet().iterator().next();
    }

    static Message message(String topic, String body) {
        return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
    }

    static Message message(String topic, String tag, String body) {
        return new Message(topic, tag, body.getBytes(StandardCharsets.UTF_8));
    }

    /** Sends numbered messages, each to the queue that is left over by the number of queues. */
    void fill(String topic, int queues, int from, int to) throws Exception {
        for (int number = from; number < to; number++) {
            producer().send(message(topic, "m" + number), queue(topic, number % queues));
        }
    }

    static String text(Message message) {
        return message == null ? "nothing" : new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static List<String> texts(Collection<? extends Message> messages) {
        List<String> texts = new ArrayList<>();
        messages.forEach(message -> texts.add(text(message)));
        return texts;
    }

    static MessageExt next(BlockingQueue<MessageExt> got) throws Exception {
        MessageExt message = got.poll(SOON, TimeUnit.MILLISECONDS);
        if (message == null) {
            throw new AssertionError("a message was expected and none came");
        }
        return message;
    }

    static List<MessageExt> next(BlockingQueue<MessageExt> got, int count) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            try {
                messages.add(next(got));
            } catch (AssertionError missing) {
                throw new AssertionError(texts(messages) + " came of " + count, missing);
            }
        }
        return messages;
    }

    /** Returns the texts of so many messages, sorted, since queues come in any order. */
    static List<String> sorted(BlockingQueue<MessageExt> got, int count) throws Exception {
        return texts(next(got, count)).stream().sorted().toList();
    }

    /** Ends a consumer that has consumed all there is, so that the group goes on behind it. */
    void leave(DefaultMQPushConsumer consumer, String topic) throws Exception {
        var offsets = consumer.getDefaultMQPushConsumerImpl().getOffsetStore();
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
            long end = admin().maxOffset(queue);
            until(() -> end == offsets.cloneOffsetTable(topic).getOrDefault(queue, 0L),
                    "the offset of " + queue + " at " + end);
        }
        consumer.shutdown();
    }

    /** Returns what comes although nothing should. */
    static List<String> surplus(BlockingQueue<MessageExt> got) throws Exception {
        MessageExt message = got.poll(NEVER, TimeUnit.MILLISECONDS);
        List<MessageExt> messages = new ArrayList<>(got);
        if (message != null) {
            messages.add(0, message);
        }
        return texts(messages);
    }

    /**
     * Returns the properties, sorted, with those that differ from run to run hidden, and without
     * those by which RocketMQ finds its way from one of its own topics to another.
     */
    static Map<String, String> properties(Message message) {
        Map<String, String> shown = new TreeMap<>(message.getProperties());
        for (String varying : List.of(
                "UNIQ_KEY", "CLUSTER", "TRACE_ON", "MSG_REGION", "ORIGIN_MESSAGE_ID",
                "CONSUME_START_TIME", "REPLY_TO_CLIENT", "CORRELATION_ID", "TIMER_DELIVER_MS",
                "ARRIVE_TIME", "PUSH_REPLY_TIME", "__transactionId__")) {
            shown.computeIfPresent(varying, (key, value) -> "...");
        }
        shown.keySet().removeAll(List.of(
                "REAL_TOPIC", "REAL_QID", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS",
                "TRANSACTION_CHECK_TIMES"));
        return shown;
    }

    static void until(BooleanSupplier happened, String what) throws Exception {
        long deadline = System.currentTimeMillis() + SOON;
        while (!happened.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                throw new AssertionError("did not happen: " + what);
            }
            Thread.sleep(20);
        }
    }

    /** Waits until an action returns the wanted value; returns what it returned at last. */
    static <V> V eventually(V wanted, Callable<V> action) throws Exception {
        long deadline = System.currentTimeMillis() + SOON;
        while (true) {
            V got;
            try {
                got = action.call();
            } catch (MQClientException | MQBrokerException early) {
                got = null;
            }
            if (wanted.equals(got) || System.currentTimeMillis() > deadline) {
                return got;
            }
            Thread.sleep(50);
        }
    }

    @Override
    public void close() throws Exception {
        List<AutoCloseable> closing = new ArrayList<>(open);
        Collections.reverse(closing);
        for (AutoCloseable client : closing) {
            client.close();
        }
    }
}
