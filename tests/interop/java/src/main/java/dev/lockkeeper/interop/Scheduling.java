package dev.lockkeeper.interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import org.apache.activemq.ScheduledMessage;

/** Messages that come later, or again and again, and the topic that knows of them. */
final class Scheduling {

    private static final long HOUR = 3_600_000;

    private Scheduling() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("scheduled-delay", Scheduling::delay);
        scenarios.put("scheduled-order", Scheduling::order);
        scenarios.put("scheduled-repeat", Scheduling::repeat);
        scenarios.put("scheduled-transaction", Scheduling::transaction);
        scenarios.put("scheduled-topic", Scheduling::toTopic);
        scenarios.put("scheduled-browse", Scheduling::browse);
        scenarios.put("scheduled-browse-times", Scheduling::browseTimes);
        scenarios.put("scheduled-remove", Scheduling::remove);
        scenarios.put("scheduled-cron", Scheduling::cron);
    }

    private static void delay(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(scene.queue("later"));
        TextMessage message = session.createTextMessage("later");
        message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 600);
        message.setStringProperty("colour", "red");
        long sent = System.currentTimeMillis();
        session.createProducer(scene.queue("later")).send(message);
        TextMessage received = Scene.next(consumer);
        long waited = System.currentTimeMillis() - sent;
        Scene.check(waited >= 600, "came after " + waited + " ms");
        Scene.same("later", received.getText(), "text");
        Scene.same("red", received.getStringProperty("colour"), "property");
        Scene.same(message.getJMSMessageID(), received.getJMSMessageID(), "message id");
        Scene.check(received.getStringProperty("scheduledJobId") != null, "no job id");
        Scene.check(
                !received.propertyExists(ScheduledMessage.AMQ_SCHEDULED_DELAY),
                "the delay is still there");
        Scene.nothing(consumer);
    }

    private static void order(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(scene.queue("order"));
        send(session, scene.queue("order"), "third", 3000, 0, 0);
        send(session, scene.queue("order"), "first", 1000, 0, 0);
        send(session, scene.queue("order"), "second", 2000, 0, 0);
        Scene.send(session, scene.queue("order"), "at once");
        Scene.only(consumer, "at once", "first", "second", "third");
    }

    private static void repeat(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(scene.queue("again"));
        send(session, scene.queue("again"), "again", 100, 200, 2);
        Set<String> identifiers = new HashSet<>();
        for (int i = 0; i < 3; i++) {
            Message message = Scene.next(consumer);
            identifiers.add(message.getJMSMessageID());
        }
        Scene.same(3, identifiers.size(), "message ids");
        Scene.nothing(consumer);
    }

    private static void transaction(Scene scene) throws Exception {
        Session transacted = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = scene.session().createConsumer(scene.queue("work"));
        send(transacted, scene.queue("work"), "undone", 100, 0, 0);
        transacted.rollback();
        send(transacted, scene.queue("work"), "done", 100, 0, 0);
        transacted.commit();
        Scene.only(consumer, "done");
    }

    private static void toTopic(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer one = session.createConsumer(scene.topic("news"));
        MessageConsumer two = session.createConsumer(scene.topic("news"));
        send(session, scene.topic("news"), "news", 300, 0, 0);
        Scene.only(one, "news");
        Scene.only(two, "news");
    }

    private static void browse(Scene scene) throws Exception {
        Session session = scene.session();
        send(session, scene.queue("far"), "far", 20 * HOUR, 1000, 5);
        List<Message> jobs = jobs(session, 0, Long.MAX_VALUE, "far");
        Scene.same(1, jobs.size(), "jobs");
        Message job = jobs.get(0);
        Scene.same(1000L, job.getLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD), "period");
        Scene.check(job.getStringProperty("scheduledJobId") != null, "no job id");
        removeAll(session, 0, Long.MAX_VALUE);
    }

    private static void browseTimes(Scene scene) throws Exception {
        Session session = scene.session();
        long now = System.currentTimeMillis();
        send(session, scene.queue("near"), "near", 30 * HOUR, 0, 0);
        send(session, scene.queue("far"), "far", 40 * HOUR, 0, 0);
        List<Message> all = jobs(session, now + 29 * HOUR, now + 41 * HOUR, "near", "far");
        Scene.same(2, all.size(), "jobs");
        List<Message> far = jobs(session, now + 39 * HOUR, now + 41 * HOUR, "far");
        Scene.same("far", ((TextMessage) far.get(0)).getText(), "the later one");
        removeAll(session, now + 29 * HOUR, now + 41 * HOUR);
        jobs(session, now + 29 * HOUR, now + 41 * HOUR);
    }

    private static void remove(Scene scene) throws Exception {
        Session session = scene.session();
        long now = System.currentTimeMillis();
        send(session, scene.queue("one"), "one", 50 * HOUR, 0, 0);
        send(session, scene.queue("two"), "two", 51 * HOUR, 0, 0);
        List<Message> jobs = jobs(session, now + 49 * HOUR, now + 52 * HOUR, "one", "two");
        Message request = session.createMessage();
        request.setStringProperty(
                ScheduledMessage.AMQ_SCHEDULER_ACTION,
                ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVE);
        String identifier = jobs.get(0).getStringProperty("scheduledJobId");
        request.setStringProperty("scheduledJobId", identifier);
        manager(session).send(request);
        jobs(session, now + 49 * HOUR, now + 52 * HOUR, "two");
        removeAll(session, now + 49 * HOUR, now + 52 * HOUR);
    }

    private static void cron(Scene scene) throws Exception {
        Session session = scene.session();
        TextMessage message = session.createTextMessage("leap");
        message.setStringProperty(ScheduledMessage.AMQ_SCHEDULED_CRON, "0 12 1 1 *");
        session.createProducer(scene.queue("leap")).send(message);
        List<Message> jobs = jobs(session, 0, Long.MAX_VALUE, "leap");
        Scene.same(
                "0 12 1 1 *",
                jobs.get(0).getStringProperty(ScheduledMessage.AMQ_SCHEDULED_CRON),
                "expression");
        removeAll(session, 0, Long.MAX_VALUE);
    }

    private static void send(
            Session session,
            javax.jms.Destination destination,
            String text,
            long delay,
            long period,
            int repeat)
            throws JMSException {
        TextMessage message = session.createTextMessage(text);
        message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, delay);
        if (period > 0) {
            message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, period);
            message.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, repeat);
        }
        session.createProducer(destination).send(message);
    }

    /** Returns the jobs due between two times, which must be those of these texts. */
    private static List<Message> jobs(
            Session session, long first, long last, String... texts) throws Exception {
        Message request = session.createMessage();
        request.setStringProperty(
                ScheduledMessage.AMQ_SCHEDULER_ACTION,
                ScheduledMessage.AMQ_SCHEDULER_ACTION_BROWSE);
        times(request, first, last);
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        request.setJMSReplyTo(replies);
        manager(session).send(request);
        List<Message> jobs = new ArrayList<>();
        List<String> found = new ArrayList<>();
        for (int i = 0; i < texts.length; i++) {
            TextMessage job = Scene.next(consumer);
            jobs.add(job);
            found.add(job.getText());
        }
        Scene.nothing(consumer);
        Scene.same(List.of(texts), found, "texts of the jobs");
        return jobs;
    }

    private static void removeAll(Session session, long first, long last)
            throws JMSException {
        Message request = session.createMessage();
        request.setStringProperty(
                ScheduledMessage.AMQ_SCHEDULER_ACTION,
                ScheduledMessage.AMQ_SCHEDULER_ACTION_REMOVEALL);
        times(request, first, last);
        manager(session).send(request);
    }

    private static void times(Message request, long first, long last) throws JMSException {
        request.setStringProperty(
                ScheduledMessage.AMQ_SCHEDULER_ACTION_START_TIME, Long.toString(first));
        request.setStringProperty(
                ScheduledMessage.AMQ_SCHEDULER_ACTION_END_TIME, Long.toString(last));
    }

    private static MessageProducer manager(Session session) throws JMSException {
        return session.createProducer(
                session.createTopic(ScheduledMessage.AMQ_SCHEDULER_MANAGEMENT_DESTINATION));
    }
}
