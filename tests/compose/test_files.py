"""docker-compose.yml as a file: valid, closed to other machines, pinned, and of one piece with what it mounts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grafana.generate.query import EXTRA_FAMILIES
from monitor.config import HttpConfig
from monitor.config_file import load_config
from tests.compose.project import FILE, ROOT, bind_mounts, health_check, instructions, project, services
from tests.services.kafka_container import image

CALMON_CONFIG = ROOT / "deploy/compose/calmon.yaml"
ALERTMANAGER = bind_mounts("alertmanager")["/etc/alertmanager/alertmanager.yml"]
ENDS = {"topics"}
FEEDS = {"sample"}
"""Services without a health check: one ends, one only sends."""


def check_schema(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_keeps_to_the_compose_specification(tmp_path: Path) -> None:
    result = check_schema(FILE)
    assert result.returncode == 0, result.stdout
    spoilt = tmp_path / "docker-compose.yml"
    spoilt.write_text(FILE.read_text().replace("retries: 12", "retrys: 12"))
    assert "retrys" in check_schema(spoilt).stdout


@pytest.mark.parametrize("name", services())
def test_images_are_pinned_or_built_here(name: str) -> None:
    tag = services()[name]["image"].rpartition(":")[2]
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag) or (services()[name]["image"] == "calmon:local" and "build" in services()[name])


def test_kafka_is_the_one_that_is_tested_against() -> None:
    assert services()["kafka"]["image"] == image()


def test_base_images_are_pinned() -> None:
    bases = {one.text.split()[0] for one in instructions() if one.name == "FROM"}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", bases.pop())


@pytest.mark.parametrize("name", services())
def test_ports_are_published_on_this_machine_only(name: str) -> None:
    for port in services()[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


@pytest.mark.parametrize("name", [name for name in services() if name not in ENDS | FEEDS])
def test_services_have_a_health_check_and_come_back(name: str) -> None:
    assert health_check(name)
    assert services()[name]["restart"] == "unless-stopped"


def test_services_wait_for_healthy_ones() -> None:
    waits = {name: {other: wait["condition"] for other, wait in one.get("depends_on", {}).items()} for name, one in services().items()}
    for name, others in waits.items():
        for other, condition in others.items():
            assert condition == ("service_completed_successfully" if other in ENDS else "service_healthy"), (name, other)
    assert set(waits["calmon"]) == {"kafka", "topics"}
    assert "calmon" not in waits["prometheus"], "what watches calmon must not wait for it"


@pytest.mark.parametrize("name", services())
def test_mounts_are_there(name: str) -> None:
    declared = set(project()["volumes"])
    for volume in services()[name].get("volumes", []):
        source, _, *options = volume.split(":")
        if source.startswith("."):
            assert options == ["ro"], volume
        else:
            assert source in declared, volume
    for place, path in bind_mounts(name).items():
        if path != ALERTMANAGER:  # its configuration comes with the alerts
            assert path.exists(), place


@pytest.mark.parametrize("name", ["calmon", "topics", "sample"])
def test_calmon_has_no_rights_and_writes_to_its_volumes_only(name: str) -> None:
    one = services()[name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    (user,) = (step.text for step in instructions() if step.name == "USER")
    assert int(user.split(":")[0]) > 0


def test_secrets_come_from_files_that_git_does_not_see() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for name, source in project()["secrets"].items():
        assert str(Path("/", source["file"]).parent) + "/" in ignored, name
    (mounted,) = services()["grafana"]["secrets"]
    assert services()["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"] == f"/run/secrets/{mounted}"
    settings = [key for one in services().values() for key in one.get("environment", {})]
    assert [key for key in settings if "PASSWORD" in key and not key.endswith("__FILE")] == []


def test_alertmanager_has_the_secrets_that_it_reads() -> None:
    read = re.findall(r"_file: (/\S+)", ALERTMANAGER.read_text())
    secrets = {secret["target"]: secret["source"] for secret in services()["alertmanager"]["secrets"]}
    assert sorted(read) == sorted(secrets)
    assert set(secrets.values()) <= set(project()["secrets"])


def test_calmon_watches_what_is_beside_it() -> None:
    config = load_config(str(CALMON_CONFIG))
    assert config.source.kafka is not None
    assert config.source.kafka.bootstrap_servers == ("kafka:9092",)
    assert (config.http.address, config.http.port) == ("0.0.0.0", HttpConfig().port)  # noqa: S104 - inside the container
    assert services()["calmon"]["ports"] == [f"127.0.0.1:{config.http.port}:{config.http.port}"]
    assert f", {config.http.port}," in health_check("calmon")[-1]
    assert str(Path(config.state.directory).parent) in [volume.split(":")[1] for volume in services()["calmon"]["volumes"]]


def test_calmon_exports_what_the_dashboards_show() -> None:
    assert load_config(str(CALMON_CONFIG)).evaluation.families == EXTRA_FAMILIES


def test_prometheus_and_grafana_know_the_others() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = {one["job_name"]: one["static_configs"][0]["targets"] for one in config["scrape_configs"]}
    assert targets == {"calmon": ["calmon:9779"], "prometheus": ["localhost:9090"], "alertmanager": ["alertmanager:9093"]}
    assert config["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["alertmanager:9093"]}]}]
    mounts = bind_mounts("grafana")
    (source,) = yaml.safe_load((mounts["/etc/grafana/provisioning/datasources"] / "calmon.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert source["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
    (provider,) = yaml.safe_load((mounts["/etc/grafana/provisioning/dashboards"] / "calmon.yaml").read_text())["providers"]
    home = Path(services()["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (mounts[provider["options"]["path"]] / home.name).exists()
    assert str(home.parent) == provider["options"]["path"]
    assert "/etc/grafana/provisioning/alerting" not in mounts, "rules are loaded once: by Prometheus"
