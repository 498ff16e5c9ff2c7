"""What `deploy/` says about running the service: each file is used, or compared with what it speaks of."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.conftest import run_here
from coterie.service.http.api_keys import create_key
from coterie.service.http.routes import ROUTES
from coterie.service.settings import ServerSettings
from optional import need_package, need_program
from service.serving import Served, served

yaml = need_package("yaml", distribution="PyYAML")
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CONTAINER = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((DEPLOY / "kubernetes" / "coterie.yaml").read_text(encoding="utf-8"))
)
PATHS = {route.path for route in ROUTES}
FULL_VERSION = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*|[\w./-]+:\d+\.\d+-\w+")


def manifest(kind: str) -> Any:
    (found,) = [one for one in MANIFESTS if one["kind"] == kind]
    return found


def pod() -> Any:
    return manifest("StatefulSet")["spec"]["template"]["spec"]


CONTAINERS = [*pod()["initContainers"], *pod()["containers"]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(tmp_path_factory.mktemp("running") / "a.db"), dim=2) as one:
        yield one


# Settings that files give must exist: a wrong name would be ignored by containers.


def variables() -> dict[str, str]:
    """Every variable of the service that a file sets."""
    found = dict(one.split("=", 1) for one in re.findall(r"COTERIE_\w+=\S+", CONTAINER))
    found |= COMPOSE["services"]["coterie"]["environment"]
    for container in CONTAINERS:
        found |= {one["name"]: one["value"] for one in container["env"]}
    return {name: value for name, value in found.items() if name.startswith("COTERIE_")}


def test_every_variable_is_a_setting_of_the_service() -> None:
    fields = {name.upper() for name in (*ServerSettings.__dataclass_fields__, "STORE", "HOST")}
    assert {name.removeprefix("COTERIE_") for name in variables()} <= fields
    assert {"COTERIE_STORE", "COTERIE_HOST", "COTERIE_ALLOWED_HOST"} <= variables().keys()


# The image. No test builds it: that needs an engine, and hours of a registry.


def words_of(instruction: str) -> list[str]:
    (found,) = re.findall(rf"^\s*{instruction} (\[.*\])$", CONTAINER, re.MULTILINE)
    read: list[str] = json.loads(found)
    return read


def test_the_image_runs_the_service_as_a_user_that_is_not_root() -> None:
    assert words_of("ENTRYPOINT") == ["coterie", "serve"]
    (user,) = re.findall(r"^USER (\d+)$", CONTAINER, re.MULTILINE)
    assert f"useradd --system --uid {user} coterie" in CONTAINER
    assert int(user) == pod()["securityContext"]["runAsUser"] > 0
    assert CONTAINER.index("USER ") < CONTAINER.index("ENTRYPOINT")


def test_the_check_of_the_image_tells_a_service_that_is_ready_from_one_that_is_not(service: Served) -> None:
    program, *words = words_of("CMD")
    assert program == "python"
    port = service.url.rpartition(":")[2]
    for url, code in ((f"127.0.0.1:{port}", 0), ("127.0.0.1:9", 1)):
        command = [sys.executable, *(word.replace("127.0.0.1:8000", url) for word in words)]
        ended = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "no_proxy": "*"})
        assert ended.returncode == code


# Compose.


def test_the_compose_file_is_one_by_its_schema() -> None:
    jsonschema = need_package("jsonschema")
    need_package("check_jsonschema")
    vendored = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "compose-spec.json")
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    jsonschema.validate(COMPOSE, schema)
    wrong = {**COMPOSE, "services": {"coterie": {"imagine": "coterie"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_what_the_compose_file_mounts_and_builds_is_there() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"coterie", "postgres", "prometheus", "grafana"}
    build = services["coterie"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == (DEPLOY / "Containerfile")
    for name, one in services.items():
        for volume in one["volumes"]:
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], (
                name
            )
        if "build" not in one:
            assert FULL_VERSION.fullmatch(one["image"]), one["image"]
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))  # behind a proxy with TLS
    confined = services["coterie"]
    assert confined["read_only"] is True
    assert confined["cap_drop"] == ["ALL"]
    assert services["coterie"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "coterie" in variables()["COTERIE_ALLOWED_HOST"].split(",")  # Prometheus calls it by this name


def test_prometheus_reads_the_metrics_with_a_key_of_the_role_reader(tmp_path: Path) -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["coterie:8000"]}]
    assert job["metrics_path"] in PATHS
    secret = Path(job["authorization"]["credentials_file"]).name
    assert secret in COMPOSE["services"]["prometheus"]["secrets"]
    assert COMPOSE["secrets"][secret]["file"].startswith("./secrets/")  # which is ignored by git
    assert all((DEPLOY / "prometheus" / name).is_file() for name in config["rule_files"])
    with served(str(tmp_path / "a.db"), dim=2) as one:
        key = one.engine.journal.run(lambda: create_key(one.engine.store, "reader"))
        one.keys.refresh()
        for headers, status in (({}, 401), ({"Authorization": f"{job['authorization']['type']} {key}"}, 200)):
            found = httpx.get(one.url + job["metrics_path"], headers=headers, trust_env=False)
            assert found.status_code == status


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    folder = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text("utf-8"))["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((folder / "dashboards" / "coterie.yaml").read_text("utf-8"))["providers"]
    mounts = dict(one.split(":")[:2] for one in COMPOSE["services"]["grafana"]["volumes"])
    assert mounts["./grafana"] == provider["options"]["path"]
    assert json.loads((DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8"))["panels"]


# Kubernetes.


def test_the_manifests_are_of_one_instance_with_its_volume() -> None:
    kinds = [(one["apiVersion"], one["kind"]) for one in MANIFESTS]
    assert kinds == [
        ("v1", "ServiceAccount"),
        ("v1", "Service"),
        ("policy/v1", "PodDisruptionBudget"),
        ("apps/v1", "StatefulSet"),
    ]
    stateful = manifest("StatefulSet")["spec"]
    labels = stateful["template"]["metadata"]["labels"]
    assert stateful["selector"]["matchLabels"] == labels
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert (stateful["replicas"], stateful["serviceName"]) == (1, manifest("Service")["metadata"]["name"])
    (claim,) = stateful["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    (container,) = pod()["containers"]
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert set(mounted) == {claim["metadata"]["name"], *(one["name"] for one in pod()["volumes"])}
    settings = {one["name"]: one["value"] for one in container["env"]}
    assert Path(settings["COTERIE_STORE"]).parent == Path(mounted["data"]) == Path(settings["TMPDIR"])


def test_probes_ask_routes_of_the_service_that_need_no_key(service: Served) -> None:
    (container,) = pod()["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    probes = {name: container[name]["httpGet"] for name in container if name.endswith("Probe")}
    assert set(probes) == {"startupProbe", "livenessProbe", "readinessProbe"}
    for probe in probes.values():
        assert ports[probe["port"]] == ServerSettings().port
        # The kubelet names the address of the pod as the host.
        found = httpx.get(service.url + probe["path"], headers={"Host": "10.1.2.3:8000"}, trust_env=False)
        assert found.status_code == 200
    assert pod()["terminationGracePeriodSeconds"] > ServerSettings().stop_timeout + 10


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda one: str(one["name"]))
def test_containers_may_do_no_more_than_they_must(container: Any) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container["resources"]["limits"]["memory"]


@pytest.mark.slow
def test_the_pod_waits_for_its_first_key(tmp_path: Path) -> None:
    (first,) = pod()["initContainers"]
    need_program("sh")
    store = str(tmp_path / "coterie.db")
    command = [word.replace("sleep 5", "sleep 0.2") for word in first["command"]]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    surroundings = {**os.environ, "COTERIE_STORE": store, "PATH": path}
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "there is no key yet\n"
        assert waiting.poll() is None
        assert run_here("keys", "create", "admin", "--store", store).exit_code == 0
        began = time.monotonic()
        waiting.communicate(timeout=120)
        assert waiting.returncode == 0, time.monotonic() - began


def test_the_line_that_makes_the_first_key_is_understood() -> None:
    text = (DEPLOY / "kubernetes" / "coterie.yaml").read_text(encoding="utf-8")
    (line,) = re.findall(r"#   (kubectl exec .*)", text)
    words = shlex.split(line)
    assert words[words.index("--container") + 1] == pod()["initContainers"][0]["name"]
    assert words[words.index("--") + 1 :] == ["coterie", "keys", "create", "admin"]
    assert words[2] == f"{manifest('StatefulSet')['metadata']['name']}-0"


def test_the_image_of_an_overlay_is_that_of_the_manifests() -> None:
    found = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert found["resources"] == ["coterie.yaml"]
    assert {one["name"] for one in found["images"]} == {one["image"] for one in pod()["containers"]}
