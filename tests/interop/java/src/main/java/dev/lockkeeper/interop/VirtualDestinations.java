package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;

import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** Virtual topics, composites declared on the broker, mirrored queues. */
final class VirtualDestinations {

    private VirtualDestinations() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("virtual-topic", VirtualDestinations::virtualTopic);
        scenarios.put("virtual-topic-durable", VirtualDestinations::durable);
        scenarios.put("virtual-topic-not-persistent", VirtualDestinations::notPersistent);
        scenarios.put("virtual-topic-transacted", VirtualDestinations::transacted);
        scenarios.put("virtual-topic-wildcard", VirtualDestinations::wildcard);
        scenarios.put("virtual-topic-keeps-its-name", VirtualDestinations::keepsItsName);
        scenarios.put("virtual-topic-postfix", VirtualDestinations::postfix);
        scenarios.put("virtual-topic-selector-aware", VirtualDestinations::selectorAware);
        scenarios.put("virtual-topic-composite", VirtualDestinations::compositeTopicToVirtual);
        scenarios.put("declared-queue", VirtualDestinations::declaredQueue);
        scenarios.put("declared-topic", VirtualDestinations::declaredTopic);
        scenarios.put("declared-filtered", VirtualDestinations::filtered);
        scenarios.put("declared-when-not-matched", VirtualDestinations::whenNotMatched);
        scenarios.put("declared-transacted", VirtualDestinations::declaredTransacted);
        scenarios.put("mirrored-queue", VirtualDestinations::mirrored);
        scenarios.put("mirrored-queue-virtual-topic", VirtualDestinations::mirroredVirtual);
    }

    private static Topic news(Scene scene) {
        return new ActiveMQTopic("VirtualTopic." + scene.name);
    }

    private static Queue of(Scene scene, String who) {
        return new ActiveMQQueue("Consumer." + who + ".VirtualTopic." + scene.name);
    }

    private static void virtualTopic(Scene scene) throws Exception {
        Session session = scene.session();
        Scene.send(session, news(scene), "before anybody");
        MessageConsumer subscriber = session.createConsumer(news(scene));
        MessageConsumer first = session.createConsumer(of(scene, "A"));
        MessageConsumer second = scene.session().createConsumer(of(scene, "A"));
        MessageConsumer other = session.createConsumer(of(scene, "B"));
        Scene.send(scene.session(), news(scene), Scene.numbered("m", 10));
        only(subscriber, Scene.numbered("m", 10));
        only(other, Scene.numbered("m", 10));
        List<String> shared = Scene.texts(first, 5);
        shared.addAll(Scene.texts(second, 5));
        same(Set.of(Scene.numbered("m", 10)), Set.copyOf(shared), "shared by A's consumers");
        Scene.send(scene.session(), news(scene), "again");
        ActiveMQMessage copy = next(other);
        same(of(scene, "B"), copy.getJMSDestination(), "destination");
        same(news(scene), copy.getOriginalDestination(), "original destination");
        same(news(scene), next(subscriber).getJMSDestination(), "the topic's own");
    }

    private static void durable(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connectAs(scene.name);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(news(scene), "sub").close();
        session.createConsumer(of(scene, "A")).close();
        Scene.send(scene.session(), news(scene), "a", "b");
        only(session.createDurableSubscriber(news(scene), "sub"), "a", "b");
        only(session.createConsumer(of(scene, "A")), "a", "b");
    }

    private static void notPersistent(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer a = session.createConsumer(of(scene, "A"));
        MessageConsumer b = session.createConsumer(of(scene, "B"));
        MessageProducer producer = scene.session().createProducer(news(scene));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (String text : Scene.numbered("m", 20)) {
            producer.send(session.createTextMessage(text));
        }
        only(a, Scene.numbered("m", 20));
        only(b, Scene.numbered("m", 20));
    }

    private static void transacted(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer a = session.createConsumer(of(scene, "A"));
        MessageConsumer b = session.createConsumer(of(scene, "B"));
        Session sender = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        Scene.send(sender, news(scene), "rolled back");
        sender.rollback();
        Scene.send(sender, news(scene), "a", "b");
        nothing(a);
        sender.commit();
        only(a, "a", "b");
        only(b, "a", "b");
    }

    /** A wildcard consumer has a queue of its own, called like its wildcard. */
    private static void wildcard(Scene scene) throws Exception {
        Session session = scene.session();
        Queue all = new ActiveMQQueue("Consumer.A.VirtualTopic." + scene.name + ".>");
        MessageConsumer consumer = session.createConsumer(all);
        Session sender = scene.session();
        for (String part : List.of("x", "y.z")) {
            Scene.send(sender, new ActiveMQTopic(news(scene).getTopicName() + "." + part), part);
        }
        TextMessage first = next(consumer);
        same("x", first.getText(), "text");
        same(all, first.getJMSDestination(), "destination");
        only(consumer, "y.z");
        session.close();
        Scene.send(sender, new ActiveMQTopic(news(scene).getTopicName() + ".x"), "while away");
        only(scene.session().createConsumer(all), "while away");
    }

    private static void selectorAware(Scene scene) throws Exception {
        Session session = scene.session();
        Topic topic = new ActiveMQTopic("AWARE." + scene.name);
        MessageConsumer odd = session.createConsumer(
                new ActiveMQQueue("Aware.A.AWARE." + scene.name), "odd = TRUE");
        Queue nobodys = new ActiveMQQueue("Aware.B.AWARE." + scene.name);
        session.createConsumer(nobodys).close();
        MessageProducer producer = session.createProducer(topic);
        for (int i = 0; i < 6; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setBooleanProperty("odd", i % 2 == 1);
            producer.send(message);
        }
        only(odd, "m1", "m3", "m5");
        odd.close();
        nothing(session.createConsumer(new ActiveMQQueue("Aware.A.AWARE." + scene.name)));
        nothing(session.createConsumer(nobodys));
    }

    private static void keepsItsName(Scene scene) throws Exception {
        Session session = scene.session();
        Topic topic = new ActiveMQTopic("KEPT." + scene.name);
        Queue a = new ActiveMQQueue("Kept.A.KEPT." + scene.name);
        Queue b = new ActiveMQQueue("Kept.B.KEPT." + scene.name);
        for (Queue queue : List.of(a, b)) {
            session.createConsumer(queue).close();
        }
        Scene.send(scene.session(), topic, "a", "b");
        for (Queue queue : List.of(a, b)) {
            MessageConsumer consumer = session.createConsumer(queue);
            for (int i = 0; i < 2; i++) {
                Message message = next(consumer);
                same(topic, message.getJMSDestination(), "destination");
                same(null, ((ActiveMQMessage) message).getOriginalDestination(), "original");
            }
            nothing(consumer);
            consumer.close();
            nothing(session.createConsumer(queue));
        }
    }

    private static void postfix(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer right =
                session.createConsumer(new ActiveMQQueue("Left.POST." + scene.name + ".right"));
        MessageConsumer wrong =
                session.createConsumer(new ActiveMQQueue("Left.POST." + scene.name + ".wrong"));
        Scene.send(session, new ActiveMQTopic("POST." + scene.name), "a");
        only(right, "a");
        nothing(wrong);
    }

    /** What a composite forwards to may itself be a virtual topic. */
    private static void compositeTopicToVirtual(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(of(scene, "A"));
        Scene.send(session, scene.topic("all"), "a");
        ActiveMQMessage message = next(consumer);
        same(of(scene, "A"), message.getJMSDestination(), "destination");
        same(news(scene), message.getOriginalDestination(), "the last stop before");
        nothing(consumer);
    }

    private static void declaredQueue(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("topic"));
        MessageConsumer itself = session.createConsumer(scene.queue("all"));
        Scene.send(scene.session(), scene.queue("all"), "a", "b");
        only(topic, "a", "b");
        ActiveMQMessage copy = next(session.createConsumer(scene.queue("queue")));
        same(scene.queue("queue"), copy.getJMSDestination(), "destination");
        same(scene.queue("all"), copy.getOriginalDestination(), "original destination");
        nothing(itself);
    }

    private static void declaredTopic(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer itself = session.createConsumer(scene.topic("all"));
        Scene.send(scene.session(), scene.topic("all"), "a", "b");
        only(itself, "a", "b");
        only(session.createConsumer(scene.queue("queue")), "a", "b");
    }

    private static void declaredTransacted(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer one = session.createConsumer(scene.queue("one"));
        MessageConsumer two = session.createConsumer(scene.queue("two"));
        Session sender = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        Scene.send(sender, scene.queue("all"), "rolled back");
        sender.rollback();
        Scene.send(sender, scene.queue("all"), "a", "b");
        nothing(one);
        sender.commit();
        only(one, "a", "b");
        only(two, "a", "b");
    }

    private static void sendNumbers(Scene scene, int count) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.queue("all"));
        for (int i = 0; i < count; i++) {
            TextMessage message = session.createTextMessage("m" + i);
            message.setIntProperty("number", i);
            producer.send(message);
        }
    }

    private static void filtered(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("high"));
        sendNumbers(scene, 6);
        only(session.createConsumer(scene.queue("low")), "m0", "m1");
        only(topic, "m4", "m5");
        nothing(session.createConsumer(scene.queue("all")));
    }

    private static void whenNotMatched(Scene scene) throws Exception {
        Session session = scene.session();
        sendNumbers(scene, 4);
        only(session.createConsumer(scene.queue("low")), "m0", "m1");
        only(session.createConsumer(scene.queue("all")), "m2", "m3");
    }

    private static void mirrored(Scene scene) throws Exception {
        Session session = scene.session();
        Topic mirror = new ActiveMQTopic("Mirror." + scene.queue("all").getQueueName());
        MessageConsumer watching = session.createConsumer(mirror);
        Scene.send(scene.session(), scene.queue("all"), "a", "b");
        same(mirror, next(watching).getJMSDestination(), "destination");
        only(watching, "b");
        TextMessage message = next(session.createConsumer(scene.queue("all")));
        same("a", message.getText(), "the queue's own");
        same(scene.queue("all"), message.getJMSDestination(), "destination");
    }

    /** The mirror may be a virtual topic, so that queues can collect what others consume. */
    private static void mirroredVirtual(Scene scene) throws Exception {
        Session session = scene.session();
        String mirror = "Mirror." + scene.queue("all").getQueueName();
        MessageConsumer auditor = session.createConsumer(new ActiveMQQueue("Audit.A." + mirror));
        Scene.send(scene.session(), scene.queue("all"), "a", "b");
        only(auditor, "a", "b");
        only(session.createConsumer(scene.queue("all")), "a", "b");
    }
}
