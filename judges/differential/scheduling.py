"""`make scheduling-differential`: compare the decisions of our scheduler with those of a real kube-scheduler.

    python -m judges.differential.scheduling --rounds 50 --seed 7

A real kube-scheduler schedules random pods on random nodes. After each of its attempts, our functions decide
on the same state. Compared are the scores of every plugin for every node, the chosen node, the message of a pod that is not
schedulable, and the node and the victims of a preemption. MOCKUBE_REAL_KUBERNETES is the folder with a kube-apiserver and a kube-scheduler.
"""

import argparse
import contextlib
import json
import re
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from random import Random

from judges.differential import scheduling_cases, scheduling_devices, scheduling_sizes, scheduling_volumes
from mockube.apimachinery.schema import minors
from mockube.client.component_helpers.device_claims import FINALIZER
from tests.conformance.golden import golden
from tests.support.controllers.scheduler_profiles import CONFIGURATIONS, names_of, tree_of
from tests.support.controllers.scheduling_decisions import (
    differences,
    extended_claim,
    number_of,
    recorded,
    with_changes,
    without_time,
)
from tests.support.processes.real_kubernetes import (
    RealApiServer,
    RealScheduler,
    require_folder,
    write_kubeconfig,
)
from tests.support.stores.etcd_server import EtcdServer

PATHS = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "pods": "/api/v1/pods",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "services": "/api/v1/services",
    "replicasets": "/apis/apps/v1/replicasets",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "csinodes": "/apis/storage.k8s.io/v1/csinodes",
    "csidrivers": "/apis/storage.k8s.io/v1/csidrivers",
    "csistoragecapacities": "/apis/storage.k8s.io/v1/csistoragecapacities",
    "volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "deviceclasses": "/apis/resource.k8s.io/v1/deviceclasses",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
}
CLUSTER_SCOPED = {
    "nodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "volumeattachments",
    "deviceclasses",
    "resourceslices",
}
ADMISSION = "ServiceAccount,TaintNodesByCondition,Priority,StorageObjectInUseProtection,DefaultStorageClass"
_PAIR = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')


def main():
    options = _options()
    require_folder()
    with tempfile.TemporaryDirectory(prefix="mockube-scheduling-") as folder, contextlib.ExitStack() as stack:
        comparison = Comparison(stack, Path(folder), options.minor, options.configuration)
        for number in range(options.seed, options.seed + options.rounds):
            comparison.round(number, options.pods, has_devices=options.devices, has_sizes=options.sizes)
        comparison.print_summary()
        if options.record:
            comparison.write_recorded(Path(options.record))
        return int(comparison.differences > options.maximum)


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.differential.scheduling")
    parser.add_argument("--rounds", type=int, default=20, help="the number of random clusters")
    parser.add_argument("--pods", type=int, default=15, help="the number of pods in each cluster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--devices", action="store_true", help="with claims for devices and extended resources"
    )
    parser.add_argument("--sizes", action="store_true", help="with resources of pods themselves, and resizes")
    parser.add_argument(
        "--configuration", choices=CONFIGURATIONS, default="", help="with profiles of this configuration"
    )
    parser.add_argument("--minor", default=minors.NEWEST, help="the minor release of the real kube-scheduler")
    parser.add_argument("--maximum", type=int, default=0, help="the number of differences that do not fail")
    parser.add_argument("--record", help="the file for cases with new reasons or scores")
    return parser.parse_args()


class Comparison:
    def __init__(self, stack, folder, minor, configuration):
        self._minor = minor
        self._configuration = configuration
        self._recorded = []
        self._signatures = set()
        etcd = stack.enter_context(EtcdServer())
        server = RealApiServer(folder, etcd, flags=(f"--disable-admission-plugins={ADMISSION}",))
        stack.enter_context(server)
        self._server = golden.Server(server.url, "admin")
        while self._server.send({"method": "GET", "path": "/readyz"})["status"] != 200:
            pass
        other = {"metadata": {"name": scheduling_cases.OTHER_NAMESPACE, "labels": {"team": "a"}}}
        self._server.send({"method": "POST", "path": PATHS["namespaces"], "body": other})
        user = "system:kube-scheduler"
        kubeconfig = write_kubeconfig(folder / "scheduler", server.url, server.authority, user)
        flags = ["-v=2", "--vmodule=schedule_one=10"]
        if configuration:
            tree = {
                **tree_of(CONFIGURATIONS[configuration]),
                "clientConnection": {"kubeconfig": str(kubeconfig)},
            }
            file = folder / "scheduler.yaml"
            file.write_text(json.dumps(tree))
            flags.append(f"--config={file}")
        self._scheduler = stack.enter_context(RealScheduler(kubeconfig, *flags))
        self._counts = Counter()
        self._examples = {}

        closed = threading.Event()
        binder = scheduling_volumes.ClaimBinder(self._server, PATHS, closed)
        thread = threading.Thread(target=binder.run)
        stack.callback(thread.join)
        stack.callback(closed.set)
        thread.start()

    @property
    def differences(self):
        return sum(count for name, count in self._counts.items() if name.startswith("DIFFERENT"))

    def round(self, seed, pods, *, has_devices=False, has_sizes=False):
        random = Random(seed)
        self._seed = seed
        self._delete_all()
        for name, body, status in scheduling_cases.cluster(random):
            if name == "pods" and has_sizes:
                scheduling_sizes.add_to_pod(random, body)
                self.create(name, body, scheduling_sizes.status_of(random, body, status))
            else:
                self.create(name, body, status)
        nodes = [node["metadata"]["name"] for node in self._send("GET", PATHS["nodes"])["items"]]
        for name, body in scheduling_devices.cluster(random, nodes) if has_devices else ():
            self.create(name, body)
        for number in range(pods):
            extra, body = scheduling_cases.pod(random, f"fresh-{number}")
            if self._configuration:
                body["spec"]["schedulerName"] = random.choice(names_of(self._configuration))
            if has_sizes:
                scheduling_sizes.add_to_pod(random, body)
            if has_devices:
                extra += scheduling_devices.add_to_pod(random, body)
            self._compare(extra, body)

    def create(self, resource, body, status=None):
        path = self._path(resource, body["metadata"].get("namespace", "default"))
        answer = self._send("POST", path, body)
        if status is not None and answer is not None:
            merged = {**answer, "status": {**answer.get("status", {}), **status}}
            answer = self._send("PUT", f"{path}/{body['metadata']['name']}/status", merged)
        return answer

    def _path(self, resource, namespace):
        if resource in CLUSTER_SCOPED:
            return PATHS[resource]
        prefix, _, plural = PATHS[resource].rpartition("/")
        return f"{prefix}/namespaces/{namespace}/{plural}"

    def _send(self, method, path, body=None, accepted=(200, 201)):
        answer = self._server.send({"method": method, "path": path, "body": body})
        if answer["status"] not in accepted:
            self._count("refused request", f"{method} {path}: {answer['body'].get('message')}")
            return None
        return answer["body"]

    def _delete_all(self):
        for resource, collection in PATHS.items():
            for item in self._send("GET", collection)["items"]:
                name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
                if resource == "namespaces" or name == "kubernetes":
                    continue
                body = {"gracePeriodSeconds": 0}
                path = f"{self._path(resource, namespace)}/{name}"
                if resource == "resourceclaims" and "finalizers" in item["metadata"]:
                    free = {**item, "metadata": {**item["metadata"], "finalizers": []}}
                    self._send("PUT", path, free, accepted=(200, 404, 409))
                self._send("DELETE", path, body, accepted=(200, 202, 404, 409))

    def _state(self):
        return {resource: self._send("GET", path)["items"] for resource, path in PATHS.items()}

    def _compare(self, extra, body):
        for name, obj, status in extra:
            self.create(name, obj, status)
        self._start = start = len(self._scheduler.log)
        if "schedulingGates" in body["spec"]:
            state, created = self._with_stale_claim(body)
        else:
            state = self._state()
            created = self.create("pods", body)
        if created is None:
            return
        name = f"{created['metadata']['namespace']}/{created['metadata']['name']}"
        attempt = self._wait_for_attempt(start, name, state)
        if "bound" in attempt and state["deviceclasses"]:
            attempt["devices"] = self._devices_of(created)
        if self._preempts(name):
            attempt["victims"] = self._wait_for_victims(created)
        case = recorded(self._minor, state, created, attempt, self._configuration)
        self._judge(case, created)
        if "bound" in attempt:
            self._started(created)
            return
        path = f"{self._path('pods', created['metadata']['namespace'])}/{created['metadata']['name']}"
        if "victims" not in attempt or "nodeName" not in self._send("GET", path)["spec"]:
            self._send("DELETE", path, {"gracePeriodSeconds": 0})

    def _with_stale_claim(self, body):
        """Create a pod that has a claim for extended resources already, and return the state before its attempt."""
        created = self.create("pods", body)
        if created is None:
            return {}, None
        self.create("resourceclaims", scheduling_devices.stale_claim(created))
        state = self._state()
        path = f"{self._path('pods', created['metadata']['namespace'])}/{created['metadata']['name']}"
        patch, headers = {"spec": {"schedulingGates": None}}, {"Content-Type": "application/merge-patch+json"}
        answer = self._server.send({"method": "PATCH", "path": path, "body": patch, "headers": headers})
        return state, answer["body"]

    def _devices_of(self, pod):
        """Return the allocations of the claims of a bound pod, with the claim for its extended resources."""
        metadata = pod["metadata"]
        path = self._path("resourceclaims", metadata["namespace"])
        claims = {claim["metadata"]["name"]: claim for claim in self._send("GET", path)["items"]}
        names = {one["resourceClaimName"] for one in pod["spec"].get("resourceClaims", ())}
        found = {name: claim for name, claim in claims.items() if name in names}
        pod_path = f"{self._path('pods', metadata['namespace'])}/{metadata['name']}"
        status = self._send("GET", pod_path)["status"].get("extendedResourceClaimStatus")
        if status is not None:
            found[""] = claims[status["resourceClaimName"]]
        if not found:
            return None
        for claim in found.values():
            uids = [one["uid"] for one in claim["status"]["reservedFor"]]
            self._same("reservation", [metadata["uid"]], [uid for uid in uids if uid == metadata["uid"]], pod)
            self._same("finalizer", claim["metadata"]["finalizers"], [FINALIZER], pod)
        return {
            "allocations": {
                name: without_time(claim["status"]["allocation"]) for name, claim in found.items()
            },
            "claim": extended_claim(found[""]) if "" in found else None,
            "mappings": status["requestMappings"] if status else [],
        }

    def _started(self, pod):
        """Give a pod a start time, by which victims of preemptions are chosen."""
        path = f"{self._path('pods', pod['metadata']['namespace'])}/{pod['metadata']['name']}/status"
        number = number_of(pod)[1]
        patch = {"status": {"startTime": f"2026-01-01T01:{number // 60:02}:{number % 60:02}Z"}}
        headers = {"Content-Type": "application/merge-patch+json"}
        self._server.send({"method": "PATCH", "path": path, "body": patch, "headers": headers})

    def _preempts(self, name):
        words = f'"the target node for the preemption is determined" pod="{name}"'
        return any(words in line for line in self._scheduler.log[self._start :])

    def _judge(self, case, pod):
        for what, ours, real in differences(case):
            self._same(what, ours, real, pod)
        signature = self._signature(case["real"])
        if signature not in self._signatures:
            self._signatures.add(signature)
            self._recorded.append(case)

    def _signature(self, real):
        """Return what makes a case worth to be recorded: the reasons, the plugins that score nodes differently, or the devices."""
        if "message" in real:
            return re.sub(r"\d+|[a-z-]+-\d+", "", real["message"])
        devices = real.get("devices") or {"allocations": {}, "mappings": []}
        return (
            *sorted(name for name, scores in real["scores"].items() if len({*scores.values()}) > 1),
            len(devices["allocations"]),
            *sorted(Counter(mapping["requestName"] for mapping in devices["mappings"]).values()),
        )

    def _wait_for_attempt(self, start, name, state):
        """Return the first attempt of a pod for which the caches of the real scheduler had the state.

        They are filled by a watch for each resource: a pod may arrive before a claim that was created before it.
        """
        existing = {
            f'{kind} "{one["metadata"]["name"]}" not found'
            for kind in ("persistentvolumeclaim", "persistentvolume")
            for one in state[f"{kind}s"]
        }
        done = re.compile(
            r'"(Unable to schedule pod[^"]*|Successfully bound pod to node|Error scheduling pod; retrying)"'
        )
        scheduler, position, scores = self._scheduler, start, {}
        while True:
            lines = scheduler.lines_after(position)
            if not lines:
                raise SystemExit(f"no decision on {name}")
            position += len(lines)
            for line in lines:
                pairs = {m[1]: (m[2] if m[3] is None else m[3]) for m in _PAIR.finditer(line)}
                if pairs.get("pod") != name:
                    continue
                if '"Plugin scored node for pod"' in line:
                    scores.setdefault(pairs["plugin"], {})[pairs["node"]] = int(pairs["score"])
                if match := done.search(line):
                    if "node" in pairs:
                        return {"bound": pairs["node"], "scores": scores}
                    message = pairs.get("err", "").replace('\\"', '"').replace("\\\\", "\\")
                    if "no nodes are registered" in match[1]:
                        message = "no nodes available to schedule pods"
                    if any(text in message for text in existing):
                        self._count("attempt before a claim or volume arrived", message)
                        scores.clear()
                    else:
                        return {"message": message, "scores": scores}

    def _wait_for_victims(self, pod):
        """Wait until the preempting pod is bound or cannot be bound, and return the names of the pods that it preempted."""
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        bound, position = f'"Successfully bound pod to node" pod="{name}"', self._start
        unbindable = f"no update of pod {name} ExtendedResourceClaimStatus"
        while lines := self._scheduler.lines_after(position):
            position += len(lines)
            if any(bound in line or unbindable in line for line in lines):
                break
        else:
            self._count("not bound after preemption", f"round {self._seed} {name}")
        words = f'preemptor="{name}" victim="'
        return sorted(
            {
                line.split(words, 1)[1].split('"')[0].split("/")[1]
                for line in self._scheduler.log[self._start :]
                if words in line and "preempted victim" in line
            }
        )

    def _same(self, what, ours, real, pod):
        if ours == real:
            self._count(f"same {what}")
            return
        self._count(
            f"DIFFERENT {what}", f"round {self._seed} {pod['metadata']['name']}\n  ours {ours}\n  real {real}"
        )

    def _count(self, what, example=""):
        self._counts[what] += 1
        if example:
            self._examples.setdefault(what, []).append(example)

    def write_recorded(self, path):
        path.write_text("".join(f"{json.dumps(case)}\n" for case in with_changes(self._recorded)))

    def print_summary(self):
        for what, count in sorted(self._counts.items()):
            print(f"{count:6} {what}")
            for example in self._examples.get(what, ())[:4]:
                print(f"       {example}")


if __name__ == "__main__":
    sys.exit(main())
