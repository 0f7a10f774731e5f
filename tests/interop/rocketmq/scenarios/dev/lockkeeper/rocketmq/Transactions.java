package dev.lockkeeper.rocketmq;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that wait until their producer has decided. */
final class Transactions {
    private static final LocalTransactionState COMMIT = LocalTransactionState.COMMIT_MESSAGE;
    private static final LocalTransactionState ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE;
    private static final LocalTransactionState UNKNOWN = LocalTransactionState.UNKNOW;

    private Transactions() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("transaction-commit", scene -> decide(scene, COMMIT, UNKNOWN, true));
        scenarios.put("transaction-rollback", scene -> decide(scene, ROLLBACK, UNKNOWN, false));
        scenarios.put("transaction-checked-commit", scene -> decide(scene, UNKNOWN, COMMIT, true));
        scenarios.put(
                "transaction-checked-rollback", scene -> decide(scene, UNKNOWN, ROLLBACK, false));
        scenarios.put("transaction-checked-again", Transactions::checkedAgain);
        scenarios.put("transaction-never-decided", Transactions::neverDecided);
        scenarios.put("transaction-another-producer", Transactions::anotherProducer);
        scenarios.put("transaction-throws", Transactions::throwing);
    }

    /** Decides at first so, and when it is asked so, each time the next one. */
    private static final class Decisions implements TransactionListener {
        final List<String> asked = Collections.synchronizedList(new ArrayList<>());
        private final LocalTransactionState first;
        private final List<LocalTransactionState> later;

        Decisions(LocalTransactionState first, LocalTransactionState... later) {
            this.first = first;
            this.later = new ArrayList<>(List.of(later));
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return first;
        }

        @Override
        public synchronized LocalTransactionState checkLocalTransaction(MessageExt message) {
            asked.add(String.format(
                    "asked about %s topic %s system flag %d %s", Scene.text(message),
                    message.getTopic(), message.getSysFlag(), Scene.properties(message)));
            return later.size() > 1 ? later.remove(0) : later.get(0);
        }
    }

    private static TransactionMQProducer producer(Scene scene, TransactionListener listener)
            throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(scene.group("deciders"));
        producer.setTransactionListener(listener);
        return scene.started(producer);
    }

    private static Message message(String topic) {
        Message message = Scene.message(topic, "tag", "m");
        message.setKeys("key");
        message.putUserProperty("mine", "1");
        return message;
    }

    private static void decide(
            Scene scene, LocalTransactionState first, LocalTransactionState later, boolean comes)
            throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        Decisions decisions = new Decisions(first, later);
        var sent = producer(scene, decisions).sendMessageInTransaction(message(topic), null);
        scene.saw(
                "%s %s queue %d", sent.getSendStatus(), sent.getLocalTransactionState(),
                sent.getMessageQueue().getQueueId());
        if (comes) {
            told(scene, Scene.next(got));
        } else if (first == UNKNOWN) {
            Scene.until(() -> !decisions.asked.isEmpty(), "a check");
        }
        // RocketMQ may store a message twice whose producer was asked twice before it answered.
        if (first != UNKNOWN || !comes) {
            scene.saw("surplus %s", Scene.surplus(got));
        }
        if (first == UNKNOWN) {
            decisions.asked.stream().limit(1).forEach(scene::saw);
        }
    }

    private static void told(Scene scene, MessageExt message) {
        scene.saw(
                "%s topic %s queue %d offset %d system flag %d again %d %s", Scene.text(message),
                message.getTopic(), message.getQueueId(), message.getQueueOffset(),
                message.getSysFlag(), message.getReconsumeTimes(), Scene.properties(message));
    }

    private static void checkedAgain(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        Decisions decisions = new Decisions(UNKNOWN, UNKNOWN, COMMIT);
        producer(scene, decisions).sendMessageInTransaction(message(topic), null);
        told(scene, Scene.next(got));
        decisions.asked.stream().distinct().forEach(scene::saw);
    }

    private static void neverDecided(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        Decisions decisions = new Decisions(UNKNOWN, UNKNOWN);
        producer(scene, decisions).sendMessageInTransaction(message(topic), null);
        Scene.until(() -> decisions.asked.size() == 2, "two checks");
        Thread.sleep(4 * Scene.NEVER);
        scene.saw("asked %d times", decisions.asked.size());
        scene.saw("surplus %s", Scene.surplus(got));
    }

    private static void anotherProducer(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        TransactionMQProducer first = producer(scene, new Decisions(UNKNOWN, UNKNOWN));
        first.sendMessageInTransaction(message(topic), null);
        first.shutdown();
        Decisions decisions = new Decisions(UNKNOWN, COMMIT);
        producer(scene, decisions);
        scene.saw("%s", Scene.texts(Scene.next(got, 1)));
        decisions.asked.stream().distinct().forEach(scene::saw);
    }

    private static void throwing(Scene scene) throws Exception {
        String topic = scene.topic("a", 1);
        var got = scene.started(scene.consumer(), topic);
        TransactionListener failing = new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                throw new IllegalStateException("the local transaction fails");
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return COMMIT;
            }
        };
        var sent = producer(scene, failing).sendMessageInTransaction(message(topic), null);
        scene.saw("%s %s", sent.getSendStatus(), sent.getLocalTransactionState());
        scene.saw("%s", Scene.texts(Scene.next(got, 1)));
    }
}
