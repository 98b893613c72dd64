"""Pods whose containers are processes: images, pods and their observed state."""

import itertools
import sys
from pathlib import Path

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.process.command import POD_VARIABLE
from tests.support.processes.acknowledged_writes import until

NAMES = map("process-{}".format, itertools.count())
RUN = [sys.executable, "-I", "-S", "-u", "-c"]
SERVE = """
import http.server, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ok = not os.path.isfile(os.environ["MOCKUBE_ROOT"] + "/tmp" + self.path)
        self.send_response(200 if ok else 500)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"served\\n")
    def log_message(self, *_):
        pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"])), Handler)
print("serving", flush=True)
server.serve_forever()
"""
IMAGES = {
    "example.org/python:*": {"command": RUN},
    "example.org/server": {"command": [*RUN, SERVE], "ports": {8080: 0}, "env": {"PYTHONUNBUFFERED": "1"}},
    "example.org/api": {"command": RUN, "ports": {8443: 0}},
    "example.org/shell": {"command": ["sh"], "args": ["-c", "read line; echo got $line; sleep 1000"]},
    "example.org/missing": {"command": ["no-such-program"]},
}


def python(script, **fields):
    return {"name": "c", "image": "example.org/python:3", "args": [script], **fields}


def create(pods, *containers, policy="Always", labels=None, **spec):
    name = next(NAMES)
    spec = {"containers": list(containers), "restartPolicy": policy, **spec}
    spec.setdefault("terminationGracePeriodSeconds", 5)
    pods.create_namespaced_pod("default", {"metadata": {"name": name, "labels": labels or {}}, "spec": spec})
    return name


def status_of(pod: ReadOnlyTree) -> ReadOnlyTree:
    return ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]


def is_over(pod):
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def events(cluster, name):
    return {
        (one["reason"], one["message"])
        for one in cluster.list("Event")
        if one["involvedObject"]["name"] == name
    }


def processes_of(uid):
    """Return the numbers that the processes of a pod have on this machine: in their own namespace they have others."""
    marker = f"{POD_VARIABLE}={uid}\0".encode()
    return {
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if marker in _text_of(path)
    }


def _text_of(path):
    try:
        return path.read_bytes()
    except OSError:  # It has ended.
        return b""


def assert_gone(process):
    """A process that nothing has waited for is a zombie, which also counts as ended."""
    path = Path(f"/proc/{process}/stat")
    until(lambda: not path.exists() or path.read_text().rpartition(") ")[2][0] == "Z", "the end of a process")
