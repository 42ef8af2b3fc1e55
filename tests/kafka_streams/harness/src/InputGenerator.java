import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Fills an input topic, and TOPIC-global with 20 records, from a seed. */
final class InputGenerator {
    private static final int GLOBAL_RECORDS = 20;

    private InputGenerator() { }

    static void run(Arguments arguments) throws Exception {
        String topic = arguments.required("topic");
        long records = arguments.number("records", 1000);
        long rate = arguments.number("rate", 0);
        int keys = (int) arguments.number("keys", 100);
        int valueSize = (int) arguments.number("valueSize", 50);
        int deletePct = (int) arguments.number("deletePct", 5);
        long step = arguments.number("stepMs", 10);
        long jitter = arguments.number("jitterMs", 0);
        // Times far in the past make the broker roll, compact and delete changelogs at once.
        long timestamp = arguments.number("startTs", System.currentTimeMillis() - 3_600_000);
        Optional<Path> stopFile = arguments.path("stopFile");
        Random random = new Random(arguments.number("seed", 1));
        createTopics(arguments, topic);

        var client = arguments.client();
        client.put("linger.ms", "20");
        client.put("batch.size", "131072");
        client.put("compression.type", "lz4");
        long sent = 0;
        long begin = System.nanoTime();
        try (var producer = new KafkaProducer<>(client, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < GLOBAL_RECORDS; i++)
                producer.send(
                    new ProducerRecord<>(topic + "-global", 0, timestamp, Arguments.key(i), "global-" + i));
            for (; sent < records; sent++) {
                String value = random.nextInt(100) < deletePct ? null : value(random, valueSize);
                long time = jitter == 0 ? timestamp : timestamp - (long) (random.nextDouble() * jitter);
                String key = Arguments.key(random.nextInt(keys));
                var record = new ProducerRecord<>(topic, null, time, key, value);
                record.headers().add("h", ("n" + sent).getBytes());
                producer.send(record);
                timestamp += step;
                if (sent % 100 != 0) continue;
                if (rate > 0) sleepUntil(begin + sent * 1_000_000_000L / rate);
                if (stopFile.isPresent() && Files.exists(stopFile.get())) break;
            }
        }
        System.out.printf("{\"event\":\"generated\",\"records\":%d,\"nextTs\":%d}%n", sent, timestamp);
    }

    private static void createTopics(Arguments arguments, String topic) throws Exception {
        int partitions = (int) arguments.number("partitions", 2);
        try (Admin admin = Admin.create(arguments.client())) {
            createTopic(admin, topic, partitions, Map.of("retention.ms", "-1"));
            createTopic(admin, topic + "-global", 1, Map.of("cleanup.policy", "compact"));
        }
    }

    private static void createTopic(Admin admin, String name, int partitions, Map<String, String> configuration)
            throws Exception {
        if (admin.listTopics().names().get().contains(name)) return;
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configuration))).all().get();
    }

    private static void sleepUntil(long due) throws InterruptedException {
        long left = due - System.nanoTime();
        if (left > 0) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
    }

    private static String value(Random random, int size) {
        char[] text = new char[size];
        for (int i = 0; i < size; i++) text[i] = (char) ('!' + random.nextInt(90));
        return new String(text).replace('\\', '/').replace('"', '\'');
    }
}
