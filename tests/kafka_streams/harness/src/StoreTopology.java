import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** One store of each kind, all fed from one topic. */
final class StoreTopology {
    static final Set<String> ALL = new LinkedHashSet<>(
        List.of("plain", "table", "versioned", "mem", "window", "session", "count", "join", "global"));

    private static final Serde<String> STRING = Serdes.String();

    private final StreamsBuilder builder = new StreamsBuilder();
    private final String topic;
    private final Set<String> stores;

    StoreTopology(String topic, Set<String> stores) {
        this.topic = topic;
        this.stores = stores;
    }

    Topology build(Properties configuration) {
        KStream<String, String> input = builder.stream(topic, Consumed.with(STRING, STRING));
        KStream<String, String> present = input.filter((key, value) -> value != null);
        addProcessorStores(input);
        if (stores.contains("table"))
            input.toTable(Named.as("to-table"),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("table")
                    .withKeySerde(STRING).withValueSerde(STRING));
        addWindows(present.groupByKey(Grouped.with(STRING, STRING)));
        if (stores.contains("count"))   // through a repartition topic: a second sub-topology
            present.groupBy((key, value) -> "g" + key.substring(key.length() - 2),
                    Grouped.with("by-suffix", STRING, STRING))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("count"));
        if (stores.contains("join")) addJoin(present);
        if (stores.contains("global"))
            builder.globalTable(topic + "-global", Consumed.with(STRING, STRING), Materialized.as("global"));
        return builder.build(configuration);
    }

    private void addProcessorStores(KStream<String, String> input) {
        List<String> own = new ArrayList<>();
        if (stores.contains("plain")) {
            builder.addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore("plain"), STRING, STRING));
            own.add("plain");
        }
        if (stores.contains("mem")) {
            builder.addStateStore(Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore("mem"), STRING, STRING));
            own.add("mem");
        }
        if (stores.contains("versioned")) {
            builder.addStateStore(Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore("versioned", Duration.ofDays(1)), STRING, STRING));
            own.add("versioned");
        }
        if (!own.isEmpty())
            input.process(() -> new StoreWriter(own), Named.as("writer"), own.toArray(new String[0]));
    }

    private void addWindows(KGroupedStream<String, String> grouped) {
        Duration grace = Duration.ofDays(1);
        Duration retention = Duration.ofDays(2);
        if (stores.contains("window"))
            grouped.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), grace))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("window")
                    .withRetention(retention));
        if (stores.contains("session"))
            grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(500), grace))
                .count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("session")
                    .withRetention(retention));
    }

    private void addJoin(KStream<String, String> present) {
        KStream<String, String> left = present.filter((key, value) -> value.charAt(0) < 'M');
        KStream<String, String> right = present.filter((key, value) -> value.charAt(0) >= 'M');
        Duration second = Duration.ofSeconds(1);
        left.leftJoin(right, (a, b) -> a.charAt(0) + "|" + (b == null ? "" : b.charAt(0)),
                JoinWindows.ofTimeDifferenceAndGrace(second, second),
                StreamJoined.with(STRING, STRING, STRING).withName("join").withStoreName("join"))
            .foreach((key, value) -> { });
    }
}
