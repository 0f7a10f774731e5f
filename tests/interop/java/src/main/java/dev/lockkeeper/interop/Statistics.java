package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.same;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;

/** Figures on request, by messages to ActiveMQ.Statistics.*. */
final class Statistics {

    private static final String PREFIX = "ActiveMQ.Statistics.";

    private Statistics() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("statistics-destination", Statistics::destination);
        scenarios.put("statistics-wildcard", Statistics::wildcard);
        scenarios.put("statistics-broker", Statistics::broker);
        scenarios.put("statistics-subscription", Statistics::subscription);
    }

    private static MessageConsumer ask(Session session, String about) throws JMSException {
        Queue answers = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(answers);
        Message question = session.createMessage();
        question.setJMSReplyTo(answers);
        question.setJMSCorrelationID("mine");
        session.createProducer(session.createQueue(PREFIX + about)).send(question);
        return consumer;
    }

    private static MapMessage answer(MessageConsumer consumer) throws JMSException {
        MapMessage message = next(consumer);
        same("mine", message.getJMSCorrelationID(), "correlation id");
        return message;
    }

    private static Set<String> names(MapMessage message) throws JMSException {
        @SuppressWarnings("unchecked")
        List<String> names = Collections.list(message.getMapNames());
        return new TreeSet<>(names);
    }

    private static void destination(Scene scene) throws Exception {
        Session session = scene.session();
        Queue queue = scene.queue("all");
        Scene.send(session, queue, "a", "b", "c");
        next(session.createConsumer(queue));
        Scene.until("an acknowledgement is counted", () ->
                answer(ask(session, "Destination." + queue.getQueueName()))
                        .getLong("dequeueCount") == 1);
        MapMessage figures = answer(ask(session, "Destination." + queue.getQueueName()));
        same(
                new TreeSet<>(Set.of(
                        "averageEnqueueTime",
                        "averageMessageSize",
                        "brokerId",
                        "brokerName",
                        "consumerCount",
                        "destinationName",
                        "dequeueCount",
                        "dispatchCount",
                        "enqueueCount",
                        "expiredCount",
                        "inflightCount",
                        "maxEnqueueTime",
                        "memoryLimit",
                        "memoryPercentUsage",
                        "memoryUsage",
                        "messagesCached",
                        "minEnqueueTime",
                        "producerCount",
                        "size")),
                names(figures),
                "names");
        same("queue://" + queue.getQueueName(), figures.getString("destinationName"), "name");
        same(3L, figures.getLong("enqueueCount"), "sent");
        same(2L, figures.getLong("size"), "there");
        same(1L, figures.getLong("consumerCount"), "consumers");
        check(figures.getDouble("averageEnqueueTime") >= 0, "a time");
    }

    private static void wildcard(Scene scene) throws Exception {
        Session session = scene.session();
        Scene.send(session, scene.queue("a"), "1");
        Scene.send(session, scene.queue("b"), "1", "2");
        String all = "Destination." + scene.queue(">").getQueueName();
        MessageConsumer answers =
                ask(session, all + PREFIX + "Destination.List.End.With.Null");
        Set<String> found = new TreeSet<>();
        for (int i = 0; i < 2; i++) {
            MapMessage figures = answer(answers);
            found.add(figures.getString("destinationName") + " " + figures.getLong("size"));
        }
        same(
                new TreeSet<>(Set.of(
                        "queue://" + scene.queue("a").getQueueName() + " 1",
                        "queue://" + scene.queue("b").getQueueName() + " 2")),
                found,
                "destinations");
        check(names(answer(answers)).isEmpty(), "the end is an empty answer");
        nothing(answers);
    }

    private static void broker(Scene scene) throws Exception {
        Session session = scene.session();
        MapMessage figures = answer(ask(session, "Broker"));
        for (String name : List.of("size", "enqueueCount", "memoryLimit", "storeUsage",
                "tempLimit", "consumerCount", "producerCount")) {
            check(figures.getLong(name) >= 0, name);
        }
        for (String name : List.of("brokerName", "brokerId", "openwire", "vm", "dataDirectory")) {
            check(figures.getString(name) != null, name);
        }
    }

    private static void subscription(Scene scene) throws Exception {
        Session session = scene.session();
        Queue queue = scene.queue("all");
        session.createConsumer(queue, "a = 1");
        MessageConsumer answers = ask(session, "Subscription");
        MapMessage figures = next(answers);
        while (!figures.getString("destinationName").equals(queue.getQueueName())) {
            figures = next(answers);
        }
        same("a = 1", figures.getString("selector"), "selector");
        same(1000, figures.getInt("prefetchSize"), "window");
        same(false, figures.getBoolean("exclusive"), "exclusive");
        same(0L, figures.getLong("dispatchedQueueSize"), "held");
    }
}
