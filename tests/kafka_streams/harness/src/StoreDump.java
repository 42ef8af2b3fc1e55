import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** What queries see: STORE, key, value, separated by tabs, sorted. Join stores cannot be queried. */
final class StoreDump {
    private final KafkaStreams streams;
    private final int keys;
    private final TreeSet<String> lines = new TreeSet<>();

    StoreDump(KafkaStreams streams, int keys) {
        this.streams = streams;
        this.keys = keys;
    }

    int write(Set<String> stores, Path file) throws IOException, InterruptedException {
        for (String name : stores) {
            switch (name) {
                case "plain", "mem" -> addPlain(name);
                case "table", "count", "global" -> addTimestamped(name);
                case "window" -> addWindows(name);
                case "session" -> addSessions(name);
                case "versioned" -> addVersions(name);
                default -> { }
            }
        }
        Files.write(file, lines);
        return lines.size();
    }

    private void addPlain(String name) throws InterruptedException {
        ReadOnlyKeyValueStore<String, String> store = open(name, QueryableStoreTypes.keyValueStore());
        try (var all = store.all()) {
            all.forEachRemaining(entry -> add(name, entry.key, entry.value));
        }
    }

    private void addTimestamped(String name) throws InterruptedException {
        ReadOnlyKeyValueStore<String, ValueAndTimestamp<Object>> store =
            open(name, QueryableStoreTypes.timestampedKeyValueStore());
        try (var all = store.all()) {
            all.forEachRemaining(entry -> add(name, entry.key, timestamped(entry.value)));
        }
    }

    private void addWindows(String name) throws InterruptedException {
        ReadOnlyWindowStore<String, ValueAndTimestamp<Long>> store =
            open(name, QueryableStoreTypes.timestampedWindowStore());
        try (var all = store.all()) {
            all.forEachRemaining(entry ->
                add(name, entry.key.key() + "@" + entry.key.window().start(), timestamped(entry.value)));
        }
    }

    private void addSessions(String name) throws InterruptedException {
        ReadOnlySessionStore<String, Long> store = open(name, QueryableStoreTypes.sessionStore());
        for (int i = 0; i < keys; i++) {
            try (var sessions = store.fetch(Arguments.key(i))) {
                sessions.forEachRemaining(entry -> add(name, session(entry.key), entry.value));
            }
        }
    }

    private void addVersions(String name) {
        for (int i = 0; i < keys; i++) {
            String key = Arguments.key(i);
            var query = MultiVersionedKeyQuery.<String, String>withKey(key).withAscendingTimestamps();
            var result = streams.query(StateQueryRequest.inStore(name).withQuery(query));
            for (var partition : result.getPartitionResults().values()) {
                if (partition.isFailure()) throw new IllegalStateException(partition.getFailureMessage());
                try (var versions = partition.getResult()) {
                    versions.forEachRemaining(version -> {
                        String until = version.validTo().map(to -> ".." + to).orElse("");
                        add(name, key + "@" + version.timestamp() + until, version.value());
                    });
                }
            }
        }
    }

    private void add(String store, String key, Object value) {
        lines.add(store + "\t" + key + "\t" + value);
    }

    private static String timestamped(ValueAndTimestamp<?> value) {
        return value.timestamp() + "\t" + value.value();
    }

    private static String session(Windowed<String> key) {
        return key.key() + "@" + key.window().start() + ".." + key.window().end();
    }

    private <T> T open(String name, QueryableStoreType<T> type) throws InterruptedException {
        for (int attempt = 0; ; attempt++) {
            try {
                return streams.store(StoreQueryParameters.fromNameAndType(name, type));
            } catch (InvalidStateStoreException e) {
                if (attempt > 100) throw e;
                Thread.sleep(100);
            }
        }
    }
}
