import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.DbPath;
import org.rocksdb.Options;

/** Stores whose tables lie in another folder, named after the application's state directory. */
public final class OtherFolders implements RocksDBConfigSetter {
    @Override public void setConfig(String store, Options options, Map<String, Object> configuration) {
        // One folder for all partitions of a store is enough for a topic of one partition.
        Path folder = Path.of(configuration.get("state.dir") + "-tables", store);
        folder.toFile().mkdirs();
        options.setDbPaths(List.of(new DbPath(folder, 1L << 40)));
    }

    @Override public void close(String store, Options options) { }
}
