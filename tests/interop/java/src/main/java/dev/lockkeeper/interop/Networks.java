package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.numbered;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.send;

import java.util.Map;
import javax.jms.BytesMessage;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;

/**
 * Clients at two brokers that a duplex bridge connects: its addresses are separated by #.
 *
 * <p>Requests are sent at the first one, and consumed at the second.
 */
final class Networks {

    private Networks() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("network-queue", Networks::queue);
        scenarios.put("network-bodies", Networks::bodies);
        scenarios.put("network-topic", Networks::topic);
        scenarios.put("network-durable", Networks::durable);
        scenarios.put("network-request-reply", Networks::requestReply);
        scenarios.put("network-transacted", Networks::transacted);
        scenarios.put("network-rolled-back", Networks::rolledBack);
    }

    private static ActiveMQConnection at(Scene scene, int end) throws Exception {
        return scene.connectTo(scene.url.split("#")[end]);
    }

    private static Session session(Scene scene, int end) throws Exception {
        return at(scene, end).createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static void queue(Scene scene) throws Exception {
        Queue queue = scene.queue("q");
        MessageConsumer consumer = session(scene, 1).createConsumer(queue);
        send(session(scene, 0), queue, numbered("m", 300));
        only(consumer, numbered("m", 300));
    }

    private static void bodies(Scene scene) throws Exception {
        Queue queue = scene.queue("q");
        MessageConsumer consumer = session(scene, 1).createConsumer(queue);
        Session near = session(scene, 0);
        MessageProducer producer = near.createProducer(queue);
        BytesMessage bytes = near.createBytesMessage();
        bytes.writeLong(7);
        producer.send(bytes);
        MapMessage map = near.createMapMessage();
        map.setString("a", "b");
        producer.send(map);
        producer.send(near.createObjectMessage("object"));
        Message empty = near.createMessage();
        empty.setStringProperty("p", "v");
        empty.setJMSCorrelationID("c");
        producer.send(empty);
        same(7L, Networks.<BytesMessage>taken(consumer).readLong(), "bytes");
        same("b", Networks.<MapMessage>taken(consumer).getString("a"), "map");
        check(Networks.<Message>taken(consumer) instanceof ObjectMessage, "no object message");
        Message found = next(consumer);
        same("v", found.getStringProperty("p"), "property");
        same("c", found.getJMSCorrelationID(), "correlation id");
        same(empty.getJMSMessageID(), found.getJMSMessageID(), "message id");
        check(!found.getJMSRedelivered(), "redelivered");
    }

    private static <T extends Message> T taken(MessageConsumer consumer) throws Exception {
        return next(consumer);
    }

    private static void topic(Scene scene) throws Exception {
        Topic topic = scene.topic("t");
        MessageConsumer near = session(scene, 0).createConsumer(topic);
        MessageConsumer far = session(scene, 1).createConsumer(topic);
        Session sender = session(scene, 0);
        awaitDemand(sender, topic, far, near);
        send(sender, topic, "a", "b");
        only(far, "a", "b");
        only(near, "a", "b");
    }

    /** Sends until the other broker's consumer gets it: then the bridge knows of it. */
    private static void awaitDemand(
            Session sender, Topic topic, MessageConsumer far, MessageConsumer near)
            throws Exception {
        Scene.until("the bridge forwards " + topic, () -> {
            send(sender, topic, "probe");
            return far.receive(500) != null;
        });
        while (far.receive(500) != null || near.receive(100) != null) {
            continue;
        }
    }

    private static void durable(Scene scene) throws Exception {
        Topic topic = scene.topic("t");
        String address = scene.url.split("#")[1] + "?jms.clientID=network-durable";
        ActiveMQConnection connection = scene.connectTo(address);
        Session far = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer subscriber = far.createDurableSubscriber(topic, "s");
        Session near = session(scene, 0);
        Scene.until("the bridge forwards " + topic, () -> {
            send(near, topic, "probe");
            return subscriber.receive(500) != null;
        });
        while (subscriber.receive(500) != null) {
            continue;
        }
        subscriber.close();
        send(near, topic, "a", "b");
        only(far.createDurableSubscriber(topic, "s"), "a", "b");
    }

    private static void requestReply(Scene scene) throws Exception {
        Queue queue = scene.queue("q");
        Session far = session(scene, 1);
        MessageConsumer service = far.createConsumer(queue);
        Session near = session(scene, 0);
        TemporaryQueue place = near.createTemporaryQueue();
        MessageConsumer answers = near.createConsumer(place);
        TextMessage request = near.createTextMessage("question");
        request.setJMSReplyTo(place);
        near.createProducer(queue).send(request);
        TextMessage asked = next(service);
        same("question", asked.getText(), "request");
        Scene.sendOnceKnown(far, asked.getJMSReplyTo(), "answer");
        only(answers, "answer");
    }

    private static void transacted(Scene scene) throws Exception {
        Queue queue = scene.queue("q");
        MessageConsumer consumer = session(scene, 1).createConsumer(queue);
        Session near = at(scene, 0).createSession(true, Session.SESSION_TRANSACTED);
        send(near, queue, "lost");
        near.rollback();
        send(near, queue, "a", "b");
        near.commit();
        only(consumer, "a", "b");
    }

    private static void rolledBack(Scene scene) throws Exception {
        Queue queue = scene.queue("q");
        Session far = at(scene, 1).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = far.createConsumer(queue);
        send(session(scene, 0), queue, "again");
        same("again", Networks.<TextMessage>taken(consumer).getText(), "text");
        far.rollback();
        TextMessage repeated = next(consumer);
        check(repeated.getJMSRedelivered(), "not redelivered");
        far.commit();
    }
}
