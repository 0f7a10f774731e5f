package dev.lockkeeper.rocketmq;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Runs scenarios against a name server: {@code Main ADDRESS} runs those that lines of its standard
 * input name, several at a time; {@code Main list} prints their names.
 *
 * <p>Each scenario prints one line of JSON: what it saw, line by line, and what it failed with.
 */
public final class Main {
    private static final int AT_ONCE = 6;

    private Main() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Map<String, Scenario> scenarios = scenarios();
        if (arguments[0].equals("list")) {
            scenarios.keySet().forEach(System.out::println);
            return;
        }
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String name = line;
            pool.execute(() -> run(name, scenarios.get(name), arguments[0]));
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        // Clients leave threads behind.
        System.exit(0);
    }

    private static Map<String, Scenario> scenarios() {
        Map<String, Scenario> scenarios = new TreeMap<>();
        Sending.register(scenarios);
        Later.register(scenarios);
        Consuming.register(scenarios);
        Retrying.register(scenarios);
        Sharing.register(scenarios);
        Pulling.register(scenarios);
        Transactions.register(scenarios);
        Requests.register(scenarios);
        Administering.register(scenarios);
        Refusals.register(scenarios);
        return scenarios;
    }

    private static void run(String name, Scenario scenario, String address) {
        long start = System.nanoTime();
        String error = null;
        Scene scene = new Scene(name, address);
        try (scene) {
            scenario.run(scene);
        } catch (Throwable thrown) {
            StringWriter trace = new StringWriter();
            thrown.printStackTrace(new PrintWriter(trace));
            error = trace.toString();
        }
        long millis = (System.nanoTime() - start) / 1_000_000;
        String facts = scene.facts().stream().map(Main::quoted).collect(Collectors.joining(", "));
        synchronized (System.out) {
            System.out.printf(
                    "{\"scenario\": %s, \"facts\": [%s], \"error\": %s, \"millis\": %d}%n",
                    quoted(name), facts, quoted(error), millis);
        }
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder json = new StringBuilder("\"");
        for (char character : text.toCharArray()) {
            if (character < ' ' || character == '"' || character == '\\' || character > '~') {
                json.append(String.format("\\u%04x", (int) character));
            } else {
                json.append(character);
            }
        }
        return json.append('"').toString();
    }
}
