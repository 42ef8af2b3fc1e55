import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BuiltinComparator;
import org.rocksdb.Options;

/** Stores that only a program with the same comparator opens. */
public final class ReverseOrder implements RocksDBConfigSetter {
    @Override public void setConfig(String store, Options options, Map<String, Object> configuration) {
        options.setComparator(BuiltinComparator.REVERSE_BYTEWISE_COMPARATOR);
    }

    @Override public void close(String store, Options options) { }
}
