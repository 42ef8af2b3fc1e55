"""A real Kafka broker: one KRaft node on free ports of the loopback interface."""

import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.jars import BROKER_VERSION, LONG_LIVED, java
from tests.support.processes import ChildProcess

_CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAA"


class Broker:
    """Start, stop, kill and start again on the same directory and ports."""

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        secured: bool = False,
    ) -> None:
        """``secured``: with one more listener, SASL_SSL, that the properties must configure."""
        self.directory = directory
        self.port, controller_port, secured_port = _free_ports(3)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.secured_bootstrap = f"127.0.0.1:{secured_port}"
        self._process: ChildProcess | None = None
        self._configuration = directory / "server.properties"
        directory.mkdir(parents=True, exist_ok=True)
        settings = _settings(self.bootstrap, f"127.0.0.1:{controller_port}", directory / "data")
        if secured:
            for name in ("listeners", "advertised.listeners"):
                settings[name] += f",SASL_SSL://{self.secured_bootstrap}"
            settings["listener.security.protocol.map"] += ",SASL_SSL:SASL_SSL"
        settings |= properties or {}
        self._configuration.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def admin(self) -> AdminClient:
        """A new client: keep a reference to it until its answers have come."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def start(self, timeout: float = 180) -> None:
        """Returns once the broker answers."""
        if not (self.directory / "data" / "meta.properties").exists():
            self._format()
        command = java(BROKER_VERSION, "kafka.Kafka", str(self._configuration), options=LONG_LIVED)
        self._process = ChildProcess(command, self.directory / "broker.log")
        self._wait_until_it_answers(self._process, time.monotonic() + timeout)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        admin = self.admin
        admin.create_topics([topic])[name].result(120)

    def delete_topic(self, name: str) -> None:
        admin = self.admin
        admin.delete_topics([name])[name].result(120)

    def _format(self) -> None:
        arguments = ("format", "-t", _CLUSTER_ID, "-c", str(self._configuration))
        command = java(BROKER_VERSION, "kafka.tools.StorageTool", *arguments)
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    def _wait_until_it_answers(self, process: ChildProcess, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not process.running:
                raise AssertionError(f"the broker ended\n{process.tail()}")
            if _listens(self.port) and self._answers():
                return
            time.sleep(0.1)
        process.kill()
        raise AssertionError(f"the broker does not answer\n{process.tail()}")

    def _answers(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=5).brokers)
        except KafkaException:
            return False


def _settings(listener: str, controller: str, data: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # How long a broker that was killed is thought to be alive.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "auto.create.topics.enable": "false",
    }


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
