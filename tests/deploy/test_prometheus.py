"""A real Prometheus loads the rules of kubernetes-mixin and evaluates them and the dashboards on data of a workload.

It is the program that MOCKUBE_PROMETHEUS names, or `prometheus` on PATH. With kube-state-metrics, which
MOCKUBE_KUBE_STATE_METRICS names, the queries that read its metrics are evaluated as well.
"""

import contextlib
import os
import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import orjson
import pytest
import yaml

from tests.deploy.test_mixin import CLAIM, POD, Cluster, is_without_data
from tests.support.processes import promql
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.process import ApiServerProcess, ManagerProcess
from tests.support.stores.etcd_server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

NODES = ("node-1", "node-2")
SECONDS = 90
"""How long after the workload every query must return data: a rate needs two samples of each series."""
NO_SUCH_RESPONSES = re.compile(r'rest_client_requests_total\{[^}]*code=~"[35]\.\."')
UNREACHABLE = {
    "metadata": {"name": "v1.example.com"},
    "spec": {
        "group": "example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": "nothing", "namespace": "default"},
    },
}
"""An APIService whose requests fail."""
VERSION = {
    "served": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
UNCONVERTED = {
    "metadata": {"name": "things.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{**VERSION, "name": "v1", "storage": True}, {**VERSION, "name": "v2", "storage": False}],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/convert", "caBundle": ""},
            },
        },
    },
}
"""A definition whose objects are not converted, so that there are responses with errors of the server."""
THINGS = "/apis/example.org/{}/namespaces/default/things"
THING = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a"}}
WORKLOAD = Path(__file__).parents[1] / "recorder" / "metrics_workload.yaml"


def program(variable, name):
    found = os.environ.get(variable) or shutil.which(name)
    return Path(found) if found else None


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    binary = program("MOCKUBE_PROMETHEUS", "prometheus")
    if binary is None:
        pytest.skip("no prometheus on this machine: apt-get install prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ApiServerProcess(folder, "--simulate-metrics"))
        manager = ManagerProcess(server.kubeconfig, "--metrics-port=0", f"--simulate-nodes={len(NODES)}")
        stack.enter_context(manager)
        cluster = Cluster(server, manager)
        jobs = scrape_configs(folder, server, cluster)
        state_metrics = program("MOCKUBE_KUBE_STATE_METRICS", "kube-state-metrics")
        if state_metrics is not None:
            port = free_port()
            options = [
                f"--kubeconfig={server.kubeconfig}",
                f"--port={port}",
                f"--telemetry-port={free_port()}",
            ]
            stack.enter_context(running([state_metrics, *options]))
            jobs.append(job("kube-state-metrics", [f"127.0.0.1:{port}"], honor_labels=True))
        port = free_port()
        configure(folder, jobs)
        arguments = (
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        stack.enter_context(running([binary, *arguments]))
        instance = Prometheus(f"http://127.0.0.1:{port}", has_state_metrics=state_metrics is not None)
        until(lambda: instance.up() >= {"kubelet", "kube-apiserver", "kube-scheduler"}, "all targets are up")
        run_workload(cluster, server)
        yield instance


@contextlib.contextmanager
def running(command):
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def job(name, targets, **options):
    return {"job_name": name, "static_configs": [{"targets": targets}], **options}


def scrape_configs(folder, server, cluster):
    """Return the jobs of the configuration in deploy/prometheus, with the addresses of these processes."""
    user = yaml.safe_load(server.kubeconfig.read_text())
    authority, files = promql.decoded(user), {}
    for name, data in authority.items():
        files[name] = folder / name
        files[name].write_bytes(data)
    tls = {
        "ca_file": str(files["certificate-authority-data"]),
        "cert_file": str(files["client-certificate-data"]),
        "key_file": str(files["client-key-data"]),
    }
    secure = {"scheme": "https", "tls_config": tls}
    address = server.url.removeprefix("https://")
    manager = cluster.metrics_url.removeprefix("http://")
    jobs = [job("kube-apiserver", [address], **secure)]
    jobs += [job(name, [manager]) for name in ("kube-controller-manager", "kube-scheduler")]
    for name, page in (("kubelet", "metrics"), ("cadvisor", "metrics/cadvisor")):
        relabelings = [
            {"source_labels": ["__address__"], "target_label": label} for label in ("instance", "node")
        ]
        path = {
            "source_labels": ["__address__"],
            "target_label": "__metrics_path__",
            "replacement": f"/api/v1/nodes/$1/proxy/{page}",
        }
        replaced = {"target_label": "__address__", "replacement": address}
        jobs.append(job(name, [*NODES], **secure, relabel_configs=[*relabelings, path, replaced]))
    return jobs


def configure(folder, jobs):
    """Write the configuration; the rules are those of deploy/prometheus, evaluated every second."""
    paths = []
    for source in (promql.MIXIN / "rules.yml", promql.MIXIN / "alerts.yml", promql.FOLDER / "rules.yml"):
        tree = yaml.safe_load(source.read_text())
        for group in tree["groups"]:
            group["interval"] = "2s"
        paths.append(folder / f"{source.parent.name}-{source.name}")
        paths[-1].write_text(yaml.safe_dump(tree))
    every_second = {"scrape_interval": "1s", "evaluation_interval": "2s"}
    tree = {"global": every_second, "rule_files": [*map(str, paths)], "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(tree))


class Prometheus:
    def __init__(self, url, *, has_state_metrics):
        self._url = url
        self.has_state_metrics = has_state_metrics

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}") as response:
            return orjson.loads(response.read())["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def up(self):
        try:
            return {each["metric"]["job"] for each in self.query("up == 1")}
        except (OSError, ssl.SSLError):
            return set()


def run_workload(cluster, server):
    core = "/api/v1/namespaces/default"
    cluster.send("POST", f"{core}/persistentvolumeclaims", CLAIM)
    for name in ("db", "other"):
        cluster.send("POST", f"{core}/pods", {**POD, "metadata": {"name": name}})
    subprocess.run(
        ["kubectl", f"--kubeconfig={server.kubeconfig}", "apply", "--filename", str(WORKLOAD)], check=True
    )
    cluster.send("POST", "/apis/apiregistration.k8s.io/v1/apiservices", UNREACHABLE)
    cluster.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", UNCONVERTED)
    until(lambda: has_status(cluster, "POST", THINGS.format("v1"), THING, 201), "the definition is served")
    for method, path in (("GET", f"{THINGS}/a"), ("POST", THINGS)):
        body = {**THING, "apiVersion": "example.org/v2", "metadata": {"name": "b"}}
        assert has_status(cluster, method, path.format("v2"), body, 500)
    until(lambda: cluster.is_running("other"), "the pod runs")
    cluster.send("DELETE", f"{core}/pods/other?gracePeriodSeconds=0")


def has_status(cluster, method, path, body, status):
    try:
        cluster.send(method, path, body)
    except urllib.error.HTTPError as error:
        return error.code == status
    return status < 300


def recorded_sources():
    """Return the metrics with their jobs that each recorded metric reads, itself or through another."""
    rules = [rule for rule in promql.mixin_rules() if "record" in rule]
    reads = {}
    for rule in rules:
        reads.setdefault(rule["record"], set()).update(read_by(rule["expr"]))
    for _ in rules:
        for name, found in reads.items():
            reads[name] = found | {
                source for metric, _ in found if metric in reads for source in reads[metric]
            }
    return reads


def read_by(expression):
    found = {
        (metric, name) for metric, jobs, _ in promql.selections_of_jobs(expression) for name in jobs or [""]
    }
    return found | {(name, "") for name in promql.recorded_names(expression)}


def has_data(expression, recorded, instance):
    """Return whether every metric that an expression reads is served, so that it must return something."""
    if NO_SUCH_RESPONSES.search(expression):
        return False
    read = read_by(expression)
    sources = read | {source for metric, _ in read for source in recorded.get(metric, ())}
    return not any(
        is_without_data(metric, name)
        for metric, name in sources
        if metric and not (metric.startswith("kube_") and instance.has_state_metrics)
    )


def test_rules_load_and_evaluate(prometheus):
    def unhealthy():
        groups = prometheus.api("rules")["groups"]
        return [
            (rule["name"], rule.get("lastError"))
            for group in groups
            for rule in group["rules"]
            if rule["health"] != "ok"
        ]

    until(lambda: not unhealthy(), "every rule is evaluated")
    assert sum(len(group["rules"]) for group in prometheus.api("rules")["groups"]) > 130


def test_recorded_metrics_and_panels_have_data_of_workload(prometheus):
    recorded = recorded_sources()
    queries = {rule["record"]: rule["record"] for rule in promql.mixin_rules() if "record" in rule}
    expected = {name: query for name, query in queries.items() if has_data(query, recorded, prometheus)}
    for name, panels in promql.mixin_panels().items():
        expected |= {f"{name}: {query}": query for query in panels if has_data(query, recorded, prometheus)}
    empty = dict(expected)

    def all_filled():
        for name, query in [*empty.items()]:
            if prometheus.query(query):
                del empty[name]
        return not empty

    with contextlib.suppress(AssertionError):
        until(all_filled, "data", seconds=SECONDS)
    assert not empty, "\n".join(sorted(empty))
    assert len(expected) > 100


def test_kubelets_and_metrics_api_agree_on_usage(prometheus):
    (found,) = prometheus.query('sum(container_memory_working_set_bytes{pod="db",container="c"})')
    assert float(found["value"][1]) == 32 * 2**20  # half of the request, which is the limit
