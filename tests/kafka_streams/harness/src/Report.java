import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Says what happens, one JSON object a line. */
final class Report implements StateRestoreListener, AutoCloseable {
    private final PrintWriter file;
    private final long begin = System.nanoTime();
    private final Map<String, Long> restoring = new ConcurrentHashMap<>();

    private Report(PrintWriter file) {
        this.file = file;
    }

    static Report open(Arguments arguments) throws IOException {
        Optional<Path> path = arguments.path("report");
        return new Report(path.isEmpty() ? null : new PrintWriter(new FileWriter(path.get().toFile(), true)));
    }

    synchronized void say(String format, Object... values) {
        String line = String.format(Locale.ROOT, format, values);
        System.out.println(line);
        if (file != null) {
            file.println(line);
            file.flush();
        }
    }

    long elapsedMs() {
        return (System.nanoTime() - begin) / 1_000_000;
    }

    @Override public void onRestoreStart(TopicPartition source, String store, long start, long end) {
        restoring.put(source + store, elapsedMs());
        say("{\"event\":\"restoreStart\",\"store\":\"%s\",\"topic\":\"%s\",\"partition\":%d,"
            + "\"startOffset\":%d,\"endOffset\":%d}", store, source.topic(), source.partition(), start, end);
    }

    @Override public void onBatchRestored(TopicPartition source, String store, long end, long records) { }

    @Override public void onRestoreEnd(TopicPartition source, String store, long total) {
        say("{\"event\":\"restoreEnd\",\"store\":\"%s\",\"topic\":\"%s\",\"partition\":%d,"
            + "\"restored\":%d,\"ms\":%d}", store, source.topic(), source.partition(), total,
            elapsedMs() - restoring.get(source + store));
    }

    @Override public void onRestoreSuspended(TopicPartition source, String store, long total) {
        say("{\"event\":\"restoreSuspended\",\"store\":\"%s\",\"topic\":\"%s\",\"partition\":%d,"
            + "\"restored\":%d}", store, source.topic(), source.partition(), total);
    }

    @Override public void close() {
        if (file != null) file.close();
    }
}
