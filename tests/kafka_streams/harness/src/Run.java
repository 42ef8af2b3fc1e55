import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** One life of the application: start, restore, process, dump once, close. */
final class Run {
    private final Arguments arguments;
    private final Report report;
    private final String application;
    private final Set<String> stores;
    private final CountDownLatch terminated = new CountDownLatch(1);
    private volatile boolean closed;

    Run(Arguments arguments, Report report) {
        this.arguments = arguments;
        this.report = report;
        this.application = arguments.required("appId");
        this.stores = arguments.set("stores", StoreTopology.ALL);
    }

    void toTheEnd() throws Exception {
        Properties configuration = configuration();
        var topology = new StoreTopology(arguments.required("topic"), stores).build(configuration);
        KafkaStreams streams = new KafkaStreams(topology, configuration);
        streams.setGlobalStateRestoreListener(report);
        streams.setStateListener((now, before) ->
            report.say("{\"event\":\"state\",\"state\":\"%s\",\"ms\":%d}", now, report.elapsedMs()));
        streams.setUncaughtExceptionHandler(exception -> {
            String what = exception.toString().replace('\\', '/').replace('"', '\'').replaceAll("\\s+", " ");
            report.say("{\"event\":\"exception\",\"what\":\"%s\"}", what);
            exception.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        closeOnSigterm();
        streams.start();
        boolean failed = stay(streams);
        boolean clean = streams.close(CloseOptions.timeout(Duration.ofSeconds(40))
            .withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
        report.say("{\"event\":\"closed\",\"clean\":%s,\"ms\":%d}", clean, report.elapsedMs());
        closed = true;
        boolean exiting = terminated.getCount() == 0;   // SIGTERM: the exit is under way and waits for this thread
        if (!exiting) System.exit(failed ? 1 : 0);
    }

    private void closeOnSigterm() {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (closed) return;
            terminated.countDown();
            try {
                main.join(60_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
    }

    /** Until the end that was asked for; true when the application died before. */
    private boolean stay(KafkaStreams streams) throws Exception {
        String until = arguments.text("until", "forever");
        boolean ready = false;
        while (!terminated.await(50, TimeUnit.MILLISECONDS)) {
            KafkaStreams.State state = streams.state();
            if (state == KafkaStreams.State.ERROR || state == KafkaStreams.State.NOT_RUNNING) return true;
            if (state != KafkaStreams.State.RUNNING) continue;
            if (until.equals("caughtUp") && !caughtUp()) continue;
            if (!ready) {
                ready = true;
                becomeReady(streams);
            }
            if (!until.equals("forever")) break;
        }
        return false;
    }

    private void becomeReady(KafkaStreams streams) throws Exception {
        Optional<Path> dump = arguments.path("dump");
        if (dump.isPresent()) {
            int lines = new StoreDump(streams, (int) arguments.number("keys", 100)).write(stores, dump.get());
            report.say("{\"event\":\"dumped\",\"lines\":%d}", lines);
        }
        Optional<Path> readyFile = arguments.path("readyFile");
        if (readyFile.isPresent()) Files.writeString(readyFile.get(), "ready\n");
    }

    private Properties configuration() {
        Properties c = arguments.client();
        c.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        c.put(StreamsConfig.STATE_DIR_CONFIG, arguments.required("stateDir"));
        c.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments.text("guarantee", "at_least_once"));
        c.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        c.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        c.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "200");
        c.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "1");
        c.put("statestore.cache.max.bytes", "0");
        c.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // After a crash the next start waits until the dead member is given up.
        c.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "4000");
        c.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "1000");
        if (arguments.values().containsKey("memtable")) {
            c.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SmallMemtable.class.getName());
            c.put(SmallMemtable.BYTES, arguments.required("memtable"));
        }
        arguments.addConfiguration(c);
        return c;
    }

    private boolean caughtUp() throws Exception {
        try (Admin admin = Admin.create(arguments.client())) {
            Map<TopicPartition, OffsetSpec> inputs = new HashMap<>();
            for (String topic : admin.listTopics().names().get()) {
                if (!isInput(topic)) continue;
                var description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
                for (var partition : description.partitions())
                    inputs.put(new TopicPartition(topic, partition.partition()), OffsetSpec.latest());
            }
            var committed = admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
            for (var end : admin.listOffsets(inputs).all().get().entrySet())
                if (end.getValue().offset() > committedAtLeast(end.getKey(), committed)) return false;
        }
        return true;
    }

    private boolean isInput(String topic) {
        return topic.equals(arguments.required("topic")) || isRepartition(topic);
    }

    private boolean isRepartition(String topic) {
        return topic.startsWith(application + "-") && topic.endsWith("-repartition");
    }

    /** Under exactly-once a repartition topic ends in a transaction marker, which nobody consumes. */
    private long committedAtLeast(TopicPartition input, Map<TopicPartition, OffsetAndMetadata> committed) {
        OffsetAndMetadata offset = committed.get(input);
        if (offset == null) return 0;
        return offset.offset() + (isRepartition(input.topic()) ? 1 : 0);
    }
}
