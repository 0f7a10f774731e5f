package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;

import java.util.List;
import java.util.Map;
import javax.jms.DeliveryMode;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.transaction.xa.XAResource;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.command.XATransactionId;

/** Two halves with a restart of the broker between them. */
final class Persistence {

    private static final Queue QUEUE = new ActiveMQQueue("INTEROP.restart.queue");
    private static final Queue PREPARED = new ActiveMQQueue("INTEROP.restart.prepared");
    private static final Topic TOPIC = new ActiveMQTopic("INTEROP.restart.topic");
    private static final String CLIENT = "restart-client";

    private Persistence() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("restart-before", Persistence::before);
        scenarios.put("restart-after", Persistence::after);
    }

    private static XATransactionId xid() {
        XATransactionId id = new XATransactionId();
        id.setFormatId(9);
        id.setGlobalTransactionId("restart".getBytes());
        id.setBranchQualifier(new byte[] {1});
        return id;
    }

    private static void before(Scene scene) throws Exception {
        Session durable = scene.connectAs(CLIENT).createSession(false, Session.AUTO_ACKNOWLEDGE);
        durable.createDurableSubscriber(TOPIC, "sub").close();
        Session session = scene.session();
        Scene.send(session, QUEUE, Scene.numbered("m", 30));
        MessageProducer forgetful = session.createProducer(QUEUE);
        forgetful.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        forgetful.send(session.createTextMessage("not persistent"));
        Scene.send(session, TOPIC, "t0", "t1");
        try (var consumer = session.createConsumer(QUEUE)) {
            same(10, Scene.texts(consumer, 10).size(), "consumed before");
        }
        Session open = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        Scene.send(open, QUEUE, "never committed");
        prepare(scene);
    }

    private static void prepare(Scene scene) throws Exception {
        try (ActiveMQXAConnection connection = (ActiveMQXAConnection)
                new ActiveMQXAConnectionFactory(scene.url).createXAConnection()) {
            connection.start();
            var session = connection.createXASession();
            XAResource resource = session.getXAResource();
            resource.start(xid(), XAResource.TMNOFLAGS);
            Scene.send(session, PREPARED, "prepared");
            resource.end(xid(), XAResource.TMSUCCESS);
            resource.prepare(xid());
        }
    }

    private static void after(Scene scene) throws Exception {
        Session session = scene.session();
        var consumer = session.createConsumer(QUEUE);
        List<String> expected = List.of(Scene.numbered("m", 30)).subList(10, 30);
        same(expected, Scene.texts(consumer, 20), "what was not consumed, in order");
        nothing(consumer);
        ActiveMQConnection connection = scene.connectAs(CLIENT);
        Session durable = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        only(durable.createDurableSubscriber(TOPIC, "sub"), "t0", "t1");
        var prepared = session.createConsumer(PREPARED);
        nothing(prepared);
        try (ActiveMQXAConnection xa = (ActiveMQXAConnection)
                new ActiveMQXAConnectionFactory(scene.url).createXAConnection()) {
            xa.start();
            XAResource resource = xa.createXASession().getXAResource();
            check(
                    List.of(resource.recover(XAResource.TMSTARTRSCAN)).contains(xid()),
                    "the prepared transaction is still in doubt");
            resource.commit(xid(), false);
        }
        TextMessage found = Scene.next(prepared);
        same("prepared", found.getText(), "committed after the restart");
    }
}
