package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.only;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.ResourceAllocationException;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.command.ActiveMQQueue;

/** Producer flow control: who waits when there is no room, who does not, and what is spooled. */
final class Flow {

    /** A tenth of the memory limit of the destinations. */
    private static final int BODY_BYTES = 10_000;

    private static final int COUNT = 40;

    /** More than the journal may hold where it is limited. */
    private static final int STORED = 130;

    private static final String SYNC = "jms.alwaysSyncSend=true";

    private Flow() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("flow-sync-send", Flow::syncSend);
        scenarios.put("flow-window", Flow::window);
        scenarios.put("flow-async", Flow::async);
        scenarios.put("flow-other-destination", Flow::otherDestination);
        scenarios.put("flow-acknowledge", Flow::acknowledge);
        scenarios.put("flow-commit", Flow::commit);
        scenarios.put("flow-topic", Flow::topic);
        scenarios.put("flow-fails", Flow::fails);
        scenarios.put("flow-fails-async", Flow::failsAsync);
        scenarios.put("flow-fails-after-timeout", Flow::failsAfterTimeout);
        scenarios.put("flow-off", Flow::off);
        scenarios.put("flow-spool", Flow::spool);
        scenarios.put("store-full", Flow::storeFull);
        scenarios.put("store-full-others", Flow::storeFullOthers);
    }

    /** Sends numbered messages in a thread of its own, until all are sent. */
    private static final class Sender extends Thread {

        private final Session session;
        private final MessageProducer producer;
        private final int count;
        private volatile int sent;
        private volatile JMSException failure;

        Sender(ActiveMQConnection connection, Destination to, int count, int mode)
                throws JMSException {
            this.session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            this.producer = session.createProducer(to);
            this.count = count;
            producer.setDeliveryMode(mode);
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                for (int i = 0; i < count; i++) {
                    producer.send(numbered(session, i));
                    sent = i + 1;
                }
            } catch (JMSException thrown) {
                failure = thrown;
            }
        }

        /** Waits until some were sent, and then a send has been waiting for some time. */
        void untilItWaits() throws Exception {
            long deadline = System.currentTimeMillis() + Scene.SOON;
            int before;
            do {
                before = sent;
                Thread.sleep(Scene.NEVER);
                check(System.currentTimeMillis() < deadline, "only " + sent + " were sent");
            } while (sent != before || sent < 3);
            check(isAlive() && failure == null, "all was sent: " + sent + " " + failure);
        }

        void untilAllIsSent() throws Exception {
            join(Scene.SOON);
            check(!isAlive(), "still waiting after " + sent);
            same(null, failure, "failure");
            same(count, sent, "sent");
        }
    }

    private static Sender sending(ActiveMQConnection connection, Destination to)
            throws JMSException {
        Sender sender = new Sender(connection, to, COUNT, DeliveryMode.NON_PERSISTENT);
        sender.start();
        return sender;
    }

    private static Message numbered(Session session, int number) throws JMSException {
        var message = session.createBytesMessage();
        message.writeBytes(new byte[BODY_BYTES]);
        message.setIntProperty("number", number);
        return message;
    }

    private static void expect(MessageConsumer consumer, int from, int to) throws JMSException {
        for (int i = from; i < to; i++) {
            same(i, next(consumer).getIntProperty("number"), "number");
        }
    }

    /** Sends until it fails, which it must; returns how many were sent. */
    private static int sendUntilRefused(MessageProducer producer, Session session)
            throws JMSException {
        for (int i = 0; i < COUNT; i++) {
            try {
                producer.send(numbered(session, i));
            } catch (ResourceAllocationException refused) {
                check(i >= 3, "only " + i + " were sent");
                return i;
            }
        }
        throw new AssertionError("all were sent");
    }

    private static MessageProducer volatileProducer(Session session, Destination to)
            throws JMSException {
        MessageProducer producer = session.createProducer(to);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        return producer;
    }

    private static Session autoSession(ActiveMQConnection connection) throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static void syncSend(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(SYNC);
        Sender sender = sending(connection, scene.queue("all"));
        sender.untilItWaits();
        MessageConsumer consumer = autoSession(connection).createConsumer(scene.queue("all"));
        expect(consumer, 0, COUNT);
        sender.untilAllIsSent();
        nothing(consumer);
    }

    /**
     * A producer with a window waits in its client, once the window is used up.
     *
     * <p>ActiveMQ lets messages overtake those that wait.
     */
    private static void window(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect("jms.producerWindowSize=30000");
        Sender sender = sending(connection, scene.queue("all"));
        sender.untilItWaits();
        MessageConsumer consumer = autoSession(connection).createConsumer(scene.queue("all"));
        Set<Integer> numbers = new HashSet<>();
        for (int i = 0; i < COUNT; i++) {
            numbers.add(next(consumer).getIntProperty("number"));
        }
        same(COUNT, numbers.size(), "different numbers");
        sender.untilAllIsSent();
        nothing(consumer);
    }

    /** A producer that waits for no answer waits in its socket, and its connection lives on. */
    private static void async(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect("wireFormat.maxInactivityDuration=1000");
        // 40 MB: more than Linux lets the buffers of two sockets grow to (tcp_wmem, tcp_rmem).
        int count = 100 * COUNT;
        Sender sender =
                new Sender(connection, scene.queue("all"), count, DeliveryMode.NON_PERSISTENT);
        sender.start();
        sender.untilItWaits();
        Thread.sleep(1500);
        MessageConsumer consumer = scene.session().createConsumer(scene.queue("all"));
        expect(consumer, 0, count);
        sender.untilAllIsSent();
        nothing(consumer);
    }

    private static void otherDestination(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(SYNC);
        Sender sender = sending(connection, scene.queue("all"));
        sender.untilItWaits();
        Session session = autoSession(connection);
        MessageConsumer queue = session.createConsumer(scene.queue("other"));
        MessageConsumer topic = session.createConsumer(scene.topic("other"));
        for (Destination other : new Destination[] {scene.queue("other"), scene.topic("other")}) {
            Scene.send(session, other, "a", "b");
        }
        only(queue, "a", "b");
        only(topic, "a", "b");
        check(sender.isAlive(), "the other one still waits");
    }

    private static void acknowledge(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(SYNC);
        Session session = connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(scene.queue("all"));
        Sender sender = sending(connection, scene.queue("all"));
        sender.untilItWaits();
        for (int i = 0; i < COUNT; i++) {
            Message message = next(consumer);
            same(i, message.getIntProperty("number"), "number");
            message.acknowledge();
        }
        sender.untilAllIsSent();
    }

    private static void commit(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(SYNC);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(scene.queue("all"));
        Sender sender = sending(connection, scene.queue("all"));
        sender.untilItWaits();
        for (int i = 0; i < COUNT; i++) {
            same(i, next(consumer).getIntProperty("number"), "number");
            session.commit();
        }
        sender.untilAllIsSent();
    }

    private static void topic(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect(SYNC + "&jms.prefetchPolicy.topicPrefetch=1");
        MessageConsumer slow = autoSession(connection).createConsumer(scene.topic("all"));
        Sender sender = sending(connection, scene.topic("all"));
        sender.untilItWaits();
        expect(slow, 0, COUNT);
        sender.untilAllIsSent();
    }

    private static void fails(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = autoSession(scene.connect(SYNC));
        MessageProducer producer = volatileProducer(session, queue);
        int sent = sendUntilRefused(producer, session);
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, 0, sent);
        nothing(consumer);
        producer.send(numbered(session, sent));
        expect(consumer, sent, sent + 1);
    }

    /** Nobody waits for the answer, so the connection is told. */
    private static void failsAsync(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        BlockingQueue<JMSException> told = new LinkedBlockingQueue<>();
        connection.setExceptionListener(told::add);
        Queue queue = scene.queue("all");
        Sender sender = sending(connection, queue);
        sender.untilAllIsSent();
        JMSException failure = told.poll(Scene.SOON, TimeUnit.MILLISECONDS);
        check(failure instanceof ResourceAllocationException, "told was " + failure);
        MessageConsumer consumer = autoSession(connection).createConsumer(queue);
        expect(consumer, 0, 3);
    }

    private static void failsAfterTimeout(Scene scene) throws Exception {
        Queue queue = scene.queue("all");
        Session session = autoSession(scene.connect(SYNC));
        MessageProducer producer = volatileProducer(session, queue);
        int sent = sendUntilRefused(producer, session);
        long before = System.nanoTime();
        throwing(ResourceAllocationException.class, () -> {
            producer.send(numbered(session, sent));
            return null;
        });
        long millis = (System.nanoTime() - before) / 1_000_000;
        check(millis >= 400, "it waited only " + millis + " ms");
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, 0, sent);
        nothing(consumer);
    }

    private static void off(Scene scene) throws Exception {
        Queue queue = new ActiveMQQueue("FREE." + scene.name);
        ActiveMQConnection connection = scene.connect(SYNC);
        sending(connection, queue).untilAllIsSent();
        expect(autoSession(connection).createConsumer(queue), 0, COUNT);
    }

    /** What is not persistent goes to temporary files rather than making its producer wait. */
    private static void spool(Scene scene) throws Exception {
        Queue queue = new ActiveMQQueue("SPOOLED." + scene.name);
        ActiveMQConnection connection = scene.connect(SYNC);
        int count = 10 * COUNT;
        Sender sender = new Sender(connection, queue, count, DeliveryMode.NON_PERSISTENT);
        sender.start();
        sender.untilAllIsSent();
        MessageConsumer consumer = autoSession(connection).createConsumer(queue);
        expect(consumer, 0, count);
        nothing(consumer);
    }

    /** A persistent send waits for room in the journal, which acknowledgements make. */
    private static void storeFull(Scene scene) throws Exception {
        int count = STORED;
        Sender sender =
                new Sender(scene.connect(), scene.queue("all"), count, DeliveryMode.PERSISTENT);
        sender.start();
        sender.untilItWaits();
        Session session = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(scene.queue("all"));
        for (int i = 0; i < count; i++) {
            same(i, next(consumer).getIntProperty("number"), "number");
            session.commit();
        }
        sender.untilAllIsSent();
    }

    /** Whatever needs no room in the journal goes on. */
    private static void storeFullOthers(Scene scene) throws Exception {
        int count = STORED;
        Sender sender =
                new Sender(scene.connect(), scene.queue("all"), count, DeliveryMode.PERSISTENT);
        sender.start();
        sender.untilItWaits();
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(scene.topic("other"));
        Scene.send(session, scene.topic("other"), "persistent, for nobody who is away");
        only(topic, "persistent, for nobody who is away");
        MessageConsumer queue = session.createConsumer(scene.queue("other"));
        MessageProducer producer = volatileProducer(session, scene.queue("other"));
        producer.send(session.createTextMessage("not persistent"));
        only(queue, "not persistent");
        expect(session.createConsumer(scene.queue("all")), 0, count);
        sender.untilAllIsSent();
    }
}
