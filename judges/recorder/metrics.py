"""Record the metric families of real components, as `tests/conformance/test_metric_families.py` compares them.

    python -m judges.recorder.metrics

The components are started from the folder that MOCKUBE_REAL_KUBERNETES names, and simulated nodes run the pods of a
workload. Stored are the type, the stability, the labels and the buckets of each family, without values.
"""

import http.client
import ssl
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import orjson

from judges.recorder.control_plane import wait_served
from tests.support.processes.process import ManagerProcess
from tests.support.processes.real_kubernetes import (
    RealApiServer,
    RealManager,
    RealScheduler,
    require_folder,
    write_kubeconfig,
)
from tests.support.recorded.metric_families import RECORDED, read_families
from tests.support.recorded.recordings import FOLDER
from tests.support.stores.etcd_server import QUICK, EtcdServer, free_port

WORKLOAD = Path(__file__).parent / "metrics_workload.yaml"
ONLY_KUBELETS = "--controllers=-*,simulated-kubelets,simulated-nodes,simulated-pods"


def main() -> None:
    require_folder()
    with tempfile.TemporaryDirectory(prefix="mockube-recorder-") as name, ExitStack() as stack:
        folder = Path(name)
        etcd = stack.enter_context(EtcdServer(options=QUICK))
        tokens = FOLDER / "tokens.csv"
        server = stack.enter_context(
            RealApiServer(folder, etcd, tokens=tokens, flags=("--allow-privileged",))
        )
        token = tokens.read_text().partition(",")[0]
        wait_served(server, token)
        kubeconfig = write_kubeconfig(folder / "admin", server.url, server.authority, token)
        ports = {"kube-apiserver": int(server.url.rpartition(":")[2])}
        for component in (RealManager, RealScheduler):
            home = folder / component.NAME
            home.mkdir()
            ports[component.NAME] = port = free_port()
            flags = (
                f"--secure-port={port}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"--cert-dir={home}",
            )
            stack.enter_context(
                component(home, kubeconfig, flags)
                if component is RealManager
                else component(kubeconfig, *flags)
            )
        stack.enter_context(
            ManagerProcess(kubeconfig, "--leader-elect=false", "--simulate-nodes=3", ONLY_KUBELETS)
        )
        _run_workload(kubeconfig)
        recorded = {name: read_families(_scrape(port, token)) for name, port in ports.items()}
        RECORDED.write_bytes(
            orjson.dumps(recorded, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"
        )


def _run_workload(kubeconfig: Path) -> None:
    """Create objects that are scheduled, one that is not, and requests of every verb."""

    def kubectl(*arguments: str, check: bool = True) -> None:
        subprocess.run(["kubectl", f"--kubeconfig={kubeconfig}", *arguments], check=check)

    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    kubectl("apply", "--filename", str(WORKLOAD))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("wait", "--for=condition=complete", "job/sum", "--timeout=60s", check=False)
    kubectl("scale", "deployment/web", "--replicas=1")
    kubectl("delete", "pod", "--selector=app=web", "--wait=false")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(WORKLOAD))
    kubectl("get", "pods", "--output=yaml", "--namespace=nowhere", check=False)
    kubectl("auth", "can-i", "list", "pods", "--as=someone", check=False)
    kubectl("delete", "configmap", "--all")


def _scrape(port: int, token: str) -> str:
    connection = http.client.HTTPSConnection(f"127.0.0.1:{port}", context=ssl._create_unverified_context())
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200, text
    return text


if __name__ == "__main__":
    main()
