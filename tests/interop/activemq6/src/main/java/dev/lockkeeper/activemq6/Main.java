package dev.lockkeeper.activemq6;

import java.io.File;
import org.apache.activemq.broker.BrokerFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

/** A broker on loopback with its journal in a directory, until it is told to stop. */
public final class Main {
    private static final long STORE_BYTES_MAX = 4L << 30;

    private Main() {}

    /**
     * Runs the broker; the arguments are its port, the directory, and more addresses. Or one is the
     * URI of its configuration: {@code xbean:file:…}.
     */
    public static void main(String[] arguments) throws Exception {
        boolean isConfigured = arguments[0].startsWith("xbean:");
        BrokerService broker =
                isConfigured ? BrokerFactory.createBroker(arguments[0]) : made(arguments);
        broker.start();
        broker.waitUntilStopped();
    }

    private static BrokerService made(String[] arguments) throws Exception {
        File directory = new File(arguments[1]);
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(directory);
        BrokerService broker = new BrokerService();
        broker.setBrokerName("localhost");
        broker.setUseJmx(false);
        broker.setSchedulerSupport(Boolean.getBoolean("schedulerSupport"));
        broker.setDataDirectoryFile(directory.getParentFile());
        broker.setPersistenceAdapter(store);
        // It complains where the disk has less room than that, as it mostly has by default.
        broker.getSystemUsage().getStoreUsage().setLimit(STORE_BYTES_MAX);
        broker.getSystemUsage().getTempUsage().setLimit(STORE_BYTES_MAX);
        broker.addConnector("tcp://127.0.0.1:" + arguments[0]);
        for (int i = 2; i < arguments.length; i++) {
            broker.addConnector(arguments[i]);
        }
        return broker;
    }
}
