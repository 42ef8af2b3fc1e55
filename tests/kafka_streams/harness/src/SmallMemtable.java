import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/** Small memtables, so that flushes and compactions happen all the time. */
public final class SmallMemtable implements RocksDBConfigSetter {
    static final String BYTES = "fixture.memtable";

    @Override public void setConfig(String store, Options options, Map<String, Object> configuration) {
        long bytes = Long.parseLong(String.valueOf(configuration.get(BYTES)));
        options.setWriteBufferSize(bytes);
        options.setTargetFileSizeBase(4 * bytes);
        options.setMaxBytesForLevelBase(16 * bytes);
    }

    @Override public void close(String store, Options options) { }
}
