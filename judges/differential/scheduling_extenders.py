"""Record what a real kube-scheduler does with the extenders of `tests.support.controllers.extender_scenarios`.

    python -m judges.differential.scheduling_extenders --record tests/integration/recorded_extenders_1_37.jsonl

MOCKUBE_REAL_KUBERNETES is the folder with a kube-apiserver and a kube-scheduler.
"""

import argparse
import contextlib
import json
import ssl
import tempfile
from pathlib import Path

import orjson

from judges.choices import require_some
from judges.differential.scheduling import ADMISSION
from tests.conformance.golden import golden
from tests.support.controllers import extender_scenarios as scenarios
from tests.support.controllers.scheduler_profiles import tree_of
from tests.support.processes.real_kubernetes import (
    RealApiServer,
    RealScheduler,
    require_folder,
    write_kubeconfig,
)
from tests.support.stores.etcd_server import EtcdServer

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def main():
    parser = argparse.ArgumentParser(prog="python -m judges.differential.scheduling_extenders")
    parser.add_argument("--record", required=True, help="the file")
    parser.add_argument("--only", default="", help="a part of the names of scenarios")
    options = parser.parse_args()
    chosen = {name: each for name, each in scenarios.SCENARIOS.items() if options.only in name}
    require_some(chosen, f"no scenario has {options.only} in its name")
    require_folder()
    with tempfile.TemporaryDirectory(prefix="mockube-extenders-") as folder, contextlib.ExitStack() as stack:
        etcd = stack.enter_context(EtcdServer())
        api = RealApiServer(
            Path(folder), etcd, flags=(f"--disable-admission-plugins={ADMISSION},DefaultTolerationSeconds",)
        )
        recorder = Recorder(stack.enter_context(api), Path(folder))
        with Path(options.record).open("wb") as file:
            for name, scenario in chosen.items():
                print(name, flush=True)
                file.write(orjson.dumps({"scenario": name, **recorder.record(scenario)}) + b"\n")


class Recorder:
    def __init__(self, api, folder):
        self._api, self._folder = api, folder
        self._server = golden.Server(api.url, "admin")
        while self._send("GET", "/readyz", accepted=None)["status"] != 200:
            pass
        user = "system:kube-scheduler"
        self._kubeconfig = write_kubeconfig(folder / "scheduler", api.url, api.authority, user)

    def _send(self, method, path, body=None, accepted=(200, 201)):
        answer = self._server.send({"method": method, "path": path, "body": body})
        assert accepted is None or answer["status"] in accepted, answer
        return answer

    def record(self, scenario):
        self._delete_all()
        context = ssl.create_default_context(cafile=str(self._api.authority))
        with scenarios.ExtenderServer(scenario["answers"], self._api.url, context) as extender:
            self._create_cluster(scenario, extender)
            tree = {
                **tree_of([{}]),
                "clientConnection": {"kubeconfig": str(self._kubeconfig)},
                "extenders": extender.configuration(scenario),
                "leaderElection": {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"},
            }
            file = self._folder / "scheduler.yaml"
            file.write_text(json.dumps(tree))
            with RealScheduler(self._kubeconfig, f"--config={file}"):
                pods = [self._schedule(name, pod, extender) for name, pod in scenario["pods"].items()]
                requests = scenarios.normalized(extender.requests, extender.uids)
        return {"pods": pods, "requests": requests}

    def _delete_all(self):
        for path in (PODS, EVENTS, NODES):
            for item in self._send("GET", path)["body"]["items"]:
                self._delete(f"{path}/{item['metadata']['name']}")

    def _delete(self, path):
        self._send("DELETE", path, {"gracePeriodSeconds": 0}, accepted=(200, 202, 404))

    def _create_cluster(self, scenario, extender):
        for name, cpus in scenario["nodes"].items():
            body, allocatable = scenarios.node_of(name, cpus)
            created = self._send("POST", NODES, body)["body"]
            status = {**created.get("status", {}), "capacity": allocatable, "allocatable": allocatable}
            self._send("PUT", f"{NODES}/{name}/status", {**created, "status": status})
        for name, (node, cpus) in scenario["running"].items():
            body = scenarios.pod_of(name, cpus, node=node)
            extender.uids[name] = self._send("POST", PODS, body)["body"]["metadata"]["uid"]

    def _schedule(self, name, pod, extender):
        created = self._send("POST", PODS, scenarios.pod_of(name, **pod))["body"]
        extender.uids[name] = created["metadata"]["uid"]
        while (outcome := scenarios.outcome_of(self._send("GET", f"{PODS}/{name}")["body"])) is None:
            pass
        while (event := self._event(name)) is None:
            pass
        self._delete(f"{PODS}/{name}")
        outcome = {"pod": name, **outcome, "event": event}
        return {
            key: scenarios.without_ports_and_uids(text, extender.url, extender.uids)
            for key, text in outcome.items()
        }

    def _event(self, name):
        for event in self._send("GET", EVENTS)["body"]["items"]:
            if event["regarding"]["name"] == name and event["reason"] in ("Scheduled", "FailedScheduling"):
                return f"{event['reason']}: {event['note']}"
        return None


if __name__ == "__main__":
    main()
