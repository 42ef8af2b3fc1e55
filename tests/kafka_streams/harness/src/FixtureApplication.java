/**
 * A Kafka Streams application with one store of each kind, to make and to check state directories.
 *
 *   gen  bootstrap= topic= [partitions=2 records=1000 keys=100 valueSize=50 deletePct=5 seed=1]
 *        [startTs=an hour ago] [stepMs=10] [jitterMs=out of order by up to so much]
 *        [rate=records per second] [stopFile=]
 *   run  bootstrap= appId= stateDir= topic= [guarantee=at_least_once|exactly_once_v2]
 *        [stores=plain,table,versioned,mem,window,session,count,join,global] [keys=100]
 *        [until=forever|caughtUp|running] [dump=FILE] [readyFile=FILE] [report=FILE]
 *        [memtable=BYTES]  any other name.with.dot=value goes to the Streams configuration
 *
 * Both print one JSON object a line (run also to report=).
 * until=forever: until SIGTERM, then closes cleanly. until=caughtUp: until every input is consumed
 * and committed. until=running: as soon as RUNNING, so the dump is of the restored stores alone
 * when nothing is left to consume.
 */
public final class FixtureApplication {
    private FixtureApplication() { }

    public static void main(String[] args) throws Exception {
        Arguments arguments = Arguments.parse(args);
        switch (arguments.mode()) {
            case "gen" -> InputGenerator.run(arguments);
            case "run" -> {
                try (Report report = Report.open(arguments)) {
                    new Run(arguments, report).toTheEnd();
                }
            }
            default -> throw new IllegalArgumentException("gen or run, not " + arguments.mode());
        }
    }
}
