"""Scenarios of a scheduler with extenders: `judges.differential.scheduling_extenders` records what a real kube-scheduler does.

In each, pods are created one after the other. Compared are what the extenders get, and what becomes of the pods: their node, or the
reason and the message of their condition and of their event.
"""

import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson

GPU = "example.com/gpu"
FILTER, SCORE, PREEMPT, BIND = (
    {"filterVerb": "filter"},
    {"prioritizeVerb": "prioritize", "weight": 1},
    {"preemptVerb": "preempt"},
    {"bindVerb": "bind"},
)
NAMES = {"nodeCacheCapable": True}
IGNORABLE = {"ignorable": True}
THREE = {"a": 4, "b": 4, "c": 4}
"""The CPUs of nodes by their names."""
LOW = {"low-a": ("a", 3), "low-b": ("b", 3)}
"""Running pods without priority: their nodes and CPUs."""
HIGH = {"high": {"cpu": 3, "priority": 10}}
TWO = {"a": 4, "b": 4}


def scenario(*extenders, nodes=THREE, running=(), pods=None, **answers):
    """`answers` are those of the extenders, by verb; with a number behind it, those of that extender."""
    return {
        "extenders": list(extenders),
        "nodes": nodes,
        "running": dict(running),
        "pods": pods or {"web": {}},
        "answers": answers,
    }


def accept(*names, failed=(), unresolvable=()):
    return {"accept": names, "failed": dict(failed), "unresolvable": dict(unresolvable)}


SCENARIOS = {
    "node is the best of those that pass": scenario(
        {**FILTER, **SCORE, **NAMES, "weight": 5},
        filter=accept("b", "c", failed={"a": "too hot"}),
        prioritize={"scores": {"b": 1, "c": 10}},
    ),
    "nodes are sent whole": scenario(
        {**FILTER, **SCORE, "weight": 5},
        filter=accept("b", "c", failed={"a": "too hot"}),
        prioritize={"scores": {"b": 1, "c": 10}},
    ),
    "scores do not count the pods of returned nodes": scenario(
        FILTER, nodes={"a": 8, "b": 4}, running={"low-a": ("a", 7)}, filter=accept("a", "b")
    ),
    "scores count the pods of named nodes": scenario(
        {**FILTER, **NAMES}, nodes={"a": 8, "b": 4}, running={"low-a": ("a", 7)}, filter=accept("a", "b")
    ),
    "weights are compared with those of plugins": scenario(
        SCORE, nodes={"a": 8, "b": 4}, prioritize={"scores": {"a": 0, "b": 1}}
    ),
    "scores of two extenders are added": scenario(
        {**SCORE, **NAMES},
        {**SCORE, **NAMES, "weight": 2},
        prioritize0={"scores": {"a": 9, "b": 0, "c": 4}},
        prioritize1={"scores": {"a": 0, "b": 2, "c": 7}},
    ),
    "one node is not scored": scenario(
        {**FILTER, **SCORE, **NAMES}, filter=accept("b"), prioritize={"status": 500}
    ),
    "failed scores are ignored": scenario(SCORE, nodes={"a": 8, "b": 4}, prioritize={"status": 500}),
    "broken scores are ignored": scenario(SCORE, nodes={"a": 8, "b": 4}, prioritize={"json": {"b": 10}}),
    "fraction as a score is ignored": scenario(
        SCORE, nodes={"a": 8, "b": 4}, prioritize={"json": [{"Host": "b", "Score": 1000.5}]}
    ),
    "no node passes": scenario(
        {**FILTER, **NAMES}, filter=accept(failed={"a": "too hot"}, unresolvable={"b": "no license"})
    ),
    "no node passes for no reason": scenario({**FILTER, **NAMES}, filter=accept()),
    "plugins reject some, the extender the others": scenario(
        FILTER,
        nodes={"a": 1, "b": 4, "c": 4},
        pods={"web": {"cpu": 2}},
        filter=accept(failed={"b": "too hot", "c": "too hot"}),
    ),
    "second extender gets what the first accepts": scenario(
        {**FILTER, **NAMES},
        FILTER,
        filter0=accept("b", "c", failed={"a": "too hot"}),
        filter1=accept("c", failed={"b": "too cold"}),
    ),
    "second extender gets nothing if the first accepts none": scenario(
        {**FILTER, **NAMES}, {**FILTER, **NAMES}, filter0=accept(failed={"a": "too hot"}), filter1=accept("c")
    ),
    "unresolvable counts before failed": scenario(
        {**FILTER, **NAMES}, filter=accept(failed={"a": "failed"}, unresolvable={"a": "unresolvable"})
    ),
    "error of a filter": scenario(FILTER, filter={"json": {"Error": "the shop is closed"}}),
    "status of a filter": scenario(FILTER, filter={"status": 503}),
    "other name than one of the request": scenario(
        {**FILTER, **NAMES}, filter={"json": {"NodeNames": ["a", "z"]}}
    ),
    "names without a cache of nodes": scenario(FILTER, filter={"json": {"NodeNames": ["a"]}}),
    "nodes with a cache of nodes": scenario(
        {**FILTER, **NAMES}, filter={"json": {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}}
    ),
    "other case of names": scenario(
        {**FILTER, **NAMES}, filter={"json": {"nodeNames": ["b"], "failednodes": {"a": "x"}, "ERROR": ""}}
    ),
    "no JSON": scenario(FILTER, filter={"text": "<html>"}),
    "empty body": scenario(FILTER, filter={"text": ""}),
    "null": scenario(FILTER, filter={"json": None}),
    "wrong type": scenario(FILTER, filter={"json": {"NodeNames": "a"}}),
    "wrong type of a reason": scenario(FILTER, filter={"json": {"FailedNodes": {"a": 1}}}),
    "array": scenario(FILTER, filter={"json": []}),
    "ignorable one comes last, and its error is ignored": scenario(
        {**FILTER, **NAMES, **IGNORABLE},
        {**FILTER, **NAMES},
        filter0={"status": 500},
        filter1=accept("b", failed={"a": "x", "c": "x"}),
    ),
    "ignorable one rejects nodes": scenario(
        {**FILTER, **NAMES, **IGNORABLE}, filter=accept(failed={"a": "x", "b": "x"})
    ),
    "pods without a managed resource are not sent": scenario(
        {
            **FILTER,
            **NAMES,
            "managedResources": [{"name": GPU, "ignoredByScheduler": True}, {"name": "example.com/tpu"}],
        },
        pods={"other": {}, "gpu": {"resource": GPU}, "tpu": {"resource": "example.com/tpu"}},
        filter=accept("b", failed={"a": "x", "c": "x"}),
    ),
    "nobody listens": scenario({**FILTER, "urlPrefix": "http://127.0.0.1:9"}),
    "response is late": scenario({**FILTER, "httpTimeout": "300ms"}, filter={"hang": True}),
    "victims by uid": scenario(
        {**PREEMPT, **NAMES}, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"b": ["low-b"]}}
    ),
    "victims whole": scenario(
        PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"b": ["low-b"]}}
    ),
    "no candidate is accepted": scenario(PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {}}),
    "failed preemption": scenario(PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"status": 500}),
    "ignorable failed preemption": scenario(
        {**PREEMPT, **IGNORABLE},
        nodes={"a": 4},
        running={"low-a": ("a", 3)},
        pods=HIGH,
        preempt={"status": 500},
    ),
    "candidate without victims": scenario(
        PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"b": []}}
    ),
    "ignorable candidate without victims": scenario(
        {**PREEMPT, **IGNORABLE}, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"b": []}}
    ),
    "victim of another node": scenario(
        PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"b": ["low-a"]}}
    ),
    "candidate of no node": scenario(
        PREEMPT, nodes=TWO, running=LOW, pods=HIGH, preempt={"victims": {"z": ["low-a"]}}
    ),
    "plugins accept what the extender rejects": scenario(
        {**FILTER, **NAMES},
        nodes={"a": 8},
        running={"low-a": ("a", 3)},
        pods=HIGH,
        filter=accept(failed={"a": "x"}),
    ),
    "one of them cannot be helped": scenario(
        {**FILTER, **NAMES},
        nodes={"a": 8, "b": 8},
        running=LOW,
        pods=HIGH,
        filter=accept(failed={"a": "x"}, unresolvable={"b": "x"}),
    ),
    "extender binds": scenario({**BIND, **NAMES}, nodes={"a": 4}, bind={"bind": True}),
    "extender fails to bind": scenario(BIND, nodes={"a": 4}, bind={"json": {"Error": "no bus"}}),
    "extender does not bind": scenario(BIND, nodes={"a": 4}, bind={"status": 500}),
    "default binder binds in place of an ignorable one": scenario(
        {**BIND, **IGNORABLE}, nodes={"a": 4}, bind={"status": 500}
    ),
}


# --- the extender


class ExtenderServer:
    """All extenders of a scenario: each has its number as a path. Records the requests."""

    def __init__(self, answers, api_url, ssl_context=None):
        self.requests = []
        self.uids = {}
        """The uids of pods by name."""
        self._answers = answers
        self._api_url = api_url
        self._ssl_context = ssl_context
        self._closed = threading.Event()

    def __enter__(self):
        extender = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                extender.requests.append((self.path, self.headers["Content-Type"], body))
                status, answer = extender.answer(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def configuration(self, scenario):
        """Return the extenders as a KubeSchedulerConfiguration has them."""
        return [
            {"urlPrefix": f"{self.url}/{number}/", **extender}
            for number, extender in enumerate(scenario["extenders"])
        ]

    def answer(self, path, body):
        _, number, verb = path.split("/")
        answer = self._answers.get(verb + number) or self._answers[verb]
        if "status" in answer:
            return answer["status"], b""
        if "text" in answer:
            return 200, answer["text"].encode()
        return 200, orjson.dumps(self._tree(answer, body))

    def _tree(self, answer, body):
        if "hang" in answer:
            self._closed.wait()
        if "bind" in answer:
            self._bind(body)
        if "scores" in answer:
            return [{"Host": name, "Score": score} for name, score in answer["scores"].items()]
        if "victims" in answer:
            return {
                "NodeNameToMetaVictims": {name: self._victims(v) for name, v in answer["victims"].items()}
            }
        if "accept" in answer:
            return _filtered(answer, body)
        return answer.get("json", {})

    def _victims(self, names):
        return {"Pods": [{"UID": self.uids[name]} for name in names], "NumPDBViolations": 0}

    def _bind(self, body):
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"kind": "Node", "name": body["Node"]},
        }
        url = f"{self._api_url}/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        request = urllib.request.Request(url, orjson.dumps(binding), headers)
        urllib.request.urlopen(request, context=self._ssl_context).close()


def _filtered(answer, body):
    failed = {"FailedNodes": answer["failed"], "FailedAndUnresolvableNodes": answer["unresolvable"]}
    if body["Nodes"] is None:
        return {"NodeNames": [name for name in body["NodeNames"] if name in answer["accept"]], **failed}
    items = [node for node in body["Nodes"]["items"] if node["metadata"]["name"] in answer["accept"]]
    return {"Nodes": {"items": items}, **failed}


# --- objects


def node_of(name, cpus):
    """Return a node and what it can allocate."""
    allocatable = {"cpu": str(cpus), "memory": "16Gi", "pods": "110", "example.com/tpu": "4"}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}, allocatable


def pod_of(name, cpu=None, priority=None, resource=None, node=None):
    requests = ({"cpu": str(cpu)} if cpu else {}) | ({resource: "1"} if resource else {})
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    spec |= {"priority": priority} if priority else {}
    return {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})}


# --- what is compared

_VOLATILE_FIELDS = ("uid", "UID", "PodUID", "resourceVersion", "creationTimestamp", "lastTransitionTime")
"""Fields whose values differ in each run; a uid is replaced by the name of its pod."""
_UNORDERED_FIELDS = ("NodeNames", "items")
"""Lists whose order differs in each run."""


def normalized(requests, uids):
    """Return the requests of first attempts without what differs in each run, and in one order.

    A real scheduler tries a pod again because of its own change of the pod's conditions.
    """
    names = {uid: name for name, uid in uids.items()}
    rows = [
        [path, content_type, _normal(body, names)]
        for path, content_type, body in requests
        if "conditions" not in body.get("Pod", {}).get("status", {})
    ]
    return sorted(rows, key=_sorted_json)


def _normal(value, names, key=""):
    if key in _VOLATILE_FIELDS:
        return f"({names.get(value, key)})"
    if isinstance(value, dict):
        return {name: _normal(one, names, name) for name, one in value.items() if name != "managedFields"}
    if isinstance(value, list):
        items = [_normal(one, names) for one in value]
        return sorted(items, key=_sorted_json) if key in _UNORDERED_FIELDS else items
    return value


def _sorted_json(value):
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def without_ports_and_uids(text, url, uids):
    """Return a message without what differs in each run."""
    for name, uid in uids.items():
        text = text.replace(uid, f"({name})")
    return text.replace(url, "(url)").replace(url.removeprefix("http://"), "(host)")


def outcome_of(pod):
    """Return what became of a pod; None if nothing yet."""
    if node := pod["spec"].get("nodeName"):
        return {"node": node}
    conditions = pod.get("status", {}).get("conditions", ())
    found = [one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
    if not found:
        return None
    nominated = pod["status"].get("nominatedNodeName", "")
    return {"reason": found[0]["reason"], "message": found[0]["message"], "nominated": nominated}
