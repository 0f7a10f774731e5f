package dev.lockkeeper.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
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
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.command.ActiveMQDestination;

/**
 * Does what a line says, so that somebody between it and the broker may see which acknowledgements
 * follow: `URL-OF-THE-BROKER URL-TO-CONSUME-BY MODE DESTINATION,DESTINATION STEP STEP…`. Prints
 * `done`, or what went wrong.
 */
public final class AckTraffic {
    private static final long SECONDS_MAX = 60;

    private final List<MessageConsumer> consumers = new ArrayList<>();
    private final List<Message> received = new ArrayList<>();
    private final List<ActiveMQDestination> destinations = new ArrayList<>();
    private final String brokerUrl;
    private Session session;

    private AckTraffic(String brokerUrl) {
        this.brokerUrl = brokerUrl;
    }

    /** Does one line after the other. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" +");
            String report = "done";
            try {
                new AckTraffic(words[0]).run(words);
            } catch (Exception | AssertionError error) {
                report = line + ": " + error;
            }
            System.out.println(report);
        }
    }

    private void run(String[] words) throws Exception {
        Connection connection = new ActiveMQConnectionFactory(words[1]).createConnection();
        try {
            if (words[3].contains("durable:")) {
                connection.setClientID(words[3].replaceAll("[^A-Za-z0-9]", ""));
            }
            connection.start();
            boolean isTransacted = words[2].equals("TRANSACTED");
            session = connection.createSession(isTransacted, mode(words[2]));
            for (String name : words[3].split(",")) {
                consumers.add(consumer(name));
            }
            for (int i = 4; i < words.length; i++) {
                step(words[i]);
            }
        } finally {
            connection.close();
        }
    }

    private static int mode(String name) {
        switch (name) {
            case "AUTO":
                return Session.AUTO_ACKNOWLEDGE;
            case "CLIENT":
                return Session.CLIENT_ACKNOWLEDGE;
            case "DUPS_OK":
                return Session.DUPS_OK_ACKNOWLEDGE;
            case "INDIVIDUAL":
                return ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE;
            default:
                return Session.SESSION_TRANSACTED;
        }
    }

    private MessageConsumer consumer(String name) throws JMSException {
        boolean isDurable = name.startsWith("durable:");
        String plain = isDurable ? "topic://" + name.substring("durable:".length()) : name;
        ActiveMQDestination destination =
                ActiveMQDestination.createDestination(plain, ActiveMQDestination.QUEUE_TYPE);
        destinations.add(destination);
        return isDurable
                ? session.createDurableSubscriber((Topic) destination, "subscription")
                : session.createConsumer(destination);
    }

    private void step(String word) throws Exception {
        String[] parts = word.split(":");
        int number = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
        int which = parts.length > 2 ? Integer.parseInt(parts[2]) : 0;
        boolean isClosing = parts[0].equals("close");
        MessageConsumer consumer =
                consumers.get(isClosing ? number : parts[0].equals("listen") ? 0 : which);
        switch (parts[0]) {
            case "send":
                send(destinations.get(which), number, 0);
                break;
            case "send-short":
                send(destinations.get(which), number, 200);
                break;
            case "receive":
                for (int i = 0; i < number; i++) {
                    received.add(present(consumer.receive(SECONDS_MAX * 1000)));
                }
                break;
            case "poll":
                absent(consumer.receiveNoWait());
                break;
            case "wait":
                absent(consumer.receive(number));
                break;
            case "listen":
                listen(consumer, number, which);
                break;
            case "acknowledge":
                received.get(number).acknowledge();
                break;
            case "commit":
                session.commit();
                break;
            case "rollback":
                session.rollback();
                break;
            case "recover":
                session.recover();
                break;
            case "sleep":
                Thread.sleep(number);
                break;
            case "close":
                consumer.close();
                break;
            default:
                throw new IllegalArgumentException(word);
        }
    }

    private void send(Destination destination, int count, long timeToLive) throws JMSException {
        Connection connection = new ActiveMQConnectionFactory(brokerUrl).createConnection();
        try {
            Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = sending.createProducer(destination);
            producer.setDeliveryMode(DeliveryMode.PERSISTENT);
            producer.setTimeToLive(timeToLive);
            for (int i = 0; i < count; i++) {
                producer.send(sending.createTextMessage(Integer.toString(i)));
            }
        } finally {
            connection.close();
        }
    }

    /** Listens until so many calls are over, of which the first ones fail. */
    private void listen(MessageConsumer consumer, int calls, int failures) throws Exception {
        Semaphore begun = new Semaphore(0);
        int[] left = {failures};
        consumer.setMessageListener(
                message -> {
                    begun.release();
                    if (left[0]-- > 0) {
                        throw new IllegalStateException("on purpose");
                    }
                });
        if (!begun.tryAcquire(calls, SECONDS_MAX, TimeUnit.SECONDS)) {
            throw new AssertionError("too few messages for the listener");
        }
        // What follows from the last call is sent after it.
        Thread.sleep(100);
    }

    private static Message present(Message message) {
        if (message == null) {
            throw new AssertionError("no message");
        }
        return message;
    }

    private static void absent(Message message) throws JMSException {
        if (message != null) {
            throw new AssertionError("a message: " + message.getJMSMessageID());
        }
    }
}
