package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.numbered;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.send;
import static dev.lockkeeper.interop.Scene.texts;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.command.ActiveMQTextMessage;

/** Who gets the next message of a queue: exclusive consumers, priorities, groups, order. */
final class Dispatching {

    private Dispatching() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("exclusive-beside-others", Dispatching::exclusiveBesideOthers);
        scenarios.put("exclusive-priority-takes-over", Dispatching::exclusiveByPriority);
        scenarios.put("exclusive-successor", Dispatching::exclusiveSuccessor);
        scenarios.put("exclusive-takeover-redelivers", Dispatching::exclusiveRedelivers);
        scenarios.put("exclusive-for-all", Dispatching::exclusiveForAll);
        scenarios.put("priority-overflow", Dispatching::priorityOverflow);
        scenarios.put("priority-ignored", Dispatching::priorityIgnored);
        scenarios.put("strict-order", Dispatching::strictOrder);
        scenarios.put("start-after-time", Dispatching::startAfterTime);
        scenarios.put("start-after-consumers", Dispatching::startAfterConsumers);
        scenarios.put("group-closed", Dispatching::groupClosed);
        scenarios.put("group-owner-leaves", Dispatching::groupOwnerLeaves);
        scenarios.put("group-restarted", Dispatching::groupRestarted);
        scenarios.put("group-waits-for-its-owner", Dispatching::groupWaits);
        scenarios.put("group-with-selectors", Dispatching::groupWithSelectors);
        scenarios.put("groups-for-a-late-consumer", Dispatching::groupsForLate);
        scenarios.put("groups-simple", Dispatching::groupsKept);
        scenarios.put("groups-cached", Dispatching::groupsKept);
        scenarios.put("groups-in-buckets", Dispatching::groupsInBuckets);
        scenarios.put("prioritized", Dispatching::prioritized);
        scenarios.put("prioritized-redelivered", Dispatching::prioritizedRedelivered);
        scenarios.put("prioritized-transacted", Dispatching::prioritizedTransacted);
        scenarios.put("redelivered-first", Dispatching::redeliveredFirst);
        scenarios.put("rolled-back-in-order", Dispatching::rolledBackInOrder);
        scenarios.put("selectors-side-by-side", Dispatching::selectorsSideBySide);
        scenarios.put("lazy-dispatch", Dispatching::lazy);
    }

    private static MessageConsumer exclusive(Scene scene, Queue queue, int priority)
            throws JMSException {
        return consumer(scene, queue, "?consumer.exclusive=true&consumer.priority=" + priority);
    }

    private static MessageConsumer consumer(Scene scene, Queue queue, String options)
            throws JMSException {
        Session session = scene.session();
        return session.createConsumer(session.createQueue(queue.getQueueName() + options));
    }

    /** Returns a consumer on a connection of its own that leaves its messages unacknowledged. */
    private static MessageConsumer holding(Scene scene, Queue queue, String options)
            throws JMSException {
        Session session = scene.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        return session.createConsumer(session.createQueue(queue.getQueueName() + options));
    }

    private static void exclusiveBesideOthers(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer plain = consumer(scene, queue, "");
        MessageConsumer exclusive = consumer(scene, queue, "?consumer.exclusive=true");
        Session session = scene.session();
        send(session, queue, numbered("m", 5));
        only(exclusive, numbered("m", 5));
        exclusive.close();
        send(session, queue, "left");
        only(plain, "left");
    }

    private static void exclusiveByPriority(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer low = consumer(scene, queue, "?consumer.exclusive=true");
        Session session = scene.session();
        send(session, queue, "before");
        only(low, "before");
        MessageConsumer high = exclusive(scene, queue, 10);
        send(session, queue, numbered("m", 5));
        only(high, numbered("m", 5));
        nothing(low);
    }

    private static void exclusiveSuccessor(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = exclusive(scene, queue, 9);
        MessageConsumer low = exclusive(scene, queue, 1);
        MessageConsumer heir = exclusive(scene, queue, 5);
        Session session = scene.session();
        send(session, queue, "first");
        only(owner, "first");
        owner.close();
        send(session, queue, "second");
        only(heir, "second");
        heir.close();
        send(session, queue, "third");
        only(low, "third");
    }

    private static void exclusiveRedelivers(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = holding(scene, queue, "?consumer.exclusive=true");
        MessageConsumer heir = consumer(scene, queue, "?consumer.exclusive=true");
        Session session = scene.session();
        send(session, queue, numbered("m", 4));
        same(List.of("m0", "m1"), texts(owner, 2), "seen by the first owner");
        owner.close();
        for (int i = 0; i < 4; i++) {
            TextMessage message = next(heir);
            same("m" + i, message.getText(), "text");
            same(i < 2, message.getJMSRedelivered(), "redelivered m" + i);
        }
        nothing(heir);
    }

    private static void exclusiveForAll(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer first = consumer(scene, queue, "");
        MessageConsumer second = consumer(scene, queue, "");
        Session session = scene.session();
        send(session, queue, numbered("m", 6));
        only(first, numbered("m", 6));
        nothing(second);
        first.close();
        send(session, queue, "taken over");
        only(second, "taken over");
    }

    private static void priorityOverflow(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer low = consumer(scene, queue, "?consumer.priority=-5");
        Session session = scene.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        String options = "?consumer.priority=5&consumer.prefetchSize=3";
        MessageConsumer high =
                session.createConsumer(session.createQueue(queue.getQueueName() + options));
        send(session, queue, numbered("m", 5));
        only(low, "m3", "m4");
        same(List.of("m0", "m1"), texts(high, 2), "the first messages");
        next(high).acknowledge();
        // On the same connection, so that the acknowledgement is there before the message.
        send(session, queue, "again");
        only(high, "again");
        nothing(low);
    }

    private static void priorityIgnored(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer low = consumer(scene, queue, "");
        MessageConsumer high = consumer(scene, queue, "?consumer.priority=10");
        send(scene.session(), queue, numbered("m", 10));
        same(5, texts(low, 5).size(), "a share");
        same(5, texts(high, 5).size(), "a share");
        nothing(low);
        nothing(high);
    }

    private static void strictOrder(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer first = holding(scene, queue, "?consumer.prefetchSize=5");
        MessageConsumer second = holding(scene, queue, "?consumer.prefetchSize=5");
        send(scene.session(), queue, numbered("m", 8));
        List<String> expected = List.of(numbered("m", 8));
        // What the first one takes would make room for more.
        same(expected.subList(5, 8), texts(second, 3), "the rest");
        same(expected.subList(0, 5), texts(first, 5), "what the first one has room for");
    }

    private static void startAfterTime(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        send(session, queue, numbered("m", 6));
        MessageConsumer first = consumer(scene, queue, "");
        MessageConsumer second = consumer(scene, queue, "");
        same(3, texts(first, 3).size(), "the first one's share");
        same(3, texts(second, 3).size(), "the second one's share");
    }

    private static void startAfterConsumers(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        send(session, queue, numbered("m", 6));
        MessageConsumer first = consumer(scene, queue, "");
        nothing(first);
        MessageConsumer second = consumer(scene, queue, "");
        same(3, texts(first, 3).size(), "the first one's share");
        same(3, texts(second, 3).size(), "the second one's share");
    }

    /** Sends a message of a group. */
    private static void sendOf(MessageProducer producer, String text, String group, int sequence)
            throws JMSException {
        TextMessage message = new ActiveMQTextMessage();
        message.setText(text);
        message.setStringProperty("JMSXGroupID", group);
        message.setIntProperty("JMSXGroupSeq", sequence);
        producer.send(message);
    }

    /** Receives a message and checks its text, and whether it is its owner's first. */
    private static Message grouped(MessageConsumer consumer, String text, boolean first)
            throws JMSException {
        TextMessage message = next(consumer);
        same(text, message.getText(), "text");
        boolean said = message.getBooleanProperty("JMSXGroupFirstForConsumer");
        same(first, said, "first of its group: " + text);
        return message;
    }

    private static void groupClosed(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = consumer(scene, queue, "");
        MessageProducer producer = scene.session().createProducer(queue);
        sendOf(producer, "m0", "g", 0);
        grouped(owner, "m0", true);
        MessageConsumer other = consumer(scene, queue, "");
        sendOf(producer, "m1", "g", 0);
        sendOf(producer, "closing", "g", -1);
        grouped(owner, "m1", false);
        grouped(owner, "closing", false);
        sendOf(producer, "anew", "g", 0);
        sendOf(producer, "more", "g", 0);
        grouped(other, "anew", true);
        grouped(other, "more", false);
        nothing(owner);
    }

    private static void groupOwnerLeaves(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = holding(scene, queue, "");
        MessageProducer producer = scene.session().createProducer(queue);
        for (int i = 0; i < 4; i++) {
            sendOf(producer, "m" + i, "g", i + 1);
        }
        MessageConsumer heir = consumer(scene, queue, "");
        grouped(owner, "m0", true);
        grouped(owner, "m1", false);
        nothing(heir);
        owner.close();
        same(true, grouped(heir, "m0", true).getJMSRedelivered(), "redelivered");
        for (int i = 1; i < 4; i++) {
            grouped(heir, "m" + i, false);
        }
    }

    private static void groupRestarted(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = holding(scene, queue, "?consumer.prefetchSize=1");
        MessageProducer producer = scene.session().createProducer(queue);
        sendOf(producer, "m0", "g", 1);
        grouped(owner, "m0", true);
        MessageConsumer other = consumer(scene, queue, "");
        sendOf(producer, "again", "g", 1);
        grouped(other, "again", true);
        sendOf(producer, "more", "g", 2);
        grouped(other, "more", false);
    }

    private static void groupWaits(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer owner = holding(scene, queue, "?consumer.prefetchSize=1");
        MessageProducer producer = scene.session().createProducer(queue);
        sendOf(producer, "a0", "a", 0);
        Message held = grouped(owner, "a0", true);
        MessageConsumer other = consumer(scene, queue, "");
        sendOf(producer, "a1", "a", 0);
        sendOf(producer, "b0", "b", 0);
        grouped(other, "b0", true);
        nothing(other);
        held.acknowledge();
        grouped(owner, "a1", false);
    }

    private static void groupWithSelectors(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer a = scene.session().createConsumer(queue, "JMSXGroupID = 'a'");
        MessageConsumer b = scene.session().createConsumer(queue, "JMSXGroupID = 'b'");
        MessageProducer producer = scene.session().createProducer(queue);
        for (int i = 0; i < 6; i++) {
            sendOf(producer, "m" + i, i % 2 == 0 ? "a" : "b", i / 2 + 1);
        }
        only(a, "m0", "m2", "m4");
        only(b, "m1", "m3", "m5");
    }

    private static void groupsForLate(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer early = consumer(scene, queue, "");
        MessageProducer producer = scene.session().createProducer(queue);
        for (int i = 0; i < 3; i++) {
            sendOf(producer, "old" + i, "old" + i, 0);
        }
        same(List.of("old0", "old1", "old2"), texts(early, 3), "all groups");
        MessageConsumer late = consumer(scene, queue, "");
        for (int i = 0; i < 3; i++) {
            sendOf(producer, "new" + i, "new" + i, 0);
        }
        sendOf(producer, "old", "old1", 0);
        only(late, "new0", "new1", "new2");
        only(early, "old");
    }

    /** Sends messages of some groups to two consumers and returns what each of them got. */
    private static List<List<Message>> grouped(Scene scene, int groups, int messages)
            throws JMSException {
        Queue queue = scene.queue("all");
        List<MessageConsumer> consumers =
                List.of(consumer(scene, queue, ""), consumer(scene, queue, ""));
        MessageProducer producer = scene.session().createProducer(queue);
        for (int i = 0; i < messages; i++) {
            sendOf(producer, "m" + i, "group" + i % groups, 0);
        }
        List<List<Message>> all = new ArrayList<>();
        int count = 0;
        for (MessageConsumer consumer : consumers) {
            List<Message> got = new ArrayList<>();
            for (Message each; (each = consumer.receive(Scene.NEVER)) != null; ) {
                got.add(each);
            }
            all.add(got);
            count += got.size();
        }
        same(messages, count, "all messages");
        return all;
    }

    private static List<String> groupsOf(List<Message> messages) throws JMSException {
        List<String> groups = new ArrayList<>();
        for (Message message : messages) {
            String group = message.getStringProperty("JMSXGroupID");
            if (!groups.contains(group)) {
                groups.add(group);
            }
        }
        return groups;
    }

    private static void groupsKept(Scene scene) throws Exception {
        List<List<Message>> got = grouped(scene, 6, 30);
        List<String> first = groupsOf(got.get(0));
        same(3, first.size(), "half of the groups");
        first.retainAll(groupsOf(got.get(1)));
        same(List.of(), first, "groups with two owners");
    }

    private static void groupsInBuckets(Scene scene) throws Exception {
        List<List<Message>> got = grouped(scene, 6, 30);
        check(got.get(0).isEmpty() || got.get(1).isEmpty(), "one bucket has one owner");
    }

    private static final int[] PRIORITIES = {4, 9, 0, 4, 7, 9, 1};
    private static final String[] BY_PRIORITY = {
        "9-1", "9-5", "7-4", "4-0", "4-3", "1-6", "0-2",
    };

    private static void sendPrioritized(Session session, Queue queue) throws JMSException {
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < PRIORITIES.length; i++) {
            Message message = session.createTextMessage(PRIORITIES[i] + "-" + i);
            producer.send(message, DeliveryMode.PERSISTENT, PRIORITIES[i], 0);
        }
    }

    private static void prioritized(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        sendPrioritized(scene.session(), queue);
        only(consumer(scene, queue, ""), BY_PRIORITY);
    }

    private static void prioritizedTransacted(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session transacted = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        sendPrioritized(transacted, queue);
        transacted.commit();
        only(consumer(scene, queue, ""), BY_PRIORITY);
    }

    private static void prioritizedRedelivered(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        sendPrioritized(session, queue);
        MessageConsumer gone = holding(scene, queue, "?consumer.prefetchSize=3");
        same(List.of("9-1", "9-5", "7-4"), texts(gone, 3), "the highest");
        gone.close();
        MessageConsumer heir = consumer(scene, queue, "");
        for (int i = 0; i < BY_PRIORITY.length; i++) {
            TextMessage message = next(heir);
            same(BY_PRIORITY[i], message.getText(), "text");
            same(i < 3, message.getJMSRedelivered(), "redelivered " + BY_PRIORITY[i]);
        }
    }

    private static void redeliveredFirst(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer gone = holding(scene, queue, "?consumer.prefetchSize=5");
        Session session = scene.session();
        send(session, queue, numbered("m", 8));
        same(List.of("m0", "m1", "m2"), texts(gone, 3), "seen");
        send(session, queue, "new");
        gone.close();
        MessageConsumer heir = consumer(scene, queue, "");
        for (int i = 0; i < 8; i++) {
            TextMessage message = next(heir);
            same("m" + i, message.getText(), "text");
            same(i < 3, message.getJMSRedelivered(), "redelivered m" + i);
        }
        only(heir, "new");
    }

    private static void rolledBackInOrder(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        String options = "jms.redeliveryPolicy.initialRedeliveryDelay=0";
        Session transacted = scene.connect(options).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = transacted.createConsumer(queue);
        send(scene.session(), queue, numbered("m", 6));
        same(List.of("m0", "m1", "m2"), texts(consumer, 3), "before");
        transacted.rollback();
        for (int i = 0; i < 6; i++) {
            TextMessage message = next(consumer);
            same("m" + i, message.getText(), "text");
            same(i < 3 ? 2 : 1, message.getIntProperty("JMSXDeliveryCount"), "count of m" + i);
        }
        transacted.commit();
        consumer.close();
        nothing(consumer(scene, queue, ""));
    }

    private static void selectorsSideBySide(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        MessageConsumer red = scene.session().createConsumer(queue, "colour = 'red'");
        MessageConsumer blue = scene.session().createConsumer(queue, "colour = 'blue'");
        MessageProducer producer = session.createProducer(queue);
        String[] colours = {"green", "red", "green", "blue", "red", "blue"};
        for (int i = 0; i < 60; i++) {
            Message message = session.createTextMessage(colours[i % 6] + i / 6);
            message.setStringProperty("colour", colours[i % 6]);
            producer.send(message);
        }
        same(20, texts(red, 20).size(), "red ones");
        same(20, texts(blue, 20).size(), "blue ones");
        nothing(red);
        nothing(blue);
        red.close();
        blue.close();
        same(20, texts(consumer(scene, queue, ""), 20).size(), "the ones nobody wanted");
    }

    private static void lazy(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        send(scene.session(), queue, numbered("m", 50));
        MessageConsumer consumer = consumer(scene, queue, "?consumer.prefetchSize=2");
        only(consumer, numbered("m", 50));
    }
}
