package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.List;
import java.util.Map;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQTopic;

/** Durable subscriptions remember. */
final class Durables {

    private Durables() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("durable-offline", Durables::offline);
        scenarios.put("durable-selector", Durables::selector);
        scenarios.put("durable-changed-selector", Durables::changedSelector);
        scenarios.put("durable-unsubscribe", Durables::unsubscribe);
        scenarios.put("durable-unacknowledged", Durables::unacknowledged);
        scenarios.put("durable-two-subscriptions", Durables::twoSubscriptions);
        scenarios.put("durable-errors", Durables::errors);
        scenarios.put("durable-transacted", Durables::transacted);
        scenarios.put("durable-wildcard", Durables::wildcard);
        scenarios.put("durable-wildcard-acknowledged", Durables::wildcardAcknowledged);
        scenarios.put("durable-wildcard-changed", Durables::wildcardChanged);
        scenarios.put("durable-wildcard-small-window", Durables::wildcardSmallWindow);
        scenarios.put("durable-wildcard-transacted", Durables::wildcardTransacted);
        scenarios.put("durable-wildcard-unsubscribe", Durables::wildcardUnsubscribe);
        scenarios.put("durable-list", Durables::list);
    }

    private static Session sessionAs(Scene scene, String client) throws JMSException {
        return scene.connectAs(scene.name + client).createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static void offline(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        Session sender = scene.session();
        Scene.send(sender, topic, "before");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var subscriber = session.createDurableSubscriber(topic, "sub");
        Scene.send(sender, topic, "online");
        only(subscriber, "online");
        first.close();
        Scene.send(sender, topic, Scene.numbered("offline", 150));
        Session again =
                scene.connectAs(scene.name).createSession(false, Session.AUTO_ACKNOWLEDGE);
        var resumed = again.createDurableSubscriber(topic, "sub");
        only(resumed, Scene.numbered("offline", 150));
        Scene.send(sender, topic, "online again");
        only(resumed, "online again");
        resumed.close();
        again.unsubscribe("sub");
    }

    private static void sendColours(Session session, Topic topic, String... colours)
            throws JMSException {
        MessageProducer producer = session.createProducer(topic);
        for (String colour : colours) {
            Message message = session.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            producer.send(message);
        }
    }

    private static void selector(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        Session sender = scene.session();
        Session session = sessionAs(scene, "");
        session.createDurableSubscriber(topic, "red", "colour = 'red'", false).close();
        session.createDurableSubscriber(topic, "any").close();
        sendColours(sender, topic, "red", "green", "red");
        only(session.createDurableSubscriber(topic, "red", "colour = 'red'", false), "red", "red");
        only(session.createDurableSubscriber(topic, "any"), "red", "green", "red");
    }

    private static void changedSelector(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        Session sender = scene.session();
        Session session = sessionAs(scene, "");
        session.createDurableSubscriber(topic, "sub", "colour = 'red'", false).close();
        sendColours(sender, topic, "red");
        var changed = session.createDurableSubscriber(topic, "sub", "colour = 'green'", false);
        nothing(changed);
        sendColours(sender, topic, "red", "green");
        only(changed, "green");
    }

    private static void unsubscribe(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        Session sender = scene.session();
        Session session = sessionAs(scene, "");
        session.createDurableSubscriber(topic, "sub").close();
        Scene.send(sender, topic, "kept");
        session.unsubscribe("sub");
        var fresh = session.createDurableSubscriber(topic, "sub");
        nothing(fresh);
        fresh.close();
        session.unsubscribe("sub");
    }

    private static void unacknowledged(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        var subscriber = session.createDurableSubscriber(topic, "sub");
        Scene.send(scene.session(), topic, "a", "b", "c");
        Scene.next(subscriber).acknowledge();
        Scene.next(subscriber);
        first.close();
        var resumed = sessionAs(scene, "").createDurableSubscriber(topic, "sub");
        only(resumed, "b", "c");
    }

    private static void twoSubscriptions(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        Session one = sessionAs(scene, "-one");
        Session two = sessionAs(scene, "-two");
        one.createDurableSubscriber(topic, "sub").close();
        var active = two.createDurableSubscriber(topic, "sub");
        Scene.send(scene.session(), topic, Scene.numbered("m", 20));
        only(active, Scene.numbered("m", 20));
        only(one.createDurableSubscriber(topic, "sub"), Scene.numbered("m", 20));
    }

    private static void errors(Scene scene) throws Exception {
        Session session = sessionAs(scene, "");
        InvalidDestinationException unknown = throwing(InvalidDestinationException.class, () -> {
            session.unsubscribe("nosuch");
            return null;
        });
        check(unknown.getMessage().contains("nosuch"), "message: " + unknown.getMessage());
        var active = session.createDurableSubscriber(scene.topic("all"), "sub");
        throwing(
                JMSException.class,
                () -> session.createDurableSubscriber(scene.topic("all"), "sub"));
        throwing(JMSException.class, () -> {
            session.unsubscribe("sub");
            return null;
        });
        Scene.send(scene.session(), scene.topic("all"), "still there");
        only(active, "still there");
    }

    private static void transacted(Scene scene) throws Exception {
        Topic topic = scene.topic("all");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(true, Session.SESSION_TRANSACTED);
        var subscriber = session.createDurableSubscriber(topic, "sub");
        Scene.send(scene.session(), topic, "a", "b", "c");
        Scene.texts(subscriber, 2);
        session.commit();
        Scene.next(subscriber);
        first.close();
        only(sessionAs(scene, "").createDurableSubscriber(topic, "sub"), "c");
    }

    // Wildcards: the order is that of each topic, not between them

    private static void onlySorted(MessageConsumer consumer, String... expected)
            throws JMSException {
        same(List.of(expected), Scene.texts(consumer, expected.length).stream().sorted().toList(),
                "texts");
        nothing(consumer);
    }

    private static void wildcard(Scene scene) throws Exception {
        Topic all = scene.topic("news.>");
        Session sender = scene.session();
        Scene.send(sender, scene.topic("news.home"), "before");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var subscriber = session.createDurableSubscriber(all, "sub");
        Scene.send(sender, scene.topic("news.home"), "a");
        Scene.send(sender, scene.topic("news.world"), "b");
        onlySorted(subscriber, "a", "b");
        first.close();
        Scene.send(sender, scene.topic("news.world"), "c", "d");
        Scene.send(sender, scene.topic("news.world.sport"), "e");
        Scene.send(sender, scene.topic("news"), "f");
        Scene.send(sender, scene.topic("other"), "nobody's");
        var resumed = sessionAs(scene, "").createDurableSubscriber(all, "sub");
        onlySorted(resumed, "c", "d", "e", "f");
        Scene.send(sender, scene.topic("news.later"), "g");
        only(resumed, "g");
    }

    private static void wildcardAcknowledged(Scene scene) throws Exception {
        Topic all = scene.topic("news.*");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        var subscriber = session.createDurableSubscriber(all, "sub");
        for (String name : List.of("home", "world", "sport")) {
            Scene.send(scene.session(), scene.topic("news." + name), name);
        }
        Scene.next(subscriber);
        Scene.next(subscriber).acknowledge();
        String left = Scene.<TextMessage>next(subscriber).getText();
        first.close();
        only(sessionAs(scene, "").createDurableSubscriber(all, "sub"), left);
    }

    private static void wildcardChanged(Scene scene) throws Exception {
        Topic all = scene.topic("news.>");
        Session sender = scene.session();
        Session session = sessionAs(scene, "");
        session.createDurableSubscriber(all, "sub").close();
        sendColours(sender, scene.topic("news.home"), "red");
        sendColours(sender, scene.topic("news.world"), "red");
        var changed = session.createDurableSubscriber(all, "sub", "colour = 'green'", false);
        nothing(changed);
        sendColours(sender, scene.topic("news.world"), "red", "green");
        only(changed, "green");
        changed.close();
        sendColours(sender, scene.topic("news.home"), "green");
        var plain = session.createDurableSubscriber(scene.topic("news.home"), "sub");
        nothing(plain);
        Scene.send(sender, scene.topic("news.world"), "nobody's");
        Scene.send(sender, scene.topic("news.home"), "mine");
        only(plain, "mine");
    }

    private static void wildcardSmallWindow(Scene scene) throws Exception {
        Topic all = scene.topic("news.*?consumer.prefetchSize=2");
        sessionAs(scene, "").createDurableSubscriber(all, "other").close();
        ActiveMQConnection first = scene.connectAs(scene.name + "-window");
        Session session = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(all, "sub").close();
        for (String name : List.of("a", "b", "c")) {
            Scene.send(scene.session(), scene.topic("news." + name), Scene.numbered(name, 10));
        }
        var texts = Scene.texts(session.createDurableSubscriber(all, "sub"), 30);
        for (String name : List.of("a", "b", "c")) {
            same(
                    List.of(Scene.numbered(name, 10)),
                    texts.stream().filter(text -> text.startsWith(name)).toList(),
                    "texts of one topic");
        }
    }

    private static void wildcardTransacted(Scene scene) throws Exception {
        Topic all = scene.topic("news.>");
        ActiveMQConnection first = scene.connectAs(scene.name);
        Session session = first.createSession(true, Session.SESSION_TRANSACTED);
        var subscriber = session.createDurableSubscriber(all, "sub");
        for (String name : List.of("home", "world", "sport")) {
            Scene.send(scene.session(), scene.topic("news." + name), name);
        }
        Scene.texts(subscriber, 2);
        session.commit();
        String left = Scene.<TextMessage>next(subscriber).getText();
        first.close();
        only(sessionAs(scene, "").createDurableSubscriber(all, "sub"), left);
    }

    private static void wildcardUnsubscribe(Scene scene) throws Exception {
        Topic all = scene.topic("news.>");
        Session session = sessionAs(scene, "");
        session.createDurableSubscriber(all, "sub").close();
        Scene.send(scene.session(), scene.topic("news.home"), "a");
        Scene.send(scene.session(), scene.topic("news.world"), "b");
        session.unsubscribe("sub");
        var fresh = session.createDurableSubscriber(all, "sub");
        nothing(fresh);
        throwing(JMSException.class, () -> {
            session.unsubscribe("sub");
            return null;
        });
        Scene.send(scene.session(), scene.topic("news.world"), "c");
        only(fresh, "c");
        fresh.close();
        session.unsubscribe("sub");
        throwing(InvalidDestinationException.class, () -> {
            session.unsubscribe("sub");
            return null;
        });
    }

    private static void list(Scene scene) throws Exception {
        String one = scene.topic("one").getTopicName();
        Topic list = new ActiveMQTopic(one + "," + scene.topic("two.*").getTopicName());
        sessionAs(scene, "").createDurableSubscriber(list, "sub").close();
        Session session = sessionAs(scene, "-other");
        session.createDurableSubscriber(list, "sub").close();
        Scene.send(scene.session(), scene.topic("one"), "a");
        Scene.send(scene.session(), scene.topic("two.b"), "b");
        Scene.send(scene.session(), scene.topic("three"), "nobody's");
        onlySorted(session.createDurableSubscriber(list, "sub"), "a", "b");
    }
}
