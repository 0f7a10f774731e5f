package dev.lockkeeper.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** The threads of one run; each goes on until the load is stopped. */
abstract class Workers implements AutoCloseable {

    private static final long LEFT_OVER_SECONDS_MAX = 60;
    private static final int STOP_PERMITS = 100_000;
    private static final long QUIET_MILLIS = 300;

    private final Meter meter;
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean stopping;
    private volatile Throwable failure;

    Workers(Meter meter) {
        this.meter = meter;
    }

    boolean stopping() {
        return stopping;
    }

    /** Runs something in a thread until the load is stopped. */
    void run(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Throwable thrown) {
                fail(thrown);
            }
        });
        thread.start();
        threads.add(thread);
    }

    /** Ends the threads, and throws what went wrong in one of them. */
    void stop(Semaphore permits) throws InterruptedException {
        stopping = true;
        permits.release(STOP_PERMITS);
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(LEFT_OVER_SECONDS_MAX));
        }
        if (failure != null) {
            throw new IllegalStateException("a client failed", failure);
        }
    }

    /** Waits until the consumers have got what was under way. */
    void settle() throws InterruptedException {
        for (long before = -1; before != meter.total(); ) {
            before = meter.total();
            Thread.sleep(QUIET_MILLIS);
        }
    }

    /** Lets the load end with what went wrong, unless it ends anyway. */
    void fail(Throwable thrown) {
        if (!stopping) {
            failure = thrown;
            thrown.printStackTrace();
        }
    }

    @Override
    public abstract void close() throws Exception;

    /** What a thread does. */
    @FunctionalInterface
    interface Task {
        void run() throws Exception;
    }
}
