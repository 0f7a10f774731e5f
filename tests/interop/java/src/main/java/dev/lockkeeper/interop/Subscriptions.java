package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.IllegalStateException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQTopic;

/** What topics keep for whom, and what becomes of consumers that are too slow. */
final class Subscriptions {

    private Subscriptions() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("recovery-nothing", Subscriptions::recoverNothing);
        scenarios.put("durable-non-persistent", Subscriptions::durableNonPersistent);
        scenarios.put("durable-no-local", Subscriptions::durableNoLocal);
        scenarios.put("recovery-last-image", Subscriptions::recoverLastImage);
        scenarios.put("recovery-fixed-count", Subscriptions::recoverFixedCount);
        scenarios.put("recovery-fixed-size", Subscriptions::recoverFixedSize);
        scenarios.put("recovery-timed", Subscriptions::recoverTimed);
        scenarios.put("recovery-always", Subscriptions::recoverAlways);
        scenarios.put("recovery-selector", Subscriptions::recoverSelected);
        scenarios.put("recovery-durable", Subscriptions::recoverDurable);
        scenarios.put("pending-constant", Subscriptions::pendingConstant);
        scenarios.put("pending-consumer", Subscriptions::pendingConsumer);
        scenarios.put("pending-prefetch-rate", Subscriptions::pendingPrefetchRate);
        scenarios.put("evict-lowest-priority", Subscriptions::evictLowestPriority);
        scenarios.put("evict-unique-property", Subscriptions::evictUniqueProperty);
        scenarios.put("slow-abort", Subscriptions::slowAbort);
        scenarios.put("slow-abort-connection", Subscriptions::slowAbortConnection);
        scenarios.put("slow-acknowledgement", Subscriptions::slowAcknowledgement);
        scenarios.put("durable-inactive", Subscriptions::durableInactive);
        scenarios.put("durable-abandoned", Subscriptions::durableAbandoned);
    }

    private static Topic with(Topic topic, String options) throws JMSException {
        return new ActiveMQTopic(topic.getTopicName() + "?" + options);
    }

    private static Topic retroactive(Topic topic) throws JMSException {
        return with(topic, "consumer.retroactive=true");
    }

    private static Session sessionAs(Scene scene) throws JMSException {
        return scene.connectAs(scene.name).createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    // What is kept for consumers to come

    private static void recovers(Scene scene, String[] sent, String... recovered)
            throws Exception {
        Session session = scene.session();
        Scene.send(session, scene.topic("all"), sent);
        Session late = scene.session();
        MessageConsumer consumer = late.createConsumer(retroactive(scene.topic("all")));
        MessageConsumer ordinary = late.createConsumer(scene.topic("all"));
        Scene.send(session, scene.topic("all"), "new");
        String[] expected = Arrays.copyOf(recovered, recovered.length + 1);
        expected[recovered.length] = "new";
        only(consumer, expected);
        only(ordinary, "new");
    }

    private static void recoverNothing(Scene scene) throws Exception {
        recovers(scene, Scene.numbered("m", 3));
    }

    private static void recoverLastImage(Scene scene) throws Exception {
        recovers(scene, Scene.numbered("m", 5), "m4");
    }

    private static void recoverFixedCount(Scene scene) throws Exception {
        recovers(scene, Scene.numbered("m", 8), "m5", "m6", "m7");
    }

    private static void recoverFixedSize(Scene scene) throws Exception {
        Session session = scene.session();
        String padding = "x".repeat(10_000);
        for (int i = 0; i < 30; i++) {
            Scene.send(session, scene.topic("all"), i + padding);
        }
        MessageConsumer consumer = session.createConsumer(retroactive(scene.topic("all")));
        List<String> first = Scene.texts(consumer, 1);
        int oldest = Integer.parseInt(first.get(0).replace("x", ""));
        check(oldest > 20 && oldest < 28, "the oldest that is kept: " + oldest);
        for (int i = oldest + 1; i < 30; i++) {
            Scene.same(i + padding, Scene.texts(consumer, 1).get(0), "kept");
        }
        nothing(consumer);
    }

    private static void recoverTimed(Scene scene) throws Exception {
        Session session = scene.session();
        Scene.send(session, scene.topic("all"), "a", "b");
        only(session.createConsumer(retroactive(scene.topic("all"))), "a", "b");
        Thread.sleep(2500);
        Scene.send(session, scene.topic("all"), "c");
        only(session.createConsumer(retroactive(scene.topic("all"))), "c");
    }

    private static void recoverAlways(Scene scene) throws Exception {
        Session session = scene.session();
        Scene.send(session, scene.topic("all"), "a", "b");
        only(session.createConsumer(scene.topic("all")), "b");
    }

    private static void recoverSelected(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.topic("all"));
        for (String colour : List.of("red", "green", "red", "blue")) {
            Message message = session.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            producer.send(message);
        }
        Topic topic = retroactive(scene.topic("all"));
        only(session.createConsumer(topic, "colour = 'red'"), "red", "red");
        nothing(session.createConsumer(topic, "colour = 'yellow'"));
    }

    private static void recoverDurable(Scene scene) throws Exception {
        Scene.send(scene.session(), scene.topic("all"), "a", "b", "c");
        Session session = sessionAs(scene);
        only(session.createDurableSubscriber(retroactive(scene.topic("all")), "sub"), "b", "c");
    }

    // How much waits for a consumer, and what goes when it is too much

    private static MessageConsumer narrow(Session session, Topic topic, String options)
            throws JMSException {
        return session.createConsumer(with(topic, options));
    }

    private static void pendingConstant(Scene scene) throws Exception {
        MessageConsumer slow =
                narrow(scene.session(), scene.topic("all"), "consumer.prefetchSize=1");
        MessageConsumer quick = scene.session().createConsumer(scene.topic("all"));
        Session sender = scene.session();
        for (String text : Scene.numbered("m", 10)) {
            Scene.send(sender, scene.topic("all"), text);
            Scene.same(text, Scene.texts(quick, 1).get(0), "who keeps up loses nothing");
        }
        only(slow, "m0", "m7", "m8", "m9");
    }

    private static void pendingConsumer(Scene scene) throws Exception {
        Session session = scene.session();
        String options = "consumer.prefetchSize=1&consumer.maximumPendingMessageLimit=";
        MessageConsumer modest = narrow(session, scene.topic("all"), options + "1");
        MessageConsumer greedy = narrow(session, scene.topic("all"), options + "100");
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("m", 10));
        only(modest, "m0", "m9");
        only(greedy, "m0", "m7", "m8", "m9");
    }

    private static void pendingPrefetchRate(Scene scene) throws Exception {
        MessageConsumer slow =
                narrow(scene.session(), scene.topic("all"), "consumer.prefetchSize=2");
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("m", 10));
        only(slow, "m0", "m1", "m7", "m8", "m9");
    }

    private static void evictLowestPriority(Scene scene) throws Exception {
        MessageConsumer slow =
                narrow(scene.session(), scene.topic("all"), "consumer.prefetchSize=1");
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.topic("all"));
        int[] priorities = {4, 9, 1, 5, 1, 5, 0};
        for (int i = 0; i < priorities.length; i++) {
            producer.setPriority(priorities[i]);
            producer.send(session.createTextMessage("m" + i));
        }
        only(slow, "m0", "m1", "m3", "m5");
    }

    private static void evictUniqueProperty(Scene scene) throws Exception {
        MessageConsumer slow =
                narrow(scene.session(), scene.topic("all"), "consumer.prefetchSize=1");
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.topic("all"));
        String[] symbols = {"A", "A", "B", "A", "C", "B"};
        for (int i = 0; i < symbols.length; i++) {
            Message message = session.createTextMessage("m" + i);
            message.setStringProperty("symbol", symbols[i]);
            producer.send(message);
            // ActiveMQ tells the newest by its timestamp.
            Thread.sleep(5);
        }
        only(slow, "m0", "m3", "m4", "m5");
    }

    // Consumers that do not keep up

    private static void untilClosed(MessageConsumer consumer) throws Exception {
        Scene.until("the slow consumer is closed", () -> {
            try {
                consumer.getMessageListener();
                return false;
            } catch (IllegalStateException closed) {
                return true;
            }
        });
    }

    private static void slowAbort(Scene scene) throws Exception {
        MessageConsumer slow =
                narrow(scene.session(), scene.topic("all"), "consumer.prefetchSize=2");
        MessageConsumer quick = scene.session().createConsumer(scene.topic("all"));
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("m", 8));
        only(quick, Scene.numbered("m", 8));
        untilClosed(slow);
        Scene.send(scene.session(), scene.topic("all"), "later");
        only(quick, "later");
    }

    private static void slowAbortConnection(Scene scene) throws Exception {
        // Not the scene's: it could not close what the broker has broken.
        Connection connection = new ActiveMQConnectionFactory(scene.url).createConnection();
        AtomicReference<JMSException> failure = new AtomicReference<>();
        connection.setExceptionListener(failure::set);
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        narrow(session, scene.topic("all"), "consumer.prefetchSize=2");
        Scene.send(scene.session(), scene.topic("all"), Scene.numbered("m", 8));
        Scene.until("the connection is broken", () -> failure.get() != null);
    }

    private static void slowAcknowledgement(Scene scene) throws Exception {
        Session session =
                scene.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer silent = session.createConsumer(scene.queue("all"));
        MessageConsumer idle = scene.session().createConsumer(scene.queue("other"));
        Scene.send(scene.session(), scene.queue("all"), "a");
        next(silent);
        untilClosed(silent);
        check(idle.getMessageListener() == null, "who has nothing to do is spared");
        only(scene.session().createConsumer(scene.queue("all")), "a");
    }

    // Durable subscriptions

    private static void sendPassing(Session session, Destination destination, String text)
            throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage(text));
        producer.close();
    }

    private static MessageConsumer afterAbsence(Scene scene) throws Exception {
        ActiveMQConnection first = scene.connectAs(scene.name);
        first.createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createDurableSubscriber(scene.topic("all"), "sub");
        first.close();
        Session sender = scene.session();
        Scene.send(sender, scene.topic("all"), "stored");
        sendPassing(sender, scene.topic("all"), "passing");
        return sessionAs(scene).createDurableSubscriber(scene.topic("all"), "sub");
    }

    private static void durableNonPersistent(Scene scene) throws Exception {
        only(afterAbsence(scene), "stored", "passing");
    }

    private static void durableInactive(Scene scene) throws Exception {
        only(afterAbsence(scene), "stored");
    }

    private static void durableNoLocal(Scene scene) throws Exception {
        Session session = sessionAs(scene);
        MessageConsumer deaf =
                session.createDurableSubscriber(scene.topic("all"), "sub", null, true);
        Scene.send(session, scene.topic("all"), "own");
        Scene.send(scene.session(), scene.topic("all"), "other");
        TextMessage message = next(deaf);
        Scene.same("other", message.getText(), "another connection's message");
        nothing(deaf);
    }

    private static void durableAbandoned(Scene scene) throws Exception {
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(scene.topic("all"), "sub");
        first.close();
        Scene.send(scene.session(), scene.topic("all"), "a");
        Thread.sleep(3000);
        nothing(sessionAs(scene).createDurableSubscriber(scene.topic("all"), "sub"));
    }
}
