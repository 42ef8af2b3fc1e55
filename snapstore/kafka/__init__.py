"""The Changelog port on confluent-kafka. Reads topics; never writes to one or creates one."""
