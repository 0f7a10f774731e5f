package dev.lockkeeper.interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import javax.jms.Connection;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** What a scenario has at hand: the broker's address, names of its own, checks, connections. */
final class Scene implements AutoCloseable {

    /** How long, in ms, something that must arrive may take. */
    static final long SOON = 10_000;

    /** How long, in ms, something that must not arrive is waited for. */
    static final long NEVER = 300;

    final String name;
    final String url;
    private final List<Connection> connections = new ArrayList<>();

    Scene(String name, String url) {
        this.name = name;
        this.url = url;
    }

    /** Returns a started connection with the client's default settings. */
    ActiveMQConnection connect() throws JMSException {
        return connectTo(url);
    }

    /** Returns a started connection with options such as {@code jms.useCompression=true}. */
    ActiveMQConnection connect(String options) throws JMSException {
        return connectTo(url + "?" + options);
    }

    /** Returns a started connection to any address. */
    ActiveMQConnection connectTo(String address) throws JMSException {
        ActiveMQConnection connection =
                (ActiveMQConnection) new ActiveMQConnectionFactory(address).createConnection();
        connections.add(connection);
        connection.start();
        return connection;
    }

    /** Returns a started connection that has a client id. */
    ActiveMQConnection connectAs(String clientId) throws JMSException {
        ActiveMQConnection connection =
                (ActiveMQConnection) new ActiveMQConnectionFactory(url).createConnection();
        connections.add(connection);
        connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    /** Returns an auto-acknowledging session on a connection of its own. */
    Session session() throws JMSException {
        return connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    /** Returns a queue that only this scenario uses. */
    Queue queue(String part) {
        return new ActiveMQQueue("INTEROP." + name + "." + part);
    }

    /** Returns a topic that only this scenario uses. */
    Topic topic(String part) {
        return new ActiveMQTopic("INTEROP." + name + "." + part);
    }

    /** Returns the next message of a consumer, which must come soon. */
    static <T extends Message> T next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(SOON);
        check(message != null, "a message was expected and none came");
        @SuppressWarnings("unchecked")
        T typed = (T) message;
        return typed;
    }

    /** Returns the texts of the next messages of a consumer. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            TextMessage message = next(consumer);
            texts.add(message.getText());
        }
        return texts;
    }

    /** Checks that a consumer gets nothing more. */
    static void nothing(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(NEVER);
        check(message == null, "nothing was expected, and this came: " + message);
    }

    /** Checks that a consumer gets exactly these texts in this order. */
    static void only(MessageConsumer consumer, String... expected) throws JMSException {
        same(Arrays.asList(expected), texts(consumer, expected.length), "texts");
        nothing(consumer);
    }

    /** Sends texts to a destination. */
    static void send(Session session, javax.jms.Destination destination, String... texts)
            throws JMSException {
        var producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    /**
     * Sends a text to a temporary destination of another connection once this one knows it.
     *
     * <p>The client refuses what no advisory has told it of, which comes in its own time.
     */
    static void sendOnceKnown(Session session, javax.jms.Destination destination, String text)
            throws Exception {
        until(destination + " is known", () -> {
            try {
                send(session, destination, text);
                return true;
            } catch (InvalidDestinationException unknown) {
                return false;
            }
        });
    }

    /** Returns {@code count} texts: prefix0, prefix1 and so on. */
    static String[] numbered(String prefix, int count) {
        String[] texts = new String[count];
        Arrays.setAll(texts, i -> prefix + i);
        return texts;
    }

    static void check(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    static void same(Object expected, Object found, String what) {
        check(
                Objects.deepEquals(expected, found),
                what + ": expected " + shown(expected) + ", found " + shown(found));
    }

    /** Checks that an action throws exactly this class, and returns what was thrown. */
    static <E extends Exception> E throwing(Class<E> expected, Callable<?> action) {
        try {
            action.call();
        } catch (Exception thrown) {
            check(
                    expected.equals(thrown.getClass()),
                    "expected " + expected.getName() + ", thrown was " + thrown);
            return expected.cast(thrown);
        }
        throw new AssertionError("expected " + expected.getName() + ", nothing was thrown");
    }

    /** Waits until a condition holds. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + SOON;
        while (!condition.call()) {
            check(System.currentTimeMillis() < deadline, "waited in vain until " + what);
            Thread.sleep(10);
        }
    }

    private static String shown(Object value) {
        if (value instanceof byte[]) {
            return Arrays.toString((byte[]) value);
        }
        return value + (value == null ? "" : " (" + value.getClass().getSimpleName() + ")");
    }

    @Override
    public void close() throws JMSException {
        for (Connection connection : connections) {
            connection.close();
        }
    }
}
