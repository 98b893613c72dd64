"""Every metric and label that the rules and dashboards of kubernetes-mixin read is served, or listed with a reason."""

import fnmatch
import re
import urllib.error
import urllib.request
from pathlib import Path

import orjson
import pytest
import yaml

from tests.support.metric_samples import read_samples
from tests.support.processes import promql
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.process import ApiServerProcess, ManagerProcess, tls

TARGET_LABELS = {"job", "instance", "cluster", "node", "metrics_path"}
"""Labels of targets, which the configuration of Prometheus adds."""
WITHOUT_DATA = yaml.safe_load((Path(__file__).parent / "mixin_without_data.yaml").read_text())
PAGES = {"kubelet": "metrics", "cadvisor": "metrics/cadvisor"}
POD = {
    "metadata": {"name": "db"},
    "spec": {
        "containers": [
            {"name": "c", "image": "nginx", "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


class Cluster:
    """Both processes and a simulated node."""

    def __init__(self, server, manager):
        self._server = server
        self._context = tls(server.kubeconfig)
        self.metrics_url = re.search(r"Health and metrics: (http://\S+)", "".join(manager.log))[1]

    def send(self, method, path, body=None):
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._server.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, context=self._context) as response:
            return response.read()

    def scrape(self, job):
        """Return the labels of each metric that the target of a job serves."""
        if job in PAGES:
            text = self.send("GET", f"/api/v1/nodes/node-1/proxy/{PAGES[job]}")
        elif job == "kube-apiserver":
            text = self.send("GET", "/metrics")
        else:
            with urllib.request.urlopen(f"{self.metrics_url}/metrics") as response:
                text = response.read()
        found = {}
        for name, labels, _ in read_samples(text.decode()):
            found.setdefault(name, set()).update(labels)
        return found

    def is_scraped(self, job):
        """Return whether the target of a job responds: the address of the kubelets is published after their nodes."""
        try:
            return bool(self.scrape(job))
        except urllib.error.HTTPError:
            return False

    def is_running(self, name):
        pod = orjson.loads(self.send("GET", f"/api/v1/namespaces/default/pods/{name}"))
        return pod["status"].get("phase") == "Running"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The metrics of each job with their labels, after a pod with a volume has started and another has ended."""
    with (
        ApiServerProcess(tmp_path_factory.mktemp("mixin")) as server,
        ManagerProcess(server.kubeconfig, "--metrics-port=0", "--simulate-nodes=1") as manager,
    ):
        cluster = Cluster(server, manager)
        until(lambda: b"node-1" in cluster.send("GET", "/api/v1/nodes"), "a node")
        until(lambda: cluster.is_scraped("kubelet"), "a kubelet")  # it counts from its first scrape on
        core = "/api/v1/namespaces/default"
        until(lambda: b'"default"' in cluster.send("GET", f"{core}/serviceaccounts"), "an account")
        cluster.send("POST", f"{core}/persistentvolumeclaims", CLAIM)
        cluster.send("POST", f"{core}/pods", POD)
        cluster.send("POST", f"{core}/pods", {**POD, "metadata": {"name": "other"}})
        for name in ("db", "other"):
            until(lambda name=name: cluster.is_running(name), f"{name} runs")
        cluster.send("DELETE", f"{core}/pods/other?gracePeriodSeconds=0")
        jobs = ("kube-apiserver", "kube-controller-manager", "kubelet", "cadvisor")
        found = {job: cluster.scrape(job) for job in jobs}
        return found | {"kube-scheduler": found["kube-controller-manager"]}


def expressions():
    yield from ((rule.get("record") or rule["alert"], rule["expr"]) for rule in promql.mixin_rules())
    yield from (
        (f"{name} {number}", query)
        for name, queries in promql.mixin_panels().items()
        for number, query in enumerate(queries)
    )


RECORDED = {rule["record"] for rule in promql.mixin_rules() if "record" in rule}


def selections():
    """Yield each metric that is read with the jobs and the labels that it is selected by, and where."""
    for where, expression in expressions():
        for metric, jobs, labels in promql.selections_of_jobs(expression):
            if metric and metric not in RECORDED and metric != "up":
                yield metric, jobs, labels, where


def is_without_data(metric, job):
    return any(
        fnmatch.fnmatch(metric, pattern)
        for entry in WITHOUT_DATA
        for pattern in entry["metrics"]
        if job in entry.get("jobs", [job])
    )


def test_every_selected_metric_and_label_is_served_or_listed_with_reason(served):
    missing, read = set(), 0
    for metric, jobs, labels, where in selections():
        for job in jobs or [""]:
            if is_without_data(metric, job):
                continue
            read += 1
            families = served.get(job) or {name: each[name] for each in served.values() for name in each}
            if metric not in families:
                missing.add((job, metric, where))
            missing |= {
                (job, metric, label, where)
                for label in labels - TARGET_LABELS - {"le"}
                if metric in families and label not in families[metric]
            }
    assert not missing
    assert read > 200


def test_every_metric_listed_as_missing_is_read_and_not_served(served):
    read = {(metric, job) for metric, jobs, _, _ in selections() for job in jobs or [""]}
    for entry in WITHOUT_DATA:
        for pattern in entry["metrics"]:
            jobs = entry.get("jobs", [*served])
            assert any(fnmatch.fnmatch(metric, pattern) for metric, _ in read), pattern
            for job in jobs:
                assert not fnmatch.filter(served[job], pattern), (pattern, job)


def test_jobs_of_mixin_are_those_of_the_configuration():
    jobs = {job for _, jobs, _, _ in selections() for job in jobs}
    text = (promql.FOLDER / "prometheus.yml").read_text()
    configured = set(re.findall(r"job_name: (\S+)", text))
    assert jobs - configured == {"node-exporter"}


def test_configuration_without_kubelets_has_the_other_jobs():
    full, control_plane = (
        yaml.safe_load((promql.FOLDER / name).read_text()) for name in ("prometheus.yml", "control-plane.yml")
    )
    left_out = ("kubelet", "cadvisor", "kube-state-metrics")
    kept = [job for job in full["scrape_configs"] if job["job_name"] not in left_out]
    assert control_plane == {**full, "scrape_configs": kept}
