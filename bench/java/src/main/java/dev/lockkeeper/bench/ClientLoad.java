package dev.lockkeeper.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * A process that sends or receives as fast as the Java client can: the same as client_loads.py.
 *
 * <p>{@code ClientLoad URL NAME sends|receives WARM_UP COUNT} prints one line of JSON: seconds, CPU
 * seconds and the most memory in MB for COUNT messages of 1 KiB, after WARM_UP that do not count.
 */
public final class ClientLoad {

    private static final byte[] BODY = new byte[1024];
    private static final long RECEIVE_MILLIS_MAX = 120_000;

    private static long began;
    private static long cpuBefore;

    private ClientLoad() {}

    public static void main(String[] arguments) throws Exception {
        boolean sends = arguments[2].equals("sends");
        int warmUp = Integer.parseInt(arguments[3]);
        int count = Integer.parseInt(arguments[4]);
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination target =
                sends ? session.createTopic(arguments[1]) : session.createQueue(arguments[1]);
        MessageProducer producer = session.createProducer(target);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        int toSend = sends ? warmUp + count : warmUp + count - 1;
        for (int number = 0; number < toSend; number++) {
            if (sends && number == warmUp) {
                settle(session, producer);
                start();
            }
            producer.send(message(session));
        }
        settle(session, producer);
        if (!sends) {
            receive(session.createConsumer(target), warmUp, count);
        }
        long ended = System.nanoTime();
        long cpu = system().getProcessCpuTime() - cpuBefore;
        System.out.printf(
                Locale.ROOT,
                "{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_mb\": %.1f}%n",
                (ended - began) / 1e9,
                cpu / 1e9,
                peakMegabytes());
        connection.close();
    }

    /** Returns when the broker has taken all that was sent. */
    private static void settle(Session session, MessageProducer producer) throws Exception {
        producer.send(
                message(session),
                DeliveryMode.PERSISTENT,
                javax.jms.Message.DEFAULT_PRIORITY,
                javax.jms.Message.DEFAULT_TIME_TO_LIVE);
    }

    private static BytesMessage message(Session session) throws Exception {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(BODY);
        return message;
    }

    private static void receive(MessageConsumer consumer, int warmUp, int count)
            throws Exception {
        for (int number = 0; number < warmUp + count; number++) {
            if (number == warmUp) {
                start();
            }
            if (consumer.receive(RECEIVE_MILLIS_MAX) == null) {
                throw new IllegalStateException("message " + number + " does not come");
            }
        }
    }

    private static void start() {
        began = System.nanoTime();
        cpuBefore = system().getProcessCpuTime();
    }

    private static OperatingSystemMXBean system() {
        return (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    }

    private static double peakMegabytes() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024 / 1e6;
            }
        }
        throw new IllegalStateException("/proc/self/status has no VmHWM");
    }
}
