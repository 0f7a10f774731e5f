package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.jms.InvalidSelectorException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;

/** Who gets which message: selectors, browsers, prefetch, exclusive consumers, groups. */
final class Consumers {

    private Consumers() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("browser", Consumers::browser);
        scenarios.put("browser-selector", Consumers::browserSelector);
        scenarios.put("prefetch-zero", Consumers::prefetchZero);
        scenarios.put("prefetch-one-shares", Consumers::prefetchOne);
        scenarios.put("consumers-share", Consumers::share);
        scenarios.put("consumer-exclusive", Consumers::exclusive);
        scenarios.put("consumer-priority", Consumers::priority);
        scenarios.put("consumer-listener", Consumers::listener);
        scenarios.put("message-groups", Consumers::groups);
        scenarios.put("selectors", Consumers::selectors);
        scenarios.put("selector-invalid", Consumers::invalidSelector);
        scenarios.put("selector-leaves-the-rest", Consumers::selectorLeavesTheRest);
    }

    private static List<String> browse(QueueBrowser browser) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    private static void browser(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        same(List.of(), browse(session.createBrowser(queue)), "an empty queue");
        Scene.send(session, queue, Scene.numbered("m", 100));
        QueueBrowser browser = session.createBrowser(queue);
        same(List.of(Scene.numbered("m", 100)), browse(browser), "browsed");
        same(List.of(Scene.numbered("m", 100)), browse(browser), "browsed again");
        browser.close();
        only(session.createConsumer(queue), Scene.numbered("m", 100));
    }

    private static void browserSelector(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 10; i++) {
            Message message = session.createTextMessage("m" + i);
            message.setIntProperty("number", i);
            producer.send(message);
        }
        QueueBrowser browser = session.createBrowser(queue, "number >= 7");
        same(List.of("m7", "m8", "m9"), browse(browser), "browsed");
        only(session.createConsumer(queue), Scene.numbered("m", 10));
    }

    private static void prefetchZero(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        ActiveMQConnection connection = scene.connect("jms.prefetchPolicy.queuePrefetch=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        same(null, consumer.receiveNoWait(), "receiveNoWait of an empty queue");
        long start = System.currentTimeMillis();
        same(null, consumer.receive(400), "receive with a timeout of an empty queue");
        long waited = System.currentTimeMillis() - start;
        check(waited >= 390 && waited < 5000, "waited " + waited + " ms");
        Session other = scene.session();
        Scene.send(other, queue, "a", "b", "c", "d", "e");
        same("a", ((TextMessage) consumer.receiveNoWait()).getText(), "receiveNoWait");
        same("b", ((TextMessage) consumer.receive(Scene.SOON)).getText(), "receive(timeout)");
        same("c", ((TextMessage) consumer.receive()).getText(), "receive()");
        only(other.createConsumer(queue), "d", "e");
        Thread late = new Thread(() -> sendLater(scene, queue));
        late.start();
        same("late", ((TextMessage) consumer.receive()).getText(), "receive() that waits");
        late.join();
    }

    private static void sendLater(Scene scene, Queue queue) {
        try {
            Thread.sleep(300);
            Session session = scene.session();
            try (MessageConsumer none = session.createConsumer(scene.queue("unused"))) {
                Scene.send(session, queue, "late");
            }
        } catch (JMSException | InterruptedException exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static void prefetchOne(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        ActiveMQConnection connection = scene.connect("jms.prefetchPolicy.queuePrefetch=1");
        MessageConsumer slow = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createConsumer(queue);
        MessageConsumer fast = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createConsumer(queue);
        Scene.send(scene.session(), queue, Scene.numbered("m", 10));
        same(9, Scene.texts(fast, 9).size(), "what the slow consumer does not hold");
        nothing(fast);
        same(1, Scene.texts(slow, 1).size(), "what the slow consumer holds");
    }

    private static void share(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer one = scene.session().createConsumer(queue);
        MessageConsumer two = scene.session().createConsumer(queue);
        Scene.send(scene.session(), queue, Scene.numbered("m", 100));
        List<String> all = new ArrayList<>(Scene.texts(one, 40));
        all.addAll(Scene.texts(two, 40));
        for (MessageConsumer consumer : List.of(one, two)) {
            for (Message each; (each = consumer.receive(Scene.NEVER)) != null; ) {
                all.add(((TextMessage) each).getText());
            }
        }
        Collections.sort(all);
        List<String> expected = new ArrayList<>(List.of(Scene.numbered("m", 100)));
        Collections.sort(expected);
        same(expected, all, "each message once, shared about evenly");
    }

    private static void exclusive(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        Queue asked = session.createQueue(queue.getQueueName() + "?consumer.exclusive=true");
        MessageConsumer first = scene.session().createConsumer(asked);
        MessageConsumer second = scene.session().createConsumer(asked);
        Scene.send(session, queue, Scene.numbered("m", 10));
        only(first, Scene.numbered("m", 10));
        nothing(second);
        first.close();
        Scene.send(session, queue, "taken over");
        only(second, "taken over");
    }

    private static void priority(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        MessageConsumer low = scene.session().createConsumer(queue);
        Queue asked = session.createQueue(queue.getQueueName() + "?consumer.priority=10");
        MessageConsumer high = scene.session().createConsumer(asked);
        Scene.send(session, queue, Scene.numbered("m", 10));
        only(high, Scene.numbered("m", 10));
        nothing(low);
        high.close();
        Scene.send(session, queue, "left");
        only(low, "left");
    }

    private static void listener(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        Session session = scene.session();
        session.createConsumer(queue).setMessageListener(message -> {
            try {
                seen.add(((TextMessage) message).getText());
            } catch (JMSException exception) {
                throw new IllegalStateException(exception);
            }
        });
        Scene.send(scene.session(), queue, Scene.numbered("m", 500));
        Scene.until("all have come", () -> seen.size() == 500);
        same(List.of(Scene.numbered("m", 500)), List.copyOf(seen), "order");
    }

    private static void groups(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        List<MessageConsumer> consumers = List.of(
                scene.session().createConsumer(queue), scene.session().createConsumer(queue));
        Session session = scene.session();
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 60; i++) {
            Message message = session.createTextMessage("m" + i);
            message.setStringProperty("JMSXGroupID", "group" + i % 6);
            producer.send(message);
        }
        Map<String, MessageConsumer> owners = new LinkedHashMap<>();
        Map<String, Integer> last = new LinkedHashMap<>();
        int total = 0;
        for (MessageConsumer consumer : consumers) {
            int own = 0;
            for (Message each; (each = consumer.receive(1000)) != null; own++) {
                String group = each.getStringProperty("JMSXGroupID");
                same(consumer, owners.computeIfAbsent(group, any -> consumer), "owner of " + group);
                int number = Integer.parseInt(((TextMessage) each).getText().substring(1));
                check(last.getOrDefault(group, -1) < number, "order in " + group);
                same(
                        !last.containsKey(group),
                        each.getBooleanProperty("JMSXGroupFirstForConsumer"),
                        "first of its group");
                last.put(group, number);
            }
            check(own > 0, "both consumers have groups");
            total += own;
        }
        same(60, total, "all messages");
    }

    private static void selectors(Scene scene) throws Exception {
        Map<String, Boolean> selectors = new LinkedHashMap<>();
        selectors.put("colour = 'red'", true);
        selectors.put("colour <> 'red'", false);
        selectors.put("colour IN ('blue', 'red')", true);
        selectors.put("colour NOT IN ('blue', 'red')", false);
        selectors.put("colour LIKE 'r_d' AND size > 10", true);
        selectors.put("name LIKE '10!%%' ESCAPE '!'", true);
        selectors.put("size BETWEEN 41 AND 43", true);
        selectors.put("size NOT BETWEEN 41 AND 43", false);
        selectors.put("size * 2 + 1 = 85 AND size / 2 = 21", true);
        selectors.put("missing IS NULL", true);
        selectors.put("missing = 'x' OR missing <> 'x'", false);
        selectors.put("NOT (missing = 'x')", false);
        selectors.put("colour IS NOT NULL", true);
        selectors.put("fragile", true);
        selectors.put("fragile = FALSE", false);
        selectors.put("weight >= 1.5 AND weight < 1.6E0", true);
        selectors.put("JMSPriority > 5 AND JMSType = 'parcel'", true);
        selectors.put("JMSCorrelationID = 'c-1'", true);
        selectors.put("JMSDeliveryMode = 'PERSISTENT'", true);
        selectors.put("JMSTimestamp > 0", true);
        selectors.put("size = '42'", false);
        selectors.put("quote = 'it''s'", true);
        Session session = scene.session();
        Map<String, MessageConsumer> consumers = new LinkedHashMap<>();
        for (String selector : selectors.keySet()) {
            consumers.put(selector, session.createConsumer(scene.topic("all"), selector));
        }
        Session sender = scene.session();
        MessageProducer producer = sender.createProducer(scene.topic("all"));
        producer.setPriority(6);
        producer.send(parcel(sender));
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, Boolean> each : selectors.entrySet()) {
            long patience = each.getValue() ? Scene.SOON : 50;
            boolean matched = consumers.get(each.getKey()).receive(patience) != null;
            if (matched != each.getValue()) {
                wrong.add(each.getKey());
            }
        }
        same(List.of(), wrong, "selectors with the wrong answer");
    }

    private static Message parcel(Session session) throws JMSException {
        TextMessage message = session.createTextMessage("parcel");
        message.setStringProperty("colour", "red");
        message.setStringProperty("name", "10% off");
        message.setStringProperty("quote", "it's");
        message.setIntProperty("size", 42);
        message.setFloatProperty("weight", 1.5f);
        message.setBooleanProperty("fragile", true);
        message.setJMSType("parcel");
        message.setJMSCorrelationID("c-1");
        return message;
    }

    private static void invalidSelector(Scene scene) throws Exception {
        Session session = scene.session();
        throwing(
                InvalidSelectorException.class,
                () -> session.createConsumer(scene.queue("all"), "colour = = 'red'"));
    }

    private static void selectorLeavesTheRest(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = scene.session();
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 20; i++) {
            Message message = session.createTextMessage("m" + i);
            message.setBooleanProperty("odd", i % 2 == 1);
            producer.send(message);
        }
        MessageConsumer odd = session.createConsumer(queue, "odd");
        same(10, Scene.texts(odd, 10).size(), "odd ones");
        nothing(odd);
        odd.close();
        List<String> rest = Scene.texts(session.createConsumer(queue), 10);
        same("m0", rest.get(0), "first of the rest");
        same("m18", rest.get(9), "last of the rest");
    }
}
