package dev.lockkeeper.interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A loopback proxy in front of a broker whose connections can be cut. */
final class CutProxy implements AutoCloseable {

    private final URI broker;
    private final ServerSocket server;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();

    CutProxy(String brokerUrl) throws IOException {
        broker = URI.create(brokerUrl);
        server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(this::accept);
    }

    /** Returns the address to give to the client's failover transport. */
    String url() {
        return "failover:(tcp://127.0.0.1:" + server.getLocalPort() + ")"
                + "?initialReconnectDelay=50&useExponentialBackOff=false";
    }

    /** Cuts every connection there is; new ones are accepted. */
    void cut() {
        List<Socket> current = List.copyOf(sockets);
        sockets.removeAll(current);
        current.forEach(CutProxy::closeQuietly);
    }

    @Override
    public void close() {
        closeQuietly(server);
        cut();
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket client = server.accept();
                Socket behind = new Socket(broker.getHost(), broker.getPort());
                sockets.addAll(List.of(client, behind));
                start(() -> copy(client, behind));
                start(() -> copy(behind, client));
            } catch (IOException exception) {
                // A closed server ends the loop; anything else shows as a failed connection.
            }
        }
    }

    private static void copy(Socket from, Socket to) {
        try (InputStream input = from.getInputStream();
                OutputStream output = to.getOutputStream()) {
            input.transferTo(output);
        } catch (IOException exception) {
            // Cut: both ends are closed below.
        }
        closeQuietly(from);
        closeQuietly(to);
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception exception) {
            // It is gone, which is all that is wanted.
        }
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task, "cut-proxy");
        thread.setDaemon(true);
        thread.start();
    }
}
