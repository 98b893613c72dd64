"""`make podnetwork` runs servers of a real cluster in pods with networks of their own, and checks what they do there.

    python -m judges.podnetwork --only coredns

CoreDNS answers at the cluster's DNS address; CloudNativePG replicates a database over three pods, and fails over when that of its primary is
deleted. Both are built from their sources once, which takes minutes and needs Go. The database needs root and Debian's `postgresql`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support.pod_network import missing
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.commands import Mockube
from tests.support.processes.process import ROOT
from tools.needed import require_programs

HERE = Path(__file__).parent
BUILT = ROOT / "build" / "podnetwork"
COREDNS = "github.com/coredns/coredns@v1.12.4"
OPERATOR = "github.com/cloudnative-pg/cloudnative-pg@v1.27.0"
OPERATOR_MANIFEST = "releases/cnpg-1.27.0.yaml"
POSTGRES_USER = 26
"""The user of the operator's images of PostgreSQL."""
SECONDS = 120.0
DATABASE = {
    "apiVersion": "postgresql.cnpg.io/v1",
    "kind": "Cluster",
    "metadata": {"name": "db"},
    "spec": {"instances": 3, "imageName": "ghcr.io/cloudnative-pg/postgresql:15", "storage": {"size": "1Gi"}},
}


class Failure(Exception):
    """A check failed."""


class Kubectl:
    def __init__(self, kubeconfig: Path):
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *words: str, text: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            ["kubectl", *words],
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and not fails:
            raise Failure(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()


def check_coredns(folder: Path) -> None:
    program = BUILT / "coredns"
    if not program.exists():
        go("install", COREDNS, GOBIN=str(BUILT))
    images = {
        "registry.k8s.io/coredns/coredns:*": {
            "entrypoint": ["/coredns"],
            "files": {"/coredns": str(program)},
        },
        "example.org/tools:*": {},
    }
    with cluster(folder, images) as kubectl:
        kubectl("apply", "-f", str(HERE / "coredns.yaml"))
        kubectl("-n", "kube-system", "rollout", "status", "deployment", "coredns", "--timeout=60s")
        kubectl("run", "tools", "--image=example.org/tools:1", "--", "sleep", "1000")
        kubectl("wait", "--for=condition=Ready", "pod/tools", "--timeout=30s")
        names = kubectl("exec", "tools", "--", "getent", "hosts", "kubernetes.default", "only.coredns.knows")
        expect("kubernetes.default.svc.cluster.local" in names and "1.2.3.4" in names, names)
        kubectl("-n", "kube-system", "scale", "deployment", "coredns", "--replicas=0")
        until(
            lambda: not kubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "name"),
            "the end of CoreDNS",
            seconds=SECONDS,
        )
        lookup = ("exec", "tools", "--", "timeout", "5", "getent", "hosts", "kubernetes.default")
        expect(not kubectl(*lookup, fails=True), "names resolve without CoreDNS")


def check_database(folder: Path) -> None:
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if binaries is None or os.geteuid() != 0:
        raise Failure("needs root and Debian's postgresql: apt-get install postgresql")
    source, program = build_operator()
    users = folder / "passwd"
    users.write_text(f"{Path('/etc/passwd').read_text()}pod:x:{POSTGRES_USER}:{POSTGRES_USER}::/:/bin/sh\n")
    users.chmod(0o644)
    operator = {"/manager": str(program), "/operator/manager_amd64": str(program)}
    images = {
        "ghcr.io/cloudnative-pg/cloudnative-pg:*": {
            "entrypoint": ["/manager"],
            "directory": "/",
            "files": operator,
        },
        "ghcr.io/cloudnative-pg/postgresql:*": {
            "directory": "/",
            "env": {"PATH": f"{binaries}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            "files": {"/etc/passwd": str(users)},
        },
    }
    with cluster(folder, images) as kubectl:
        kubectl("apply", "--server-side", "-f", str(source / OPERATOR_MANIFEST))
        kubectl(
            "-n", "cnpg-system", "rollout", "status", "deployment", "cnpg-controller-manager", "--timeout=60s"
        )

        def field(name: str) -> str:
            return kubectl("get", "cluster", "db", "-o", f"jsonpath={{.status.{name}}}")

        def sql(pod: str, text: str) -> str:
            command = ("psql", "-h", "/controller/run", "-U", "postgres", "-Atc", text)
            return kubectl("exec", pod, "-c", "postgres", "--", *command, fails=True)

        until(
            lambda: kubectl("apply", "-f", "-", text=json.dumps(DATABASE), fails=True),
            "the operator's webhook",
            seconds=SECONDS,
        )
        until(lambda: field("readyInstances") == "3", "three instances", seconds=SECONDS)
        primary = field("currentPrimary")
        sql(primary, "create table t (x int); insert into t values (42)")
        kubectl("delete", "pod", primary, "--grace-period=0", "--force")
        until(lambda: field("currentPrimary") not in ("", primary), "another primary", seconds=SECONDS)
        successor = field("currentPrimary")
        until(
            lambda: sql(successor, "select x from t where not pg_is_in_recovery()") == "42",
            "the row in the successor",
            seconds=SECONDS,
        )
        until(lambda: field("readyInstances") == "3", "three instances again", seconds=SECONDS)


def build_operator() -> tuple[Path, Path]:
    """Return the operator's sources and its program."""
    module = json.loads(go("mod", "download", "-json", OPERATOR))
    program = BUILT / "manager"
    if not program.exists():
        with tempfile.TemporaryDirectory() as text:
            sources = Path(text) / "operator"
            shutil.copytree(module["Dir"], sources)
            subprocess.run(["chmod", "-R", "u+w", sources], check=True)
            go("build", "-o", str(program), "./cmd/manager", folder=sources)
    return Path(module["Dir"]), program


CHECKS: Mapping[str, Callable[[Path], None]] = {"coredns": check_coredns, "cloudnative-pg": check_database}


@contextmanager
def cluster(folder: Path, images: Mapping[str, object]) -> Iterator[Kubectl]:
    """Start a cluster on a free port whose pods have networks of their own."""
    path = folder / "images.yaml"
    path.write_text(yaml.safe_dump({"images": dict(images)}))
    mockube = Mockube(folder)
    flags = ("--container-runtime=process", "--pod-network=namespaces", f"--images={path}")
    try:
        done = mockube.run("up", "--detach", "--name=podnetwork", "--secure-port=0", *flags)
        if done.returncode:
            raise Failure(done.stderr)
        yield Kubectl(mockube.folder("podnetwork").kubeconfig)
    finally:
        mockube.run("down", "--name=podnetwork")
        mockube.close()


def go(*words: str, folder: Path | None = None, **environment: str) -> str:
    require_programs("go")
    done = subprocess.run(
        ["go", *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def expect(condition: object, found: str) -> None:
    if not condition:
        raise Failure(found)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m judges.podnetwork", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", choices=CHECKS, help="run one of the checks")
    options = parser.parse_args()
    if problem := missing():
        sys.exit(f"this machine gives pods no networks of their own: {problem}")
    BUILT.mkdir(parents=True, exist_ok=True)
    failed = False
    for name, check in CHECKS.items():
        if options.only in (None, name):
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="mockube-podnetwork-") as text:
                Path(text).chmod(0o755)
                try:
                    check(Path(text))
                    result = "ok  "
                except (Failure, AssertionError) as failure:
                    failed, result = True, "FAIL"
                    print(failure)
            print(f"{result} {time.monotonic() - started:6.1f}s {name}", flush=True)
    return int(failed)


if __name__ == "__main__":
    os.nice(10)
    sys.exit(main())
