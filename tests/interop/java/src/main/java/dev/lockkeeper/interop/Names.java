package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ConfigurationException;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;

/** What the name of a destination may be and say: wildcards, lists, options, characters. */
final class Names {

    private Names() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("composite-dead-letter", Names::compositeDeadLetter);
        scenarios.put("composite-not-persistent", Names::compositeNotPersistent);
        scenarios.put("composite-original", Names::compositeOriginal);
        scenarios.put("composite-transacted", Names::compositeTransacted);
        scenarios.put("destination-characters", Names::characters);
        scenarios.put("destination-options", Names::options);
        scenarios.put("wildcard-browser", Names::wildcardBrowser);
        scenarios.put("wildcard-in-a-list", Names::wildcardInAList);
    }

    private static Queue listed(Scene scene) {
        String prefix = "INTEROP." + scene.name;
        return new ActiveMQQueue(prefix + ".a,topic://" + prefix + ".b," + prefix + ".c");
    }

    private static void compositeOriginal(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("b"));
        Scene.send(scene.session(), listed(scene), "hello");
        for (MessageConsumer consumer :
                List.of(topic, session.createConsumer(scene.queue("a")))) {
            ActiveMQMessage message = next(consumer);
            same(listed(scene), message.getOriginalDestination(), "where it was sent");
        }
    }

    private static void compositeNotPersistent(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("b"));
        MessageProducer producer = session.createProducer(listed(scene));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (String text : Scene.numbered("m", 20)) {
            producer.send(session.createTextMessage(text));
        }
        only(session.createConsumer(scene.queue("a")), Scene.numbered("m", 20));
        only(session.createConsumer(scene.queue("c")), Scene.numbered("m", 20));
        only(topic, Scene.numbered("m", 20));
    }

    private static void compositeTransacted(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("b"));
        MessageConsumer queue = session.createConsumer(scene.queue("a"));
        Session sender = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        Scene.send(sender, listed(scene), "rolled back");
        sender.rollback();
        Scene.send(sender, listed(scene), "a", "b");
        nothing(queue);
        sender.commit();
        only(queue, "a", "b");
        only(topic, "a", "b");
        only(session.createConsumer(scene.queue("c")), "a", "b");
    }

    /** A copy that dies tells of the queue it died in, not of the list it was sent to. */
    private static void compositeDeadLetter(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(listed(scene));
        TextMessage sent = session.createTextMessage("poison");
        sent.setStringProperty("scenario", scene.name);
        producer.send(sent);
        Session failing = scene.connect("jms.redeliveryPolicy.maximumRedeliveries=0")
                .createSession(true, Session.SESSION_TRANSACTED);
        next(failing.createConsumer(scene.queue("a")));
        failing.rollback();
        MessageConsumer dead = session.createConsumer(
                session.createQueue("ActiveMQ.DLQ"), "scenario = '" + scene.name + "'");
        ActiveMQMessage letter = next(dead);
        same(scene.queue("a"), letter.getOriginalDestination(), "where it died");
        nothing(dead);
        only(session.createConsumer(scene.queue("c")), "poison");
    }

    private static void wildcardBrowser(Scene scene) throws Exception {
        Session session = scene.session();
        QueueBrowser all = session.createBrowser(scene.queue("order.>"));
        same(Set.of(), browsed(all), "no queue yet");
        for (String part : List.of("order.a", "order.b", "order.b.c", "other")) {
            Scene.send(session, scene.queue(part), part + " 1", part + " 2");
        }
        same(
                Set.of("order.a 1", "order.a 2", "order.b 1", "order.b 2", "order.b.c 1",
                        "order.b.c 2"),
                browsed(all),
                "three queues");
        QueueBrowser children = session.createBrowser(scene.queue("order.*"));
        same(
                Set.of("order.a 1", "order.a 2", "order.b 1", "order.b 2"),
                browsed(children),
                "two queues");
        only(session.createConsumer(scene.queue("order.a")), "order.a 1", "order.a 2");
    }

    private static Set<String> browsed(QueueBrowser browser) throws JMSException {
        Set<String> texts = new HashSet<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    private static void wildcardInAList(Scene scene) throws Exception {
        Session session = scene.session();
        Scene.send(session, scene.queue("order.a"), "a");
        Scene.send(session, scene.queue("bill"), "bill");
        String prefix = "INTEROP." + scene.name;
        MessageConsumer all = session.createConsumer(
                new ActiveMQQueue(prefix + ".order.*," + prefix + ".bill"));
        same(Set.of("a", "bill"), Set.copyOf(Scene.texts(all, 2)), "two queues");
        Scene.send(session, scene.queue("order.b"), "b");
        only(all, "b");
    }

    private static void options(Scene scene) throws Exception {
        String name = "INTEROP." + scene.name + ".all";
        Session session = scene.session();
        Scene.send(session, scene.queue("all"), Scene.numbered("m", 6));
        MessageConsumer choosy = session.createConsumer(
                new ActiveMQQueue(name + "?consumer.prefetchSize=1&consumer.priority=3"));
        same("m0", Scene.<TextMessage>next(choosy).getText(), "first");
        Session other = scene.connect("jms.prefetchPolicy.queuePrefetch=4")
                .createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer second = other.createConsumer(scene.queue("all"));
        same("m2", Scene.<TextMessage>next(second).getText(), "beyond a window of one");
        throwing(
                ConfigurationException.class,
                () -> session.createConsumer(new ActiveMQQueue(name + "?consumer.unheardOf=1")));
    }

    private static void characters(Scene scene) throws Exception {
        Session session = scene.session();
        for (String part : List.of(
                "with a space", "Gr\u00fc\u00dfe.\u65e5\u672c", "a/b:c;d=e", "x".repeat(1000),
                "a*b", "two..dots", "100%", "\"quoted\"")) {
            Scene.send(session, scene.queue(part), part);
            TextMessage message = next(session.createConsumer(scene.queue(part)));
            same(part, message.getText(), "text");
            same(scene.queue(part), message.getJMSDestination(), "destination");
        }
    }
}
