package dev.lockkeeper.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** The producers and consumers of one run, each on a connection of its own. */
final class Clients extends Workers {

    private static final int BODY_BYTES = 1024;

    final String name;
    private final ActiveMQConnectionFactory factory;
    private final Meter meter;
    private final List<Connection> connections = new ArrayList<>();

    Clients(String url, String name, Meter meter) {
        super(meter);
        this.factory = new ActiveMQConnectionFactory(url);
        this.name = name;
        this.meter = meter;
    }

    Destination queue() {
        return new ActiveMQQueue(name);
    }

    Topic topic() {
        return new ActiveMQTopic(name);
    }

    Session session(boolean transacted) throws JMSException {
        return session(transacted, null);
    }

    /** Returns a session on a connection of its own, with a client id unless that is null. */
    Session session(boolean transacted, String clientId) throws JMSException {
        Connection connection = factory.createConnection();
        connections.add(connection);
        if (clientId != null) {
            connection.setClientID(clientId);
        }
        connection.start();
        int mode = transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE;
        return connection.createSession(transacted, mode);
    }

    /** Returns a producer of persistent or other messages. */
    static MessageProducer producer(Session session, Destination destination, boolean persistent)
            throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(
                persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        return producer;
    }

    /** Returns a message of 1 KiB that starts with the time of its sending. */
    static Message message(Session session) throws JMSException {
        return message(session, BODY_BYTES);
    }

    /** Returns a message of so many bytes that starts with the time of its sending. */
    static Message message(Session session, int bytes) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeLong(System.nanoTime());
        message.writeBytes(new byte[bytes - Long.BYTES]);
        return message;
    }

    /** Returns how long ago a message was sent, in ns. */
    static long age(Message message) throws JMSException {
        return System.nanoTime() - ((BytesMessage) message).readLong();
    }

    /** Consumes with a listener: counts, records the latency, gives a permit back. */
    void listen(Destination destination, Semaphore permits) throws JMSException {
        listen(session(false).createConsumer(destination), permits);
    }

    /** Lets a consumer count, record the latency, and give a permit back. */
    void listen(MessageConsumer consumer, Semaphore permits) throws JMSException {
        Meter.Recorder recorder = meter.recorder();
        consumer.setMessageListener(message -> {
            try {
                recorder.record(age(message));
            } catch (JMSException exception) {
                fail(exception);
            }
            meter.count();
            permits.release();
        });
    }

    /** Consumes what is left in the queue, so that the next run finds the broker empty. */
    void empty() throws JMSException {
        MessageConsumer consumer = session(false).createConsumer(queue());
        while (consumer.receive(500) != null) {
            // Only its removal is wanted.
        }
    }

    @Override
    public void close() throws JMSException {
        for (Connection connection : connections) {
            connection.close();
        }
    }
}
