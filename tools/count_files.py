"""Count the files of this repository whose functions run for one thing: how many a reader would have to open.

    python -m tools.count_files pod          the API server creates a Pod, for the second time
    python -m tools.count_files deployment   the controller manager reconciles a new Deployment, and runs no other controller
    python -m tools.count_files up           `mockube up`, until it is ready

Each runs in a process of its own that is traced between two signals. What only an import runs does not count.
"""

import contextlib
import json
import os
import runpy
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tools.packages import CODE, ROOT

PATIENCE: Final = 60.0
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "p-", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]},
}
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"generateName": "d-"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": POD["spec"]},
    },
}


def trace_module(out: Path, module: str, *, at_once: bool) -> None:
    """Run a module; write the files that ran between SIGUSR1 (or the start) and SIGUSR2."""
    seen: set[str] = set()
    imports = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal imports
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and not _is_resumed(frame):
            seen.add(frame.f_code.co_filename)

    def start(*_: object) -> None:
        sys.setprofile(note)

    def stop(*_: object) -> None:
        sys.setprofile(None)
        files = {Path(name).resolve() for name in seen}
        partial = out.with_suffix(".partial")
        partial.write_text("\n".join(sorted(str(file) for file in files if _is_ours(file))))
        partial.rename(out)  # the reader waits for this name

    signal.signal(signal.SIGUSR1, start)
    signal.signal(signal.SIGUSR2, stop)
    if at_once:
        start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _is_resumed(frame: FrameType) -> bool:
    """Whether a coroutine goes on that was called before, such as a background task."""
    return frame.f_code.co_code[frame.f_lasti + 1] != 0


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in CODE


@contextlib.contextmanager
def process(out: Path, module: str, *flags: str, at_once: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-m",
        "tools.count_files",
        "--trace",
        str(out),
        str(int(at_once)),
        module,
        *flags,
    ]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def wait(holds: Callable[[], bool], condition: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"gave up waiting for {condition}")
        time.sleep(0.05)


class Server:
    """A server's process and requests to it."""

    def __init__(self, folder: Path, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self._url = "https://127.0.0.1:7443"
        self._context = ssl._create_unverified_context()  # noqa: SLF001 - our own server, started just now
        self._token = (folder / "tokens.csv").read_text().partition(",")[0]
        wait(self._is_ready, "the server")

    def send(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data=data, headers=headers)
        with urllib.request.urlopen(request, context=self._context) as answer:
            return answer.read()

    def _is_ready(self) -> bool:
        try:
            self.send("/readyz")
        except (OSError, urllib.error.URLError):
            return False
        return True


@contextlib.contextmanager
def server(folder: Path, out: Path) -> Iterator[Server]:
    (folder / "tokens.csv").write_text('secret,admin,1,"system:masters"\n')
    flags = ["--secure-port=7443", f"--cert-dir={folder}/pki", f"--token-auth-file={folder}/tokens.csv"]
    with process(out, "mockube.apiserver", *flags, f"--write-kubeconfig={folder}/kubeconfig") as child:
        yield Server(folder, child)


def recorded_files(child: subprocess.Popen[bytes], out: Path) -> list[str]:
    os.kill(child.pid, signal.SIGUSR2)
    wait(out.exists, "the record")
    return out.read_text().splitlines()


def pod(folder: Path, out: Path) -> list[str]:
    with server(folder, out) as api:
        api.send("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        api.send("/api/v1/namespaces/default/pods", POD)
        os.kill(api.child.pid, signal.SIGUSR1)
        api.send("/api/v1/namespaces/default/pods", POD)
        return recorded_files(api.child, out)


def deployment(folder: Path, out: Path) -> list[str]:
    with server(folder, folder / "unused") as api:
        flags = [f"--kubeconfig={folder}/kubeconfig", "--controllers=deployment-controller"]
        with process(
            out, "mockube.controller_manager", *flags, "--leader-elect=false", "--secure-port=0"
        ) as manager:
            api.send("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
            wait(lambda: _sets(api) >= 1, "a ReplicaSet")
            os.kill(manager.pid, signal.SIGUSR1)
            api.send("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
            wait(lambda: _sets(api) >= 2, "a second ReplicaSet")
            return recorded_files(manager, out)


def _sets(api: Server) -> int:
    return len(json.loads(api.send("/apis/apps/v1/namespaces/default/replicasets"))["items"])


def files_of_up(folder: Path, out: Path) -> list[str]:
    kubeconfig = folder / "kubeconfig"
    flags = [
        "up",
        "--name=count-files",
        "--simulate-nodes=1",
        f"--write-kubeconfig={kubeconfig}",
        "--secure-port=7444",
    ]
    with process(out, "mockube", *flags, at_once=True) as child:
        assert child.stdout is not None
        if not any(b"Ctrl+C" in line for line in child.stdout):
            raise SystemExit("mockube up ended before it was ready")
        return recorded_files(child, out)


def main() -> None:
    if sys.argv[1:2] == ["--trace"]:
        out, at_once, module = sys.argv[2:5]
        sys.argv = [module, *sys.argv[5:]]
        trace_module(Path(out), module, at_once=at_once == "1")
        return
    counted = {"pod": pod, "deployment": deployment, "up": files_of_up}
    for name in sys.argv[1:] or counted:
        with tempfile.TemporaryDirectory() as folder:
            files = counted[name](Path(folder), Path(folder) / "files")
        print(f"{name}: {len(files)} files")
        for file in files:
            print(f"  {Path(file).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
