"""The services' very commands, settings, configurations and health checks, run by what is installed on this machine.

One after the other, as Compose starts them: Kafka, the topics, calmon, the sample, Alertmanager, Prometheus. Grafana is not to be had.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
import yaml

from tests.compose.local import alertmanager, check, running, translated, wait_until_healthy
from tests.compose.project import ROOT, bind_mounts, health_check, services
from tests.integration.running import CALMON, parse, wait_until
from tests.services.kafka import Kafka
from tests.services.kafka_process import BrokerProcess
from tests.services.kafka_settings import pick_ports
from tests.services.prometheus import PrometheusServer, find_program

NOT_SETTINGS = {"CLUSTER_ID", "KAFKA_HEAP_OPTS", "KAFKA_LOG_DIRS"}
"""Variables of Kafka's image that are no broker settings, or a place in the container."""

_LOCAL = build_opener(ProxyHandler({}))
Ports = Mapping[str, int]


@pytest.fixture(scope="module")
def ports() -> Ports:
    """Free ports of this machine for those of the containers."""
    return pick_ports(["CONTROLLER", "PLAINTEXT", "HOST", "calmon", "prometheus", "alertmanager"])


@pytest.fixture(scope="module")
def here(ports: Ports) -> Mapping[str, str]:
    """What addresses in the containers are on this machine."""
    local = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    return {
        "kafka:9092": local["PLAINTEXT"],
        "127.0.0.1/9092": f"127.0.0.1/{ports['PLAINTEXT']}",
        "kafka:9093": local["CONTROLLER"],
        "PLAINTEXT://:9092": f"PLAINTEXT://{local['PLAINTEXT']}",
        "CONTROLLER://:9093": f"CONTROLLER://{local['CONTROLLER']}",
        "HOST://:29092": f"HOST://{local['HOST']}",
        "127.0.0.1:29092": local["HOST"],
        "calmon:9779": local["calmon"],
        "'127.0.0.1', 9779": f"'127.0.0.1', {ports['calmon']}",
        "alertmanager:9093": local["alertmanager"],
        "127.0.0.1:9093": local["alertmanager"],
        "localhost:9090": local["prometheus"],
        "127.0.0.1:9090": local["prometheus"],
    }


@pytest.fixture(scope="module")
def kafka(ports: Ports, here: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker with the settings of the service, once its health check succeeds."""
    folder = tmp_path_factory.mktemp("kafka")
    variables = {name: value for name, value in services()["kafka"]["environment"].items() if name not in NOT_SETTINGS}
    settings = {key(name): translated([value], here)[0] for name, value in variables.items()}
    broker = BrokerProcess(folder, {name: ports[name] for name in ("CONTROLLER", "PLAINTEXT", "HOST")}, settings)
    words = translated(health_check("kafka"), here)
    assert check(words) != 0
    broker.start()
    try:
        wait_until_healthy(words, folder / "log")
        yield Kafka(f"127.0.0.1:{ports['HOST']}")
    finally:
        broker.remove()


def key(variable: str) -> str:
    """A setting of the broker for a variable of the image: ``KAFKA_`` and the key, '.' as ``_``, '_' as ``__``, '-' as ``___``."""
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


@pytest.fixture(scope="module")
def config(here: Mapping[str, str], ports: Ports, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service's configuration with addresses and paths of this machine."""
    folder = tmp_path_factory.mktemp("calmon")
    text = bind_mounts("calmon")["/etc/calmon/calmon.yaml"].read_text()
    told = yaml.safe_load(translated([text], {**here, "/var/lib/calmon": str(folder)})[0])
    told["http"] = {"address": "127.0.0.1", "port": ports["calmon"]}
    told["evaluation"]["tick"] = "1s"
    path = folder / "calmon.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


@pytest.fixture(scope="module")
def topics(kafka: Kafka, config: Path) -> Kafka:
    """The broker, once the service `topics` has ended well; a second time, as at the next start, changes nothing."""
    for _ in range(2):
        command = [*CALMON, *translated(services()["topics"]["command"], {"/etc/calmon/calmon.yaml": str(config)})]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
    return kafka


@pytest.fixture(scope="module")
def calmon(topics: Kafka, config: Path, here: Mapping[str, str]) -> Iterator[str]:
    """Address of calmon, once its image's health check succeeds, while the sample is sent."""
    del topics
    command = [*CALMON, *translated(services()["calmon"]["command"], {"/etc/calmon/calmon.yaml": str(config)})]
    words = translated(health_check("calmon"), here)
    assert check(words) != 0
    with running(command, config.with_suffix(".log")):
        wait_until_healthy(words, config.with_suffix(".log"))
        sample = [*services()["sample"]["entrypoint"], *translated(services()["sample"]["command"], here)]
        with running(sample, config.with_name("sample.log")):
            yield here["calmon:9779"]


@pytest.fixture(scope="module")
def watcher(calmon: str, here: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Prometheus with the service's arguments and configuration, once its health check succeeds."""
    del calmon
    folder = tmp_path_factory.mktemp("prometheus")
    shutil.copytree(bind_mounts("prometheus")["/etc/prometheus"], folder / "etc")
    file = folder / "etc/prometheus.yml"
    file.write_text(
        translated([file.read_text()], here)[0]
        .replace("scrape_interval: 15s", "scrape_interval: 1s")
        .replace("timeout: 10s", "timeout: 1s")
    )
    places = {"/etc/prometheus": str(folder / "etc"), "=/prometheus": f"={folder / 'data'}"}
    command = [find_program("prometheus"), *translated(services()["prometheus"]["command"], places)]
    words = translated(health_check("prometheus"), here)
    assert check(words) != 0
    with running([*command, f"--web.listen-address={here['localhost:9090']}"], folder / "log"):
        wait_until_healthy(words, folder / "log")
        server = PrometheusServer([])
        server.url = f"http://{here['localhost:9090']}"
        yield server


def test_kafka_has_the_topics_that_calmon_reads(topics: Kafka) -> None:
    with topics.admin() as admin:
        described = {one["name"]: len(one["partitions"]) for one in admin.describe_topics(["predictions", "labels"])}
    assert described == {"predictions": 4, "labels": 4}


def test_calmon_finds_its_configuration_good(topics: Kafka, config: Path) -> None:
    del topics
    result = subprocess.run([*CALMON, "check", "-c", str(config)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


def test_the_sample_reaches_calmon(calmon: str) -> None:
    def applied() -> set[float]:
        with _LOCAL.open(f"http://{calmon}/metrics", timeout=10) as answer:
            samples = parse(answer.read().decode())
        wanted = ("calmon_records_total", frozenset({("kind", "prediction"), ("outcome", "applied")}))
        return {value for key_, value in samples.items() if key_ == wanted and value > 0}

    wait_until(applied, "predictions of the sample are read")


def test_a_health_check_sees_a_bad_answer(calmon: str, here: Mapping[str, str]) -> None:
    del calmon
    words = translated(health_check("calmon"), here)
    assert check(words) == 0
    assert check(translated(words, {"/-/healthy": "/nowhere"})) != 0


def test_prometheus_scrapes_calmon_and_itself(watcher: PrometheusServer) -> None:
    watcher.wait_for('up{job="calmon"} == 1 and on () up{job="prometheus"} == 1')
    watcher.wait_for("sum(calmon_records_consumed_total) > 0")


def test_promtool_finds_the_configuration_good() -> None:
    command = [find_program("promtool"), "check", "config", str(bind_mounts("prometheus")["/etc/prometheus"] / "prometheus.yml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


ALERTMANAGER = bind_mounts("alertmanager")["/etc/alertmanager/alertmanager.yml"]


def test_alertmanager_starts_and_is_healthy(here: Mapping[str, str], tmp_path: Path) -> None:
    places = {"/etc/alertmanager/alertmanager.yml": str(ALERTMANAGER), "=/alertmanager": f"={tmp_path}"}
    command = [alertmanager(), *translated(services()["alertmanager"]["command"], places)]
    words = translated(health_check("alertmanager"), here)
    assert check(words) != 0
    with running([*command, f"--web.listen-address={here['127.0.0.1:9093']}"], tmp_path / "log") as process:
        wait_until(lambda: check(words) == 0 or process.poll() is not None, "Alertmanager is healthy")
        assert process.poll() is None, (tmp_path / "log").read_text()
