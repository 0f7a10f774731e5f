package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.Map;
import java.util.Set;
import javax.jms.Destination;
import javax.jms.InvalidClientIDException;
import javax.jms.JMSException;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.advisory.DestinationSource;

/** Connections: their ids, their silence, what they learn from the broker. */
final class Connections {

    private Connections() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("connection-duplicate-client-id", Connections::duplicateClientId);
        scenarios.put("connection-stolen-client-id", Connections::stolenClientId);
        scenarios.put("connection-idle", Connections::idle);
        scenarios.put("connection-many", Connections::many);
        scenarios.put("connection-wire-options", Connections::wireOptions);
        scenarios.put("connection-broker-info", Connections::brokerInfo);
        scenarios.put("connection-without-advisories", Connections::withoutAdvisories);
        scenarios.put("advisory-destinations", Connections::destinations);
    }

    private static void duplicateClientId(Scene scene) throws Exception {
        ActiveMQConnection first = scene.connectAs(scene.name);
        InvalidClientIDException refused =
                throwing(InvalidClientIDException.class, () -> scene.connectAs(scene.name));
        check(refused.getMessage().contains(scene.name), refused.getMessage());
        first.close();
        scene.connectAs(scene.name);
    }

    private static void stolenClientId(Scene scene) throws Exception {
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session abandoned = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
        abandoned.createDurableSubscriber(scene.topic("all"), "sub");
        Session session =
                scene.connectAs(scene.name).createSession(false, Session.AUTO_ACKNOWLEDGE);
        var subscriber = session.createDurableSubscriber(scene.topic("all"), "sub");
        Scene.send(scene.session(), scene.topic("all"), "for the newcomer");
        only(subscriber, "for the newcomer");
        Scene.until("the first one is cut off", () -> isCutOff(first));
        subscriber.close();
        session.unsubscribe("sub");
    }

    private static boolean isCutOff(ActiveMQConnection connection) {
        try {
            connection.createSession(false, Session.AUTO_ACKNOWLEDGE).close();
            return false;
        } catch (JMSException expected) {
            return true;
        }
    }

    private static void idle(Scene scene) throws Exception {
        Session session = scene.connect(
                        "wireFormat.maxInactivityDuration=600"
                                + "&wireFormat.maxInactivityDurationInitalDelay=100")
                .createSession(false, Session.AUTO_ACKNOWLEDGE);
        Thread.sleep(2500);
        Scene.send(session, scene.queue("all"), "still here");
        only(session.createConsumer(scene.queue("all")), "still here");
    }

    private static void many(Scene scene) throws Exception {
        for (int i = 0; i < 50; i++) {
            Scene.send(scene.session(), scene.queue("all"), "from " + i);
        }
        check(
                Scene.texts(scene.session().createConsumer(scene.queue("all")), 50).size() == 50,
                "one message of each connection");
    }

    private static void wireOptions(Scene scene) throws Exception {
        for (String options : new String[] {
            "wireFormat.tightEncodingEnabled=false",
            "wireFormat.cacheEnabled=false",
            "wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false",
            "wireFormat.stackTraceEnabled=false",
            "wireFormat.maxInactivityDuration=0",
            "wireFormat.tcpNoDelayEnabled=false&wireFormat.cacheSize=256",
        }) {
            Session session = scene.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
            Scene.send(session, scene.queue("all"), options);
            try (var consumer = session.createConsumer(scene.queue("all"))) {
                only(consumer, options);
            }
        }
    }

    private static void brokerInfo(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Scene.until("the broker's name is known", () -> connection.getBrokerName() != null);
        check(!connection.getBrokerName().isEmpty(), "a broker has a name");
    }

    private static void withoutAdvisories(Scene scene) throws Exception {
        Session session = scene.connect("jms.watchTopicAdvisories=false")
                .createSession(false, Session.AUTO_ACKNOWLEDGE);
        Scene.send(session, scene.queue("all"), "a");
        only(session.createConsumer(scene.queue("all")), "a");
    }

    private static boolean known(Set<?> destinations, Destination destination) {
        return destinations.contains(destination);
    }

    private static void destinations(Scene scene) throws Exception {
        Scene.send(scene.session(), scene.queue("before"), "a");
        DestinationSource source = scene.connect().getDestinationSource();
        Scene.until(
                "an old queue is known", () -> known(source.getQueues(), scene.queue("before")));
        Scene.send(scene.session(), scene.queue("after"), "b");
        Scene.until("a new queue is known", () -> known(source.getQueues(), scene.queue("after")));
        Scene.send(scene.session(), scene.topic("after"), "c");
        Scene.until("a new topic is known", () -> known(source.getTopics(), scene.topic("after")));
    }
}
