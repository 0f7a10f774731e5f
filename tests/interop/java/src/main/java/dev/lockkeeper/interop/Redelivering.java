package dev.lockkeeper.interop;

import java.util.Map;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;

/** A broker that redelivers, for clients that leave it to the broker. */
final class Redelivering {

    private static final String LEAVE_IT = "jms.redeliveryPolicy.maximumRedeliveries=0";

    private Redelivering() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("broker-redelivery", Redelivering::comesAgain);
        scenarios.put("broker-redelivery-order", Redelivering::letsOthersPass);
    }

    private static void comesAgain(Scene scene) throws Exception {
        Session session = transacted(scene);
        MessageConsumer consumer = session.createConsumer(scene.queue("work"));
        TextMessage sent = scene.session().createTextMessage("bad");
        sent.setStringProperty("colour", "red");
        scene.session().createProducer(scene.queue("work")).send(sent);
        long[] pauses = {0, 1000, 2000};
        long failed = System.currentTimeMillis();
        for (int count = 1; count <= 3; count++) {
            TextMessage message = Scene.next(consumer);
            long waited = System.currentTimeMillis() - failed;
            Scene.check(waited >= pauses[count - 1] - 10, "came after " + waited + " ms");
            Scene.same("bad", message.getText(), "text");
            Scene.same("red", message.getStringProperty("colour"), "property");
            Scene.same(sent.getJMSMessageID(), message.getJMSMessageID(), "message id");
            Scene.same(count, message.getIntProperty("JMSXDeliveryCount"), "delivery count");
            Scene.same(count > 1, message.getJMSRedelivered(), "redelivered");
            failed = System.currentTimeMillis();
            session.rollback();
        }
        Session reader = scene.session();
        MessageConsumer letters =
                reader.createConsumer(reader.createQueue("ActiveMQ.DLQ"), "colour = 'red'");
        TextMessage letter = Scene.next(letters);
        Scene.same("bad", letter.getText(), "dead letter");
    }

    private static void letsOthersPass(Scene scene) throws Exception {
        Session session = transacted(scene);
        MessageConsumer consumer = session.createConsumer(scene.queue("work"));
        Scene.send(scene.session(), scene.queue("work"), "bad");
        Scene.next(consumer);
        session.rollback();
        Scene.send(scene.session(), scene.queue("work"), "good");
        Scene.same("good", Scene.<TextMessage>next(consumer).getText(), "first");
        session.commit();
        Scene.same("bad", Scene.<TextMessage>next(consumer).getText(), "second");
        session.commit();
    }

    private static Session transacted(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(LEAVE_IT);
        return connection.createSession(true, Session.SESSION_TRANSACTED);
    }
}
