package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.command.XATransactionId;

/** All or nothing, local and XA. */
final class Transactions {

    private static final String NO_DELAY =
            "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0";

    private Transactions() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("transaction-send", Transactions::send);
        scenarios.put("transaction-receive", Transactions::receive);
        scenarios.put("transaction-both", Transactions::both);
        scenarios.put("transaction-large", Transactions::large);
        scenarios.put("transaction-connection-closes", Transactions::connectionCloses);
        scenarios.put("transaction-topic", Transactions::topic);
        scenarios.put("xa-two-phase", Transactions::twoPhase);
        scenarios.put("xa-one-phase-and-rollback", Transactions::onePhaseAndRollback);
        scenarios.put("xa-recover", Transactions::recover);
        scenarios.put("xa-join", Transactions::join);
    }

    private static Session transacted(Scene scene) throws Exception {
        return scene.connect(NO_DELAY).createSession(true, Session.SESSION_TRANSACTED);
    }

    private static void send(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = transacted(scene);
        MessageConsumer consumer = scene.session().createConsumer(queue);
        Scene.send(session, queue, "rolled back");
        nothing(consumer);
        session.rollback();
        Scene.send(session, queue, "a", "b", "c");
        nothing(consumer);
        session.commit();
        only(consumer, "a", "b", "c");
    }

    private static void receive(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, "a", "b", "c");
        Session session = transacted(scene);
        MessageConsumer consumer = session.createConsumer(queue);
        same(List.of("a", "b"), Scene.texts(consumer, 2), "first time");
        session.rollback();
        for (String text : List.of("a", "b")) {
            TextMessage again = next(consumer);
            same(text, again.getText(), "after rollback");
            check(again.getJMSRedelivered(), "marked as redelivered");
            same(2, again.getIntProperty("JMSXDeliveryCount"), "delivery count");
        }
        TextMessage third = next(consumer);
        check(!third.getJMSRedelivered(), "what was not delivered is not marked");
        session.commit();
        session.close();
        nothing(scene.session().createConsumer(queue));
    }

    private static void both(Scene scene) throws Exception {
        Queue from = scene.queue("from");
        Queue to = scene.queue("to");
        Scene.send(scene.session(), from, "work");
        Session session = transacted(scene);
        MessageConsumer consumer = session.createConsumer(from);
        MessageConsumer result = scene.session().createConsumer(to);
        next(consumer);
        Scene.send(session, to, "half done");
        session.rollback();
        nothing(result);
        same("work", Scene.<TextMessage>next(consumer).getText(), "again");
        Scene.send(session, to, "done");
        session.commit();
        only(result, "done");
        session.close();
        nothing(scene.session().createConsumer(from));
    }

    private static void large(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = transacted(scene);
        Scene.send(session, queue, Scene.numbered("m", 2500));
        session.commit();
        Session consuming = transacted(scene);
        MessageConsumer consumer = consuming.createConsumer(queue);
        List<String> found = new ArrayList<>();
        while (found.size() < 2500) {
            found.addAll(Scene.texts(consumer, 100));
            consuming.commit();
        }
        same(List.of(Scene.numbered("m", 2500)), found, "sent in one transaction");
        nothing(consumer);
    }

    private static void connectionCloses(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Scene.send(scene.session(), queue, "stays");
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Scene.send(session, queue, "never committed");
        next(session.createConsumer(queue));
        connection.close();
        only(scene.session().createConsumer(queue), "stays");
    }

    private static void topic(Scene scene) throws Exception {
        MessageConsumer consumer = scene.session().createConsumer(scene.topic("all"));
        Session session = transacted(scene);
        Scene.send(session, scene.topic("all"), "rolled back");
        session.rollback();
        Scene.send(session, scene.topic("all"), "committed");
        nothing(consumer);
        session.commit();
        only(consumer, "committed");
    }

    private static Xid xid(Scene scene, int number) {
        XATransactionId id = new XATransactionId();
        id.setFormatId(7);
        id.setGlobalTransactionId((scene.name + number).getBytes());
        id.setBranchQualifier(new byte[] {1});
        return id;
    }

    private static ActiveMQXAConnection connectXa(Scene scene) throws Exception {
        ActiveMQXAConnection connection = (ActiveMQXAConnection)
                new ActiveMQXAConnectionFactory(scene.url).createXAConnection();
        connection.start();
        return connection;
    }

    private static void twoPhase(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer consumer = scene.session().createConsumer(queue);
        try (ActiveMQXAConnection connection = connectXa(scene)) {
            var session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Xid xid = xid(scene, 1);
            resource.start(xid, XAResource.TMNOFLAGS);
            Scene.send(session, queue, "a", "b");
            resource.end(xid, XAResource.TMSUCCESS);
            same(XAResource.XA_OK, resource.prepare(xid), "vote");
            nothing(consumer);
            resource.commit(xid, false);
            only(consumer, "a", "b");
        }
    }

    private static void onePhaseAndRollback(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        MessageConsumer consumer = scene.session().createConsumer(queue);
        try (ActiveMQXAConnection connection = connectXa(scene)) {
            var session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Xid first = xid(scene, 1);
            resource.start(first, XAResource.TMNOFLAGS);
            Scene.send(session, queue, "rolled back");
            resource.end(first, XAResource.TMSUCCESS);
            resource.prepare(first);
            resource.rollback(first);
            Xid second = xid(scene, 2);
            resource.start(second, XAResource.TMNOFLAGS);
            Scene.send(session, queue, "one phase");
            resource.end(second, XAResource.TMSUCCESS);
            resource.commit(second, true);
            only(consumer, "one phase");
            XAException unknown = Scene.throwing(XAException.class, () -> {
                resource.commit(xid(scene, 99), false);
                return null;
            });
            same(XAException.XAER_NOTA, unknown.errorCode, "error code of an unknown transaction");
        }
    }

    private static void recover(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Xid xid = xid(scene, 1);
        try (ActiveMQXAConnection connection = connectXa(scene)) {
            var session = connection.createXASession();
            XAResource resource = session.getXAResource();
            resource.start(xid, XAResource.TMNOFLAGS);
            Scene.send(session, queue, "in doubt");
            resource.end(xid, XAResource.TMSUCCESS);
            resource.prepare(xid);
        }
        MessageConsumer consumer = scene.session().createConsumer(queue);
        nothing(consumer);
        try (ActiveMQXAConnection connection = connectXa(scene)) {
            XAResource resource = connection.createXASession().getXAResource();
            Xid[] found = resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
            check(List.of(found).contains(xid), "the prepared transaction is listed");
            resource.commit(xid, false);
            only(consumer, "in doubt");
            Xid[] left = resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
            check(!List.of(left).contains(xid), "and after its commit no more");
        }
    }

    /** Two connections to one broker are one resource: what both do in a branch is one. */
    private static void join(Scene scene) throws Exception {
        Queue from = scene.queue("from");
        Queue to = scene.queue("to");
        Scene.send(scene.session(), from, "a", "b");
        MessageConsumer results = scene.session().createConsumer(to);
        try (ActiveMQXAConnection first = connectXa(scene);
                ActiveMQXAConnection second = connectXa(scene)) {
            var sessions = List.of(first.createXASession(), second.createXASession());
            XAResource resource = sessions.get(0).getXAResource();
            XAResource other = sessions.get(1).getXAResource();
            check(resource.isSameRM(other), "one resource");
            for (boolean onePhase : new boolean[] {true, false}) {
                Xid xid = xid(scene, onePhase ? 1 : 2);
                resource.start(xid, XAResource.TMNOFLAGS);
                other.start(xid, XAResource.TMJOIN);
                for (var session : sessions) {
                    Scene.send(session, to, "done");
                }
                MessageConsumer consumer = sessions.get(1).createConsumer(from);
                next(consumer);
                other.end(xid, XAResource.TMSUCCESS);
                resource.end(xid, XAResource.TMSUCCESS);
                nothing(results);
                if (!onePhase) {
                    same(XAResource.XA_OK, resource.prepare(xid), "vote");
                }
                resource.commit(xid, onePhase);
                only(results, "done", "done");
                consumer.close();
            }
        }
        nothing(scene.session().createConsumer(from));
    }
}
