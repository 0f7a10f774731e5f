package dev.lockkeeper.rocketmq;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Clients of a broker that asks who they are: {@code Guarded ADDRESS BROKER}. Each line of the
 * standard input is "ACTION TOPIC USER SECRET TOKEN", where "-" is nothing; the answer is one line.
 * RocketMQ's system properties say whether clients speak TLS, and whom they
 * trust.
 */
public final class Guarded {
    private static final String NOTHING = "-";

    /** How long, in ms, an answer may take. */
    private static final int TIMEOUT = Integer.getInteger("guarded.timeout", 20_000);

    private final String address;
    private final String broker;
    private final String topic;
    private final String group;
    private final RPCHook hook;

    private Guarded(String address, String broker, String[] words) {
        this.address = address;
        this.broker = broker;
        topic = words[1];
        group = "guarded-" + words[2];
        hook = hook(words[2], words[3], words[4]);
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = new Guarded(arguments[0], arguments[1], words).act(words[0]);
            } catch (Exception refused) {
                answer = told(refused);
            }
            System.out.println("told " + answer);
            System.out.flush();
        }
        System.exit(0);
    }

    /** Returns a refusal, with what the broker said if that is its cause. */
    private static String told(Exception refused) {
        Throwable cause = refused.getCause();
        while (cause != null && !(cause instanceof MQBrokerException)) {
            cause = cause.getCause();
        }
        String told = Scene.told(refused);
        return cause == null ? told : told + " | " + Scene.told((Exception) cause);
    }

    private static RPCHook hook(String user, String secret, String token) {
        if (user.equals(NOTHING)) {
            return null;
        }
        return new AclClientRPCHook(token.equals(NOTHING)
                ? new SessionCredentials(user, secret)
                : new SessionCredentials(user, secret, token));
    }

    private String act(String action) throws Exception {
        return switch (action) {
            case "send" -> send();
            case "transact" -> transact();
            case "pull" -> pull();
            case "consume" -> consume(Scene.SOON);
            case "starve" -> consume(2 * Scene.NEVER);
            case "create" -> create();
            default -> throw new IllegalArgumentException(action);
        };
    }

    private void prepare(ClientConfig client) {
        client.setNamesrvAddr(address);
        client.setInstanceName("guarded-" + System.nanoTime());
        client.setHeartbeatBrokerInterval(1_000);
    }

    private String send() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("guarded-producers", hook);
        prepare(producer);
        producer.setSendMsgTimeout(TIMEOUT);
        producer.start();
        try {
            return producer.send(Scene.message(topic, "hello")).getSendStatus().name();
        } finally {
            producer.shutdown();
        }
    }

    private String transact() throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("guarded-transactions", hook);
        prepare(producer);
        producer.setSendMsgTimeout(TIMEOUT);
        producer.setTransactionListener(new Deciding());
        producer.start();
        try {
            var sent = producer.sendMessageInTransaction(Scene.message(topic, "hello"), null);
            return sent.getSendStatus() + " " + sent.getLocalTransactionState();
        } finally {
            producer.shutdown();
        }
    }

    @SuppressWarnings("deprecation")
    private String pull() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("guarded-pullers", hook);
        prepare(consumer);
        consumer.start();
        try {
            // Asks for the route.
            consumer.fetchSubscribeMessageQueues(topic);
            var result = consumer.pull(new MessageQueue(topic, broker, 0), "*", 0, 32);
            var found = result.getMsgFoundList();
            return result.getPullStatus() + " " + (found == null ? "" : Scene.texts(found));
        } finally {
            consumer.shutdown();
        }
    }

    private String consume(long patience) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
                group, hook, new AllocateMessageQueueAveragely());
        prepare(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        BlockingQueue<MessageExt> got = Scene.collected(consumer);
        consumer.start();
        try {
            return "consumed " + Scene.text(got.poll(patience, TimeUnit.MILLISECONDS));
        } finally {
            consumer.shutdown();
        }
    }

    private String create() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(hook, TIMEOUT);
        prepare(admin);
        admin.start();
        try {
            admin.createAndUpdateTopicConfig(address, new TopicConfig(topic, 1, 1, 6));
            return "created";
        } finally {
            admin.shutdown();
        }
    }
}
