package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.same;
import static dev.lockkeeper.interop.Scene.throwing;

import java.util.Map;
import java.util.concurrent.Callable;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.JMSSecurityException;
import javax.jms.Message;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQSslConnectionFactory;

/**
 * Users with passwords over TLS; anna may do everything, bob little.
 *
 * <p>The broker's address is followed by # and the file of the trust store.
 */
final class Security {

    private static final String STORE_PASSWORD = "changeit";

    private Security() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("security-user", Security::user);
        scenarios.put("security-refused", Security::refused);
        scenarios.put("security-permissions", Security::permissions);
        scenarios.put("security-temporary", Security::temporary);
        scenarios.put("security-failover", Security::failover);
    }

    private static Connection connect(Scene scene, String user, String password) throws Exception {
        return connect(scene, "%s", user, password);
    }

    private static Connection connect(Scene scene, String form, String user, String password)
            throws Exception {
        String[] parts = scene.url.split("#");
        ActiveMQSslConnectionFactory factory =
                new ActiveMQSslConnectionFactory(String.format(form, parts[0]));
        factory.setTrustStore(parts[1]);
        factory.setTrustStorePassword(STORE_PASSWORD);
        Connection connection = factory.createConnection(user, password);
        try {
            connection.start();
        } catch (JMSException refused) {
            connection.close();
            throw refused;
        }
        return connection;
    }

    private static Session anna(Scene scene) throws Exception {
        return session(connect(scene, "anna", "tea"));
    }

    private static Session session(Connection connection) throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static void user(Scene scene) throws Exception {
        Queue queue = scene.queue("any");
        try (Connection connection = connect(scene, "anna", "tea")) {
            Session session = session(connection);
            Scene.send(session, queue, "tea");
            TextMessage message = next(session.createConsumer(queue));
            same("tea", message.getText(), "text");
            same("anna", message.getStringProperty("JMSXUserID"), "JMSXUserID");
        }
    }

    private static void refused(Scene scene) {
        String[][] others = {{"anna", "coffee"}, {"nobody", "tea"}, {null, null}};
        for (String[] other : others) {
            denied(
                    "User name [" + other[0] + "] or password is invalid.",
                    () -> connect(scene, other[0], other[1]));
        }
    }

    private static void permissions(Scene scene) throws Exception {
        Queue letters = scene.queue("letters");
        Queue secrets = scene.queue("secrets");
        Topic news = scene.topic("news");
        Session staff = anna(scene);
        Scene.send(staff, secrets, "for anna");
        try (Connection connection = connect(scene, "bob", "coffee")) {
            Session bob = session(connection);
            Scene.send(bob, letters, "dear anna");
            denied("User bob is not authorized to read from: " + letters,
                    () -> bob.createConsumer(letters));
            denied("User bob is not authorized to read from: " + secrets,
                    () -> bob.createBrowser(secrets).getEnumeration().hasMoreElements());
            denied("User bob is not authorized to write to: " + secrets,
                    () -> bob.createProducer(secrets));
            var anonymous = bob.createProducer(null);
            Message psst = bob.createTextMessage("psst");
            denied("User bob is not authorized to write to: " + secrets, () -> {
                anonymous.send(secrets, psst);
                return null;
            });
            denied("User bob is not authorized to create: " + news, () -> bob.createConsumer(news));
            Scene.send(staff, news, "it exists now");
            var reader = bob.createConsumer(news);
            Scene.send(staff, news, "rain");
            same("rain", ((TextMessage) next(reader)).getText(), "news");
        }
        TextMessage letter = next(staff.createConsumer(letters));
        same("dear anna", letter.getText(), "letter");
    }

    private static void temporary(Scene scene) throws Exception {
        Queue letters = scene.queue("letters");
        Session staff = anna(scene);
        try (Connection connection = connect(scene, "bob", "coffee")) {
            Session bob = session(connection);
            var answers = bob.createTemporaryQueue();
            var reader = bob.createConsumer(answers);
            Message question = bob.createTextMessage("how are you?");
            question.setJMSReplyTo(answers);
            bob.createProducer(letters).send(question);
            Message asked = next(staff.createConsumer(letters));
            Scene.sendOnceKnown(staff, asked.getJMSReplyTo(), "fine");
            same("fine", ((TextMessage) next(reader)).getText(), "answer");
        }
    }

    private static void failover(Scene scene) throws Exception {
        Queue queue = scene.queue("any");
        try (Connection connection = connect(scene, "failover:(%s)", "anna", "tea")) {
            Session session = session(connection);
            Scene.send(session, queue, "tea");
            same("tea", ((TextMessage) next(session.createConsumer(queue))).getText(), "text");
        }
        denied(
                "User name [anna] or password is invalid.",
                () -> connect(scene, "failover:(%s)?maxReconnectAttempts=1", "anna", "coffee"));
    }

    private static void denied(String expected, Callable<?> action) {
        JMSSecurityException thrown = throwing(JMSSecurityException.class, action);
        same(expected, thrown.getMessage(), "message");
    }
}
