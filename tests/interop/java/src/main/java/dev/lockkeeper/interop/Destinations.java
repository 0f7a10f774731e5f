package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.Destination;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.DestinationDoesNotExistException;
import org.apache.activemq.command.ActiveMQQueue;

/** Queues, topics, temporary ones, wildcards and composites. */
final class Destinations {

    private Destinations() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("topic-fan-out", Destinations::fanOut);
        scenarios.put("topic-no-local", Destinations::noLocal);
        scenarios.put("request-reply", Destinations::requestReply);
        scenarios.put("temporary-topic", Destinations::temporaryTopic);
        scenarios.put("temporary-deleted", Destinations::temporaryDeleted);
        scenarios.put("wildcard-topic", Destinations::wildcardTopic);
        scenarios.put("wildcard-queue", Destinations::wildcardQueue);
        scenarios.put("composite-send", Destinations::compositeSend);
        scenarios.put("composite-receive", Destinations::compositeReceive);
        scenarios.put("anonymous-producer", Destinations::anonymousProducer);
    }

    private static void fanOut(Scene scene) throws Exception {
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            consumers.add(scene.session().createConsumer(scene.topic("all")));
        }
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("t", 100));
        for (MessageConsumer consumer : consumers) {
            only(consumer, Scene.numbered("t", 100));
        }
    }

    private static void noLocal(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer deaf = session.createConsumer(scene.topic("all"), null, true);
        MessageConsumer hearing = session.createConsumer(scene.topic("all"), null, false);
        Scene.send(session, scene.topic("all"), "own");
        Scene.send(scene.session(), scene.topic("all"), "other");
        only(deaf, "other");
        only(hearing, "own", "other");
    }

    private static void requestReply(Scene scene) throws Exception {
        Queue requests = scene.queue("requests");
        Session server = scene.session();
        server.createConsumer(requests).setMessageListener(request -> {
            try {
                Message reply =
                        server.createTextMessage("re: " + ((TextMessage) request).getText());
                reply.setJMSCorrelationID(request.getJMSMessageID());
                server.createProducer(request.getJMSReplyTo()).send(reply);
            } catch (JMSException exception) {
                throw new IllegalStateException(exception);
            }
        });
        Session client = scene.session();
        TemporaryQueue replies = client.createTemporaryQueue();
        MessageConsumer consumer = client.createConsumer(replies);
        for (String text : Scene.numbered("request", 20)) {
            TextMessage request = client.createTextMessage(text);
            request.setJMSReplyTo(replies);
            client.createProducer(requests).send(request);
            TextMessage reply = next(consumer);
            same("re: " + text, reply.getText(), "reply");
            same(request.getJMSMessageID(), reply.getJMSCorrelationID(), "correlation id");
        }
        consumer.close();
        replies.delete();
    }

    private static void temporaryTopic(Scene scene) throws Exception {
        Session owner = scene.session();
        TemporaryTopic topic = owner.createTemporaryTopic();
        MessageConsumer one = owner.createConsumer(topic);
        MessageConsumer two = owner.createConsumer(topic);
        Scene.sendOnceKnown(scene.session(), topic, "hello");
        only(one, "hello");
        only(two, "hello");
    }

    private static void temporaryDeleted(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        Session owner = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session other = scene.session();
        TemporaryQueue deleted = owner.createTemporaryQueue();
        TemporaryQueue orphaned = owner.createTemporaryQueue();
        throwing(InvalidDestinationException.class, () -> other.createConsumer(deleted));
        Scene.sendOnceKnown(other, deleted, "while it exists");
        deleted.delete();
        Scene.until("the deletion is known", () -> refused(other, deleted));
        Scene.sendOnceKnown(other, orphaned, "while it exists");
        connection.close();
        Scene.until("the end of its connection is known", () -> refused(other, orphaned));
    }

    private static boolean refused(Session session, Destination destination) throws JMSException {
        try {
            Scene.send(session, destination, "too late");
            return false;
        } catch (InvalidDestinationException | DestinationDoesNotExistException exception) {
            // The client knows from an advisory, or the broker says so: whichever is faster.
            return true;
        }
    }

    private static void wildcardTopic(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer below = session.createConsumer(scene.topic("price.>"));
        MessageConsumer child = session.createConsumer(scene.topic("price.*"));
        MessageConsumer middle = session.createConsumer(scene.topic("*.gold"));
        Session sender = scene.session();
        for (String name : List.of("price.gold", "price.gold.old", "weight.gold", "price")) {
            Scene.send(sender, scene.topic(name), name);
        }
        only(below, "price.gold", "price.gold.old", "price");
        only(child, "price.gold");
        only(middle, "price.gold", "weight.gold");
    }

    private static void wildcardQueue(Scene scene) throws Exception {
        Session sender = scene.session();
        Scene.send(sender, scene.queue("order.a"), "a");
        Session session = scene.session();
        MessageConsumer all = session.createConsumer(scene.queue("order.>"));
        same("a", Scene.<TextMessage>next(all).getText(), "a queue that was there before");
        Scene.send(sender, scene.queue("order.b"), "b");
        TextMessage later = next(all);
        same("b", later.getText(), "a queue that came later");
        same(scene.queue("order.b"), later.getJMSDestination(), "the queue itself");
        nothing(all);
        session.close();
        nothing(scene.session().createConsumer(scene.queue("order.a")));
    }

    private static Destination composite(Scene scene) {
        String prefix = "INTEROP." + scene.name;
        return new ActiveMQQueue(prefix + ".a," + prefix + ".b,topic://" + prefix + ".c");
    }

    private static void compositeSend(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("c"));
        Scene.send(scene.session(), composite(scene), "to all three");
        only(topic, "to all three");
        TextMessage found = next(session.createConsumer(scene.queue("a")));
        same("to all three", found.getText(), "first queue");
        same(scene.queue("a"), found.getJMSDestination(), "destination");
        only(session.createConsumer(scene.queue("b")), "to all three");
    }

    private static void compositeReceive(Scene scene) throws Exception {
        Session session = scene.session();
        String prefix = "INTEROP." + scene.name;
        MessageConsumer all =
                session.createConsumer(new ActiveMQQueue(prefix + ".a," + prefix + ".b"));
        Session sender = scene.session();
        Scene.send(sender, scene.queue("a"), "a");
        Scene.send(sender, scene.queue("b"), "b");
        same(Set.of("a", "b"), Set.copyOf(Scene.texts(all, 2)), "texts");
        nothing(all);
    }

    private static void anonymousProducer(Scene scene) throws Exception {
        Session session = scene.session();
        var producer = session.createProducer(null);
        for (String part : List.of("a", "b")) {
            producer.send(scene.queue(part), session.createTextMessage(part));
        }
        only(session.createConsumer(scene.queue("b")), "b");
        only(session.createConsumer(scene.queue("a")), "a");
    }
}
