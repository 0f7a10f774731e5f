package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.check;
import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.nothing;
import static dev.lockkeeper.interop.Scene.same;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.JMSContext;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageEOFException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.command.ActiveMQMessage;

/** What is in a message arrives as it was sent. */
final class Messages {

    /** The client itself reads supplementary characters and NUL wrongly in maps and properties. */
    private static final String ACCENTS = "\u00fcn\u00efc\u00f6de \u4e2d\u6587 end";

    private static final String TRICKY = "\u00fcn\u00efc\u00f6de \u4e2d\u6587 \ud83d\ude00 \0 end";

    private Messages() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("message-types", scene -> types(scene, scene.connect(), false));
        scenarios.put("message-types-non-persistent", Messages::nonPersistentTypes);
        scenarios.put(
                "message-compression",
                scene -> types(scene, scene.connect("jms.useCompression=true"), false));
        scenarios.put("message-properties", Messages::properties);
        scenarios.put("message-headers", Messages::headers);
        scenarios.put("message-expiry", Messages::expiry);
        scenarios.put("message-large", Messages::large);
        scenarios.put("message-order", Messages::order);
        scenarios.put("message-async-window", Messages::asyncWindow);
        scenarios.put("message-async-callback", Messages::asyncCallback);
        scenarios.put("message-jms2-context", Messages::context);
        scenarios.put("message-wire-versions", Messages::wireVersions);
        scenarios.put("message-broker-times", Messages::brokerTimes);
    }

    private static void nonPersistentTypes(Scene scene) throws Exception {
        types(scene, scene.connect(), true);
    }

    private static void types(Scene scene, ActiveMQConnection connection, boolean volatileMode)
            throws Exception {
        connection.setTrustAllPackages(true);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = scene.queue("all");
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(
                volatileMode ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT);
        for (Message message : List.of(
                session.createTextMessage(TRICKY),
                session.createTextMessage(),
                session.createTextMessage(""),
                session.createTextMessage("long ".repeat(20_000)),
                bytes(session),
                map(session),
                stream(session),
                session.createObjectMessage(new ArrayList<>(List.of("one", 2))),
                session.createMessage())) {
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue);
        same(TRICKY, Scene.<TextMessage>next(consumer).getText(), "text");
        same(null, Scene.<TextMessage>next(consumer).getText(), "null text");
        same("", Scene.<TextMessage>next(consumer).getText(), "empty text");
        same("long ".repeat(20_000), Scene.<TextMessage>next(consumer).getText(), "long text");
        checkBytes(next(consumer));
        checkMap(next(consumer));
        checkStream(next(consumer));
        ObjectMessage object = next(consumer);
        same(List.of("one", 2), object.getObject(), "object");
        Message plain = next(consumer);
        check(!(plain instanceof TextMessage), "a message without a body: " + plain);
        nothing(consumer);
    }

    private static Message bytes(Session session) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[] {0, 1, 2, -1});
        message.writeUTF("x\u00e9");
        message.writeLong(77);
        message.writeDouble(1.25);
        return message;
    }

    private static void checkBytes(BytesMessage message) throws JMSException {
        same(4L + 5 + 8 + 8, message.getBodyLength(), "length of bytes");
        byte[] start = new byte[4];
        message.readBytes(start);
        same(new byte[] {0, 1, 2, -1}, start, "bytes");
        same("x\u00e9", message.readUTF(), "UTF in bytes");
        same(77L, message.readLong(), "long in bytes");
        same(1.25, message.readDouble(), "double in bytes");
    }

    private static Message map(Session session) throws JMSException {
        MapMessage message = session.createMapMessage();
        message.setString("string", ACCENTS);
        message.setBoolean("boolean", true);
        message.setByte("byte", (byte) -3);
        message.setShort("short", (short) -300);
        message.setChar("char", '\u4e2d');
        message.setInt("int", -70_000);
        message.setLong("long", 1L << 40);
        message.setFloat("float", 1.5f);
        message.setDouble("double", 2.5);
        message.setBytes("bytes", new byte[] {9, 8});
        message.setObject("null", null);
        return message;
    }

    private static void checkMap(MapMessage message) throws JMSException {
        same(ACCENTS, message.getObject("string"), "string");
        same(true, message.getObject("boolean"), "boolean");
        same((byte) -3, message.getObject("byte"), "byte");
        same((short) -300, message.getObject("short"), "short");
        same('\u4e2d', message.getObject("char"), "char");
        same(-70_000, message.getObject("int"), "int");
        same(1L << 40, message.getObject("long"), "long");
        same(1.5f, message.getObject("float"), "float");
        same(2.5, message.getObject("double"), "double");
        same(new byte[] {9, 8}, message.getObject("bytes"), "bytes");
        check(message.itemExists("null"), "a null entry is an entry");
        same(null, message.getObject("null"), "null");
    }

    private static Message stream(Session session) throws JMSException {
        StreamMessage message = session.createStreamMessage();
        message.writeString(TRICKY);
        message.writeBoolean(true);
        message.writeByte((byte) 1);
        message.writeShort((short) 2);
        message.writeChar('c');
        message.writeInt(3);
        message.writeLong(4);
        message.writeFloat(5);
        message.writeDouble(6);
        message.writeBytes(new byte[] {7, 7});
        message.writeObject(null);
        return message;
    }

    private static void checkStream(StreamMessage message) throws JMSException {
        List<Object> expected = new ArrayList<>(
                List.of(TRICKY, true, (byte) 1, (short) 2, 'c', 3, 4L, 5f, 6d));
        for (Object each : expected) {
            same(each, message.readObject(), "in the stream");
        }
        same(new byte[] {7, 7}, message.readObject(), "bytes in the stream");
        same(null, message.readObject(), "null in the stream");
        Scene.throwing(MessageEOFException.class, message::readObject);
    }

    private static void properties(Scene scene) throws Exception {
        Session session = scene.session();
        Message message = session.createTextMessage("with properties");
        Map<String, Object> sent = Map.of(
                "string", ACCENTS, "empty", "", "boolean", false, "byte", (byte) -1,
                "short", (short) 2, "int", 3, "long", 4L, "float", 0.5f, "double", 0.25);
        for (Map.Entry<String, Object> entry : sent.entrySet()) {
            message.setObjectProperty(entry.getKey(), entry.getValue());
        }
        session.createProducer(scene.queue("all")).send(message);
        Message found = next(session.createConsumer(scene.queue("all")));
        for (Map.Entry<String, Object> entry : sent.entrySet()) {
            same(entry.getValue(), found.getObjectProperty(entry.getKey()), entry.getKey());
        }
        same(null, found.getObjectProperty("absent"), "an absent property");
    }

    private static void headers(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.queue("all"));
        producer.setTimeToLive(600_000);
        long before = System.currentTimeMillis();
        for (int priority = 0; priority <= 9; priority++) {
            producer.setPriority(priority);
            Message message = session.createTextMessage("p" + priority);
            message.setJMSCorrelationID("correlation-" + priority);
            message.setJMSType("type-" + priority);
            message.setJMSReplyTo(scene.topic("replies"));
            message.setStringProperty("JMSXGroupID", "group");
            message.setIntProperty("JMSXGroupSeq", priority + 1);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(scene.queue("all"));
        for (int priority = 0; priority <= 9; priority++) {
            Message message = next(consumer);
            same(priority, message.getJMSPriority(), "priority");
            same("correlation-" + priority, message.getJMSCorrelationID(), "correlation id");
            same("type-" + priority, message.getJMSType(), "type");
            same(scene.topic("replies"), message.getJMSReplyTo(), "reply to");
            same(scene.queue("all"), message.getJMSDestination(), "destination");
            same("group", message.getStringProperty("JMSXGroupID"), "group");
            same(priority + 1, message.getIntProperty("JMSXGroupSeq"), "group sequence");
            same(1, message.getIntProperty("JMSXDeliveryCount"), "delivery count");
            same(DeliveryMode.PERSISTENT, message.getJMSDeliveryMode(), "delivery mode");
            check(message.getJMSTimestamp() >= before, "the timestamp is that of sending");
            same(
                    message.getJMSTimestamp() + 600_000,
                    message.getJMSExpiration(),
                    "time of expiration");
            check(message.getJMSMessageID().startsWith("ID:"), message.getJMSMessageID());
            check(!message.getJMSRedelivered(), "not redelivered");
        }
    }

    private static void expiry(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.queue("all"));
        producer.setTimeToLive(50);
        Message shortLived = session.createTextMessage("short-lived");
        shortLived.setStringProperty("scenario", scene.name);
        producer.send(shortLived);
        producer.setTimeToLive(0);
        producer.send(session.createTextMessage("long-lived"));
        Thread.sleep(150);
        Scene.only(session.createConsumer(scene.queue("all")), "long-lived");
        MessageConsumer dead = session.createConsumer(
                session.createQueue("ActiveMQ.DLQ"), "scenario = '" + scene.name + "'");
        TextMessage expired = next(dead);
        same("short-lived", expired.getText(), "the expired message");
        same(0L, expired.getJMSExpiration(), "a dead letter does not expire");
        check(expired.propertyExists("originalExpiration"), "the original expiration is kept");
    }

    private static void large(Scene scene) throws Exception {
        byte[] content = new byte[10 * 1024 * 1024];
        new Random(7).nextBytes(content);
        Session session = scene.session();
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(content);
        session.createProducer(scene.queue("all")).send(message);
        BytesMessage found = next(session.createConsumer(scene.queue("all")));
        byte[] received = new byte[(int) found.getBodyLength()];
        found.readBytes(received);
        same(content, received, "10 MiB");
    }

    private static void order(Scene scene) throws Exception {
        int count = 3000;
        Session session = scene.session();
        MessageProducer producer = session.createProducer(scene.queue("all"));
        for (int i = 0; i < count; i++) {
            producer.send(session.createTextMessage("m" + i));
        }
        MessageConsumer consumer = scene.session().createConsumer(scene.queue("all"));
        same(List.of(Scene.numbered("m", count)), Scene.texts(consumer, count), "persistent");
        nothing(consumer);
        MessageProducer forgetful = session.createProducer(scene.queue("forgetful"));
        forgetful.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int i = 0; i < count; i++) {
            forgetful.send(session.createTextMessage("n" + i));
        }
        MessageConsumer other = scene.session().createConsumer(scene.queue("forgetful"));
        same(List.of(Scene.numbered("n", count)), Scene.texts(other, count), "non-persistent");
        nothing(other);
    }

    private static void asyncWindow(Scene scene) throws Exception {
        ActiveMQConnection connection =
                scene.connect("jms.useAsyncSend=true&jms.producerWindowSize=5000");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Scene.send(session, scene.queue("all"), Scene.numbered("w", 200));
        MessageConsumer consumer = session.createConsumer(scene.queue("all"));
        Scene.only(consumer, Scene.numbered("w", 200));
    }

    private static void asyncCallback(Scene scene) throws Exception {
        Session session = scene.session();
        ActiveMQMessageProducer producer =
                (ActiveMQMessageProducer) session.createProducer(scene.queue("all"));
        List<Object> answers = new java.util.concurrent.CopyOnWriteArrayList<>();
        for (String text : Scene.numbered("c", 20)) {
            producer.send(session.createTextMessage(text), new org.apache.activemq.AsyncCallback() {
                @Override
                public void onSuccess() {
                    answers.add(true);
                }

                @Override
                public void onException(JMSException exception) {
                    answers.add(exception);
                }
            });
        }
        Scene.until("every send is answered", () -> answers.size() == 20);
        check(answers.stream().allMatch(Boolean.TRUE::equals), "answers: " + answers);
        Scene.only(session.createConsumer(scene.queue("all")), Scene.numbered("c", 20));
    }

    private static void context(Scene scene) throws Exception {
        try (JMSContext context = new ActiveMQConnectionFactory(scene.url).createContext()) {
            context.createProducer()
                    .setProperty("colour", "red")
                    .setPriority(7)
                    .send(scene.queue("all"), "by context");
            Message found = context.createConsumer(scene.queue("all")).receive(Scene.SOON);
            same("by context", ((TextMessage) found).getText(), "text");
            same("red", found.getStringProperty("colour"), "property");
            same(7, found.getJMSPriority(), "priority");
        }
    }

    private static void wireVersions(Scene scene) throws Exception {
        for (int version : new int[] {1, 9, 10, 11, 12}) {
            Session session = scene.connect("wireFormat.version=" + version)
                    .createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = scene.queue("v" + version);
            TextMessage message = session.createTextMessage("version " + version);
            message.setIntProperty("version", version);
            session.createProducer(queue).send(message);
            TextMessage found = next(session.createConsumer(queue, "version = " + version));
            same("version " + version, found.getText(), "text");
            same(1, found.getIntProperty("JMSXDeliveryCount"), "delivery count");
        }
    }

    private static void brokerTimes(Scene scene) throws Exception {
        for (int version : new int[] {9, 10, 11, 12}) {
            for (boolean tight : new boolean[] {false, true}) {
                String options = "wireFormat.version=" + version
                        + "&wireFormat.tightEncodingEnabled=" + tight
                        + "&wireFormat.cacheEnabled=" + tight;
                Session session = scene.connect(options)
                        .createSession(false, Session.AUTO_ACKNOWLEDGE);
                Queue queue = scene.queue("v" + version + tight);
                session.createProducer(queue).send(session.createTextMessage("kept"));
                Thread.sleep(100);
                long before = System.currentTimeMillis();
                ActiveMQMessage found = next(session.createConsumer(queue));
                long after = System.currentTimeMillis();
                String times = options + ": in " + found.getBrokerInTime() + ", out "
                        + found.getBrokerOutTime() + ", received " + before + " to " + after;
                check(found.getBrokerInTime() <= before - 50, times);
                check(found.getBrokerOutTime() >= before - 50, times);
                check(found.getBrokerOutTime() <= after, times);
            }
        }
    }
}
