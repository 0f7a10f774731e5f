package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;

/** The failover transport comes back after its socket was cut, and nothing is lost. */
final class Failover {

    private Failover() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("failover-producer", Failover::producer);
        scenarios.put("failover-consumer", Failover::consumer);
        scenarios.put("failover-unacknowledged", Failover::unacknowledged);
        scenarios.put("failover-transaction", Failover::transaction);
        scenarios.put("failover-durable", Failover::durable);
        scenarios.put(
                "failover-durable-wildcard", scene -> durableOf(scene, scene.topic(">")));
        scenarios.put("failover-temporary-queue", Failover::temporaryQueue);
    }

    private static void producer(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        try (CutProxy proxy = new CutProxy(scene.url)) {
            Session session =
                    scene.connectTo(proxy.url()).createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 60; i++) {
                if (i % 20 == 10) {
                    proxy.cut();
                }
                producer.send(session.createTextMessage("m" + i));
            }
            only(scene.session().createConsumer(queue), Scene.numbered("m", 60));
            session.close();
        }
    }

    private static void consumer(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session sender = scene.session();
        try (CutProxy proxy = new CutProxy(scene.url)) {
            ActiveMQConnection connection = scene.connectTo(proxy.url());
            MessageConsumer consumer = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)
                    .createConsumer(queue);
            Scene.send(sender, queue, Scene.numbered("m", 20));
            List<String> seen = new ArrayList<>(Scene.texts(consumer, 10));
            proxy.cut();
            Scene.send(sender, queue, "afterwards");
            Set<String> all = new LinkedHashSet<>(seen);
            while (!all.contains("afterwards")) {
                TextMessage message = next(consumer);
                all.add(message.getText());
            }
            Set<String> expected = new LinkedHashSet<>(List.of(Scene.numbered("m", 20)));
            expected.add("afterwards");
            same(expected, all, "all messages in order");
            connection.close();
            nothing(scene.session().createConsumer(queue));
        }
    }

    private static void unacknowledged(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, "a", "b", "c");
        try (CutProxy proxy = new CutProxy(scene.url)) {
            ActiveMQConnection connection = scene.connectTo(proxy.url());
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(queue);
            same(List.of("a", "b", "c"), Scene.texts(consumer, 3), "first time");
            proxy.cut();
            for (String text : List.of("a", "b", "c")) {
                TextMessage again = next(consumer);
                same(text, again.getText(), "after the cut");
                check(again.getJMSRedelivered(), "marked as redelivered");
                if (text.equals("c")) {
                    again.acknowledge();
                }
            }
            connection.close();
        }
        nothing(scene.session().createConsumer(queue));
    }

    private static void transaction(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer observer = scene.session().createConsumer(queue);
        try (CutProxy proxy = new CutProxy(scene.url)) {
            ActiveMQConnection connection = scene.connectTo(proxy.url());
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 10; i++) {
                if (i == 5) {
                    proxy.cut();
                }
                producer.send(session.createTextMessage("m" + i));
            }
            nothing(observer);
            session.commit();
            only(observer, Scene.numbered("m", 10));
            connection.close();
        }
    }

    private static void durable(Scene scene) throws Exception {
        durableOf(scene, scene.topic("all"));
    }

    private static void durableOf(Scene scene, Topic topic) throws Exception {
        try (CutProxy proxy = new CutProxy(scene.url)) {
            ActiveMQConnection connection =
                    scene.connectTo(proxy.url() + "&jms.clientID=" + scene.name);
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer subscriber = session.createDurableSubscriber(topic, "sub");
            Session sender = scene.session();
            Scene.send(sender, scene.topic("all"), "before");
            only(subscriber, "before");
            proxy.cut();
            Scene.send(sender, scene.topic("all"), "after");
            only(subscriber, "after");
            subscriber.close();
            session.unsubscribe("sub");
            connection.close();
        }
    }

    private static void temporaryQueue(Scene scene) throws Exception {
        try (CutProxy proxy = new CutProxy(scene.url)) {
            ActiveMQConnection connection = scene.connectTo(proxy.url());
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            TemporaryQueue queue = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(queue);
            Session other = scene.session();
            Scene.sendOnceKnown(other, queue, "before");
            only(consumer, "before");
            proxy.cut();
            Scene.send(session, scene.queue("awake"), "reconnected");
            Scene.sendOnceKnown(scene.session(), queue, "after");
            only(consumer, "after");
            connection.close();
        }
    }
}
