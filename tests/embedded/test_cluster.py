"""`mockube.Cluster` as a context manager and in an event loop."""

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mockube import Cluster, KindNotServed, NotFound, NotStarted
from mockube.client.kubeconfig import read
from mockube.cluster_client import wait_for_pods
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from tests.support.processes.process import tls, token

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: nginx}]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {colour: blue}
"""
CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {app: %s}}}"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: unicorns.magic.example}
spec:
  group: magic.example
  scope: Namespaced
  names: {kind: Unicorn, plural: unicorns}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


def test_applied_objects_become_ready(cluster):
    applied = cluster.apply(MANIFESTS)
    assert [one["kind"] for one in applied] == ["Namespace", "Deployment", "ConfigMap"]
    assert applied[2]["metadata"]["namespace"] == "default"
    assert applied[2]["metadata"]["managedFields"][0]["operation"] == "Apply"
    ready = cluster.wait("Deployment", "web", "Available", namespace="shop")
    assert ready["status"]["observedGeneration"] == ready["metadata"]["generation"]


def test_file_is_applied_and_predicate_is_awaited(cluster, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: asked}, data: {colour: red}}")
    cluster.apply(file)
    configmap = cluster.wait("configmaps", "asked", lambda tree: tree["data"]["colour"] == "red")
    assert configmap["metadata"]["name"] == "asked"


def test_objects_are_read_listed_and_deleted(cluster):
    cluster.apply(
        "\n---\n".join(CONFIG_MAP % names for names in (("one", "x"), ("two", "x"), ("three", "z")))
    )
    assert cluster.get("ConfigMap", "one")["metadata"]["labels"] == {"app": "x"}
    assert [one["metadata"]["name"] for one in cluster.list("ConfigMap", labels="app=x")] == ["one", "two"]
    assert [one["metadata"]["name"] for one in cluster.list("nodes")] == ["node-1", "node-2"]
    assert len(cluster.list("ServiceAccount", namespace="")) > len(cluster.list("ServiceAccount"))
    cluster.delete("ConfigMap", "one")
    cluster.wait_gone("ConfigMap", "one")
    with pytest.raises(NotFound, match='configmaps "one" not found'):
        cluster.get("ConfigMap", "one")


def test_kind_defined_just_before_is_known(cluster):
    with pytest.raises(KindNotServed):
        cluster.list("Unicorn")
    cluster.apply(DEFINITION)
    cluster.wait("CustomResourceDefinition", "unicorns.magic.example", "Established")
    assert cluster.list("Unicorn") == []


def test_unknown_kind_or_namespace_is_named(cluster):
    with pytest.raises(KindNotServed, match=r'^the server doesn\'t have a resource type "Centaur\.magic"$'):
        cluster.wait("Centaur.magic", "one", "Ready")
    with pytest.raises(NotFound, match="nowhere"):
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}")


def test_kubeconfig_authenticates_and_is_private(cluster):
    assert token(cluster.kubeconfig)
    assert tls(cluster.kubeconfig).get_ca_certs()
    assert cluster.url in cluster.kubeconfig.read_text()
    assert cluster.kubeconfig.stat().st_mode & 0o077 == 0


def test_flags_are_passed_to_server():
    with Cluster(nodes=1, packs="", flags=["--etcd-prefix=/elsewhere"]) as cluster:
        with pytest.raises(KindNotServed):
            cluster.list("CloneSet")
        assert len(cluster.list("Node")) == 1


def test_manager_flags_are_passed_to_manager():
    with Cluster(nodes=2, manager_flags=["--controllers=*,-deployment-controller"]) as cluster:
        cluster.apply(MANIFESTS)
        cluster.advance(60)
        assert cluster.list("ReplicaSet", namespace="shop") == []
    with (
        pytest.raises(NotStarted, match='"teapot" is not in the list of known controllers'),
        Cluster(manager_flags=["--controllers=teapot"]),
    ):
        pass


def test_component_statuses_are_those_of_own_manager(cluster):
    conditions = {
        status["metadata"]["name"]: status["conditions"][0] for status in cluster.list("ComponentStatus")
    }
    healthy = {"type": "Healthy", "status": "True", "message": "ok"}
    assert conditions == {"controller-manager": healthy, "scheduler": healthy, "etcd-0": healthy}


def test_clusters_run_concurrently_and_isolated():
    def run_cluster(number):
        with Cluster(nodes=number) as cluster:
            cluster.apply(CONFIG_MAP % (f"own-{number}", "x"))
            everyone_has_begun.wait()
            named = {one["metadata"]["name"] for one in cluster.list("ConfigMap", labels="app")}
            return cluster.url, cluster.kubeconfig.read_text(), named, len(cluster.list("Node"))

    everyone_has_begun = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        urls, kubeconfigs, named, nodes = zip(*pool.map(run_cluster, (1, 2, 3)), strict=True)
    assert len({*urls}) == len({*kubeconfigs}) == 3
    assert named == ({"own-1"}, {"own-2"}, {"own-3"})
    assert nodes == (1, 2, 3)


async def test_cluster_in_event_loop_is_awaited_and_leaves_no_tasks():
    tasks = asyncio.all_tasks()
    async with Cluster(nodes=1) as cluster:
        folder = Path(cluster.kubeconfig).parent
        assert (await cluster.wait("Node", "node-1", "Ready"))["kind"] == "Node"
        await cluster.apply(CONFIG_MAP % ("a", "x"))
        assert len(await cluster.list("ConfigMap", labels="app=x")) == 1
        await cluster.delete("ConfigMap", "a")
        await cluster.wait_gone("ConfigMap", "a")
        with pytest.raises(NotFound):
            await cluster.get("ConfigMap", "a")
    assert not folder.exists()
    assert asyncio.all_tasks() == tasks


async def test_blocked_event_loop_does_not_block_cluster():
    async with Cluster(nodes=1) as cluster:
        assert _asked_by_another_process(cluster) == "200"


def _asked_by_another_process(cluster):
    authority = cluster.kubeconfig.parent / "ca.crt"
    answer = subprocess.run(
        [sys.executable, "-c", _ASK, cluster.url, str(authority)],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return answer.stdout.strip()


_ASK = """
import ssl, sys, urllib.request
url, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
print(urllib.request.urlopen(url + "/version", context=context).status)
"""


def test_stopped_cluster_leaves_no_files_and_no_process_state(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, frozen_count = _state_of_the_process(), gc.get_freeze_count()
    with Cluster(nodes=1) as cluster:
        during = _state_of_the_process()
        assert [*tmp_path.iterdir()] == [cluster.kubeconfig.parent]
    assert [*tmp_path.iterdir()] == []
    assert _state_of_the_process() == before
    assert gc.get_freeze_count() <= frozen_count
    own = dict.fromkeys(("threads", "loggers", "filters"))
    assert {**during, **own} == {**before, **own}
    with pytest.raises(NotStarted, match="the cluster was stopped"):
        cluster.get("Node", "node-1")


def _state_of_the_process():
    return {
        "threads": {*threading.enumerate()},
        "loggers": [
            logging.getLogger(name).handlers[:] for name in ("apiserver", "controller_manager", "etcd")
        ],
        "filters": logging.getLogger("asyncio").filters[:],
        "root": (logging.root.level, logging.root.handlers[:]),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "garbage": (gc.get_threshold(), gc.isenabled()),
        "loops": type(asyncio.get_event_loop_policy()),
        "streams": (sys.stdout, sys.stderr),
    }


def test_cluster_can_be_started_and_stopped_without_with():
    cluster = Cluster(nodes=1)
    assert repr(cluster) == "<mockube cluster not started>"
    with pytest.raises(NotStarted, match="with Cluster"):
        _ = cluster.url
    cluster.start()
    assert repr(cluster) == f"<mockube cluster {cluster.url}>"
    with pytest.raises(NotStarted, match="a Cluster can be started once"):
        cluster.start()
    cluster.stop()
    cluster.stop()
    assert repr(cluster) == "<mockube cluster stopped>"


def test_abandoned_cluster_leaves_nothing(tmp_path):
    program = "from mockube import Cluster; print(Cluster(nodes=1).start().kubeconfig.parent)"
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert [*tmp_path.iterdir()] == []


def test_cluster_without_nodes_runs_controllers():
    with Cluster(nodes=0) as cluster:
        assert cluster.list("Node") == []
        cluster.apply(MANIFESTS)
        cluster.wait("Deployment", "web", lambda it: it["status"].get("replicas") == 2, namespace="shop")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"packs": "unicorns"}, 'unknown pack "unicorns"', id="unknown pack"),
        pytest.param(
            {"flags": ["--secure-port", "1", "--bind-address", "192.0.2.1"]},
            "assign",
            id="unassignable address",
        ),
        pytest.param(
            {"flags": ["--evnt-ttl=5m"]},
            '^unrecognized arguments: --evnt-ttl=5m: did you mean "--event-ttl"',
            id="mistyped flag",
        ),
        pytest.param(
            {"manager_flags": ["--controlers=job"]},
            'did you mean "--controllers"',
            id="mistyped flag of the manager",
        ),
    ],
)
def test_invalid_options_are_reported(options, problem):
    with pytest.raises(NotStarted, match=problem), Cluster(**options):
        pass


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        pytest.param(-1, "nodes: -1 is negative", id="negative"),
        pytest.param(15_001, "nodes: at most 15000 nodes can have addresses", id="too many"),
        pytest.param("few", 'nodes: "few" is neither a number of nodes nor pools', id="text"),
        pytest.param([{"name": "a"}], r"nodes: pools\[0\]: there is no count", id="list"),
        pytest.param(b"3", "nodes: pools must be a list", id="bytes"),
        pytest.param(Path("none.yaml"), "nodes: none.yaml: No such file or directory", id="missing file"),
    ],
)
def test_invalid_nodes_are_refused(nodes, problem):
    with pytest.raises(ValueError, match=problem):
        Cluster(nodes=nodes)


def test_flags_of_other_types_are_refused():
    with pytest.raises(TypeError, match=r"flags must be a list of str, such as .*, not \[None\]"):
        Cluster(flags=[None])


async def test_cluster_that_does_not_become_ready_in_time_reports_what_is_missing(cluster):
    async with open_client(read(cluster.kubeconfig), RealClock()) as client:
        with pytest.raises(
            TimeoutError, match=r"^the cluster was not ready within 0\.2 s: \d of 9 nodes are ready; \d do"
        ):
            await wait_for_pods(client, 9, seconds=0.2)
        with (
            cluster.inject(verb="watch", resource="serviceaccounts", status=503),
            pytest.raises(
                TimeoutError, match="the ServiceAccount default in namespace default does not exist"
            ),
        ):
            await wait_for_pods(client, 1, seconds=0.2)
        with (
            cluster.inject(verb="watch", resource="configmaps", status=503),
            pytest.raises(
                TimeoutError, match=r"the ConfigMap kube-root-ca\.crt in namespace default does not exist"
            ),
        ):
            await wait_for_pods(client, 1, seconds=0.2)


async def test_objects_of_controllers_that_do_not_run_are_not_awaited(cluster):
    controllers = ["*", "-serviceaccount", "-root-ca-cert-publisher"]
    async with open_client(read(cluster.kubeconfig), RealClock()) as client:
        with cluster.inject(verb="watch", status=503, resource="serviceaccounts"):
            await wait_for_pods(client, 1, controllers=controllers, seconds=30)


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public"])
def test_new_cluster_has_what_pods_need_in_system_namespaces(namespace):
    with Cluster(nodes=0) as cluster:
        assert cluster.get("ServiceAccount", "default", namespace=namespace)
        assert cluster.get("ConfigMap", "kube-root-ca.crt", namespace=namespace)


def test_cluster_without_controllers_of_namespaces_becomes_ready():
    flags = ["--controllers=*,-serviceaccount,-root-ca-certificate-publisher-controller"]
    with Cluster(nodes=1, manager_flags=flags) as cluster:
        assert cluster.list("ServiceAccount", namespace="default") == []


def test_failed_start_reports_reason_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    threads = threading.enumerate()
    with pytest.raises(NotStarted, match=r"^unrecognized arguments: --bogus$"), Cluster(flags=["--bogus"]):
        pass
    assert [*tmp_path.iterdir()] == []
    assert threading.enumerate() == threads


def test_webhook_services_can_be_redirected():
    with Cluster(nodes=0, webhook_services={"default/hooks": "127.0.0.1:1"}) as cluster:
        cluster.apply("""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
  - name: hooks.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {namespace: default, name: hooks}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
""")
        with pytest.raises(Exception, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused"):
            cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}")
