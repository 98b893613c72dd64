"""Continuous writes while parts of a control plane fail, and a check that no acknowledged write is lost.

Each writer creates ConfigMaps, one after the other, and then updates each. A write without a response
is repeated, at the next server, until it has one.
"""

import http.client
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

from tests.support.processes.process import tls

MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
WRITERS = 4
MAX_WRITES = 20_000
"""The maximum number of objects of one writer, which stops then."""
PAUSE = 0.05
"""Seconds after which a request without response, or an unmet condition, is tried again."""
WAIT_TIMEOUT = 60.0
ANSWER_TIMEOUT = 5.0


def until(holds: Callable[[], object], condition: str, *, seconds: float = WAIT_TIMEOUT) -> None:
    """Wait until the condition holds."""
    again = threading.Event()
    for _ in range(int(seconds / PAUSE)):
        if holds():
            return
        again.wait(PAUSE)
    raise AssertionError(f"{condition}: not within {seconds} s")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict


class RequestSender:
    """Sends requests to whichever server answers, as an administrator."""

    def __init__(self, kubeconfig, urls: Sequence[str]):
        self._tls = tls(kubeconfig)
        self._hosts = [urlsplit(url).netloc for url in urls]
        self._connection = None

    def send_request(self, method, path, body=None) -> Answer | None:
        """Return the response; None if there is none, and then the next request goes to another server."""
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._hosts[0], timeout=ANSWER_TIMEOUT, context=self._tls
            )
        try:
            content = None if body is None else orjson.dumps(body)
            self._connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            return Answer(answer.status, orjson.loads(answer.read()))
        except (OSError, http.client.HTTPException, orjson.JSONDecodeError):
            self.close()
            self._hosts.append(self._hosts.pop(0))
            return None

    def get(self, path):
        """Repeat until a server returns the objects."""
        found = []

        def has_answer():
            answer = self.send_request("GET", path)
            found.append(answer)
            return answer is not None and answer.status == 200

        until(has_answer, f"an answer to GET {path}")
        return found[-1].body

    def leader(self):
        """Return the holder of the managers' lease."""
        return self.get(LEASE)["spec"].get("holderIdentity")

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Load:
    """Run writers for a block. `check` verifies that all acknowledged writes are stored."""

    def __init__(self, kubeconfig, urls, prefix="load"):
        self._prefix = prefix
        self._stopping = threading.Event()
        self._condition = threading.Condition()
        self._acknowledged: dict[str, str] = {}
        """The last acknowledged state of each object, by name."""
        self._count = 0
        self._refused: list[Answer] = []
        self._request_senders = [RequestSender(kubeconfig, urls) for _ in range(WRITERS)]
        self._threads = [
            threading.Thread(target=self._write, args=(number, request_sender), daemon=True)
            for number, request_sender in enumerate(self._request_senders)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for request_sender in self._request_senders:
            request_sender.close()

    def wait_acknowledged(self, more=100):
        """Wait for this many more acknowledged writes, counted from the call."""
        with self._condition:
            enough = self._count + more
            assert self._condition.wait_for(lambda: self._count >= enough or self._refused, WAIT_TIMEOUT), (
                f"{self._count} writes acknowledged where {enough} were waited for"
            )
        assert self._refused == []

    def check(self, request_sender):
        """Check that no acknowledged write is lost. Return their number."""
        items = request_sender.get(MAPS)["items"]
        there = {item["metadata"]["name"]: item.get("data", {}).get("state") for item in items}
        lost = {
            name: state
            for name, state in self._acknowledged.items()
            if there.get(name) not in (state, "done")
        }
        assert lost == {}
        assert self._refused == []
        return self._count

    def _write(self, number, request_sender):
        for n in range(MAX_WRITES):
            name = f"{self._prefix}-{number}-{n}"
            config_map = {"metadata": {"name": name}, "data": {"state": "made"}}
            self._until_acknowledged(request_sender, "POST", MAPS, config_map)
            done = {"metadata": {"name": name}, "data": {"state": "done"}}
            self._until_acknowledged(request_sender, "PUT", f"{MAPS}/{name}", done)
            if self._stopping.is_set():
                return

    def _until_acknowledged(self, request_sender, method, path, body):
        while not self._stopping.is_set():
            answer = request_sender.send_request(method, path, body)
            if answer is not None and self._settles(method, answer, body):
                return
            self._stopping.wait(PAUSE)

    def _settles(self, method, answer, body):
        """Return whether the write need not be repeated. An object that exists was created by a request without answer."""
        is_written = answer.status in (200, 201) or (method == "POST" and answer.status == 409)
        with self._condition:
            if is_written:
                self._acknowledged[body["metadata"]["name"]] = body["data"]["state"]
                self._count += 1
            elif answer.status < 500 and answer.status != 429:
                self._refused.append(answer)
            self._condition.notify_all()
        return is_written
