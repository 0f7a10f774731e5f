package dev.lockkeeper.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.TreeMap;

/**
 * Runs scenarios against a broker: {@code Main SCENARIO BROKER_URL} runs one and exits with 0 when
 * the broker behaved, with 1 when it did not; {@code Main serve} runs those that lines of its
 * standard input ask for, as {@code SCENARIO BROKER_URL}; {@code Main list} prints their names.
 *
 * <p>Each scenario prints one line of JSON.
 */
public final class Main {

    private Main() {}

    public static void main(String[] arguments) throws IOException {
        Map<String, Scenario> scenarios = scenarios();
        if (arguments.length == 1 && arguments[0].equals("list")) {
            scenarios.keySet().forEach(System.out::println);
            return;
        }
        if (arguments.length == 1 && arguments[0].equals("serve")) {
            serve(scenarios);
            return;
        }
        if (arguments.length != 2 || !scenarios.containsKey(arguments[0])) {
            System.err.println("usage: Main SCENARIO BROKER_URL | serve | list");
            System.exit(2);
        }
        System.exit(run(arguments[0], scenarios.get(arguments[0]), arguments[1]) ? 0 : 1);
    }

    private static void serve(Map<String, Scenario> scenarios) throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            run(asked[0], scenarios.get(asked[0]), asked[1]);
        }
    }

    private static Map<String, Scenario> scenarios() {
        Map<String, Scenario> scenarios = new TreeMap<>();
        Messages.register(scenarios);
        Blobs.register(scenarios);
        Acknowledgement.register(scenarios);
        Transactions.register(scenarios);
        Durables.register(scenarios);
        Destinations.register(scenarios);
        Names.register(scenarios);
        VirtualDestinations.register(scenarios);
        Consumers.register(scenarios);
        Connections.register(scenarios);
        Failover.register(scenarios);
        Flow.register(scenarios);
        Persistence.register(scenarios);
        Redelivering.register(scenarios);
        Subscriptions.register(scenarios);
        Advisories.register(scenarios);
        Statistics.register(scenarios);
        Scheduling.register(scenarios);
        Security.register(scenarios);
        Dispatching.register(scenarios);
        Networks.register(scenarios);
        return scenarios;
    }

    private static boolean run(String name, Scenario scenario, String url) {
        long start = System.nanoTime();
        String error = null;
        try (Scene scene = new Scene(name, url)) {
            scenario.run(scene);
        } catch (Throwable thrown) {
            StringWriter trace = new StringWriter();
            thrown.printStackTrace(new PrintWriter(trace));
            error = trace.toString();
        }
        long millis = (System.nanoTime() - start) / 1_000_000;
        System.out.printf(
                "{\"scenario\": %s, \"ok\": %s, \"millis\": %d, \"error\": %s}%n",
                quoted(name), error == null, millis, quoted(error));
        return error == null;
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
