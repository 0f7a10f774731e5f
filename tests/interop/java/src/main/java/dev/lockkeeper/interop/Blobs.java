package dev.lockkeeper.interop;

import static dev.lockkeeper.interop.Scene.next;
import static dev.lockkeeper.interop.Scene.same;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.URL;
import java.util.Map;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.command.ActiveMQBlobMessage;

/**
 * Blob messages of two clients, of which this is one, over a file server: the addresses of broker
 * and server are separated by #.
 */
final class Blobs {

    private Blobs() {}

    static void register(Map<String, Scenario> scenarios) {
        scenarios.put("blobs-answered", Blobs::answered);
    }

    /** Reads what the other one has sent, and answers with an uploaded blob and a plain URL. */
    private static void answered(Scene scene) throws Exception {
        String[] addresses = scene.url.split("#");
        ActiveMQConnection connection =
                scene.connectTo(
                        addresses[0] + "?jms.blobTransferPolicy.uploadUrl=" + addresses[1]);
        ActiveMQSession session =
                (ActiveMQSession) connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        ActiveMQBlobMessage asked = next(session.createConsumer(scene.queue("asked")));
        same("video/mp4", asked.getMimeType(), "the MIME type");
        same(true, asked.isDeletedByBroker(), "deleted by the broker");
        try (InputStream stream = asked.getInputStream()) {
            same("from Python", new String(stream.readAllBytes(), UTF_8), "the blob");
        }
        MessageProducer producer = session.createProducer(scene.queue("answered"));
        var own = new ByteArrayInputStream("from Java".getBytes(UTF_8));
        producer.send(session.createBlobMessage(own));
        producer.send(session.createBlobMessage(new URL("https://example.org/a%20film.mp4")));
    }
}
