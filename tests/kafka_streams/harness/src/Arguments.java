import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;

/** The command line: a mode, then key=value. */
record Arguments(String mode, Map<String, String> values) {
    static Arguments parse(String[] args) {
        Map<String, String> values = new LinkedHashMap<>();
        for (int i = 1; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            values.put(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        return new Arguments(args.length == 0 ? "" : args[0], values);
    }

    String required(String name) {
        String value = values.get(name);
        if (value == null) throw new IllegalArgumentException("missing " + name + "=");
        return value;
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    long number(String name, long otherwise) {
        return values.containsKey(name) ? Long.parseLong(values.get(name)) : otherwise;
    }

    Optional<Path> path(String name) {
        return Optional.ofNullable(values.get(name)).map(Path::of);
    }

    Set<String> set(String name, Set<String> otherwise) {
        String value = values.get(name);
        return value == null ? otherwise : new LinkedHashSet<>(Arrays.asList(value.split(",")));
    }

    /** Everything with a dot in its name is configuration of Kafka Streams. */
    void addConfiguration(Properties target) {
        values.forEach((name, value) -> { if (name.contains(".")) target.put(name, value); });
    }

    Properties client() {
        Properties client = new Properties();
        client.put("bootstrap.servers", required("bootstrap"));
        return client;
    }

    static String key(int i) {
        return String.format("key-%08d", i);
    }
}
