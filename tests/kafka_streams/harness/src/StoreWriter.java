import java.util.List;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;

/** Writes each record as it is to the stores that no DSL operator makes. */
final class StoreWriter implements Processor<String, String, Void, Void> {
    private final List<String> stores;
    private KeyValueStore<String, String> plain;
    private KeyValueStore<String, String> mem;
    private VersionedKeyValueStore<String, String> versioned;

    StoreWriter(List<String> stores) {
        this.stores = stores;
    }

    @Override public void init(ProcessorContext<Void, Void> context) {
        if (stores.contains("plain")) plain = context.getStateStore("plain");
        if (stores.contains("mem")) mem = context.getStateStore("mem");
        if (stores.contains("versioned")) versioned = context.getStateStore("versioned");
    }

    @Override public void process(Record<String, String> record) {
        if (plain != null) plain.put(record.key(), record.value());
        if (mem != null) mem.put(record.key(), record.value());
        if (versioned != null) versioned.put(record.key(), record.value(), record.timestamp());
    }
}
