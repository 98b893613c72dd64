"""`make differential`: the same random requests to a real kube-apiserver and to ours, and what they answer differently.

    python -m tests.differential --requests 20000 --seed 7 --jobs 4

Both servers are started, if none are named; MOCKUBE_REAL_KUBERNETES is then the folder with a kube-apiserver, as
`tools/kubernetes` builds it. Ends with 1 if fewer answers are the same than `--least` per cent.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.conformance.golden import golden
from tests.differential.conversations import Conversations
from tests.differential.report import Report
from tests.differential.schemas import Schemas
from tests.support.etcd_server import QUICK, EtcdServer
from tests.support.process import ApiServerProcess
from tests.support.real_kubernetes import RealApiServer, write_tokens

TOKEN = "admin"
READ_ONLY = {"log", "exec", "attach", "portforward", "proxy"}
"""Subresources that need a kubelet."""


@dataclass(frozen=True)
class Resource:
    group: str
    version: str
    kind: str
    subresources: tuple[str, ...]


def main() -> int:
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-differential-") as folder,
        contextlib.ExitStack() as stack,
    ):
        real, ours = options.real, options.ours
        if not (real and ours):
            real, ours = _start(stack, Path(folder))
        servers = golden.Server(real, TOKEN), golden.Server(ours, TOKEN)
        report = run(servers, seed=options.seed, requests=options.requests, jobs=options.jobs)
    for group in report.sorted()[: options.groups]:
        resources = ", ".join(f"{name} {count}" for name, count in group.resources.most_common(4))
        print(f"{group.count:5} {group.signature}\n      {resources}")
    if options.output:
        with Path(options.output).open("w") as file:
            for group in report.sorted():
                print(
                    json.dumps({"signature": group.signature, "count": group.count, **group.smallest}),
                    file=file,
                )
    print(report.summary())
    return int(report.same < report.requests * options.least / 100)


def run(servers, *, seed, requests, jobs):
    """Hold conversations until so many requests were answered."""
    real = servers[0]
    resources = _resources(real)

    @cache
    def schemas_of(group, version):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        return Schemas(real.send({"method": "GET", "path": f"/openapi/v3/{path}"})["body"])

    conversations = Conversations(schemas_of, resources)
    report, lock = Report(), threading.Lock()
    numbers = itertools.count()

    def work():
        while True:
            with lock:
                if report.requests >= requests:
                    return
                number = next(numbers)
            _converse(servers, conversations.case(seed, number), f"d{seed}-{number}", report, lock)

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work) for _ in range(jobs)]:
            done.result()
    return report


def _converse(servers, case: Iterator[dict], namespace, report, lock):
    """Send each request to both, until they answer differently: what comes after follows from it."""
    for server in servers:
        for path, body in (
            ("/api/v1/namespaces", _named("Namespace", namespace)),
            (f"/api/v1/namespaces/{namespace}/serviceaccounts", _named("ServiceAccount", "default")),
        ):
            server.send({"method": "POST", "path": path, "body": body})
    steps, answers, identities = [], None, {}
    while True:
        try:
            request = case.send(answers and answers[0])
        except StopIteration:
            break
        filled = golden.fill(request, namespace, [])
        sent = filled, _translated(filled, identities)
        answers = [_answer(server, each) for server, each in zip(servers, sent, strict=True)]
        _learn(identities, *answers)
        wanted, got = (_comparable(answer, namespace) for answer in answers)
        steps.append({"request": request, "response": wanted})
        found = golden.differences(wanted, got)
        resource = request["path"].partition("?")[0].replace("/namespaces/${ns}", "")
        resource = "/".join(resource.split("/")[3 if resource.startswith("/api/") else 4 :][:1])
        with lock:
            if not found:
                report.add_same()
                continue
            rows = [{"at": at, "want": want, "got": here} for at, want, here in found[:6]]
            report.add_different(resource, request, found, {"steps": steps, "differences": rows})
        break
    for server in servers:
        server.send({"method": "DELETE", "path": f"/api/v1/namespaces/{namespace}"})


def _answer(server, request):
    try:
        return server.send(request)
    except (OSError, http.client.HTTPException) as error:
        return {"status": 0, "type": "", "body": f"no answer: {error!r}"}


def _learn(identities, real, ours):
    """Remember by what uid and version the second server knows the object of an answer."""
    for key in ("resourceVersion", "uid"):
        values = [
            answer["body"].get("metadata", {}).get(key) if isinstance(answer["body"], dict) else None
            for answer in (real, ours)
        ]
        if all(values):
            identities[json.dumps({key: values[0]})[1:-1]] = json.dumps({key: values[1]})[1:-1]


def _translated(request, identities):
    text = json.dumps(request)
    for real, ours in identities.items():
        text = text.replace(real, ours)
    return json.loads(text)


def _comparable(answer, namespace):
    """Return the answer without what differs between two servers that are the same."""
    body = answer["body"]
    if "yaml" in answer["type"]:
        body = yaml.load(body, yaml.BaseLoader)
    if isinstance(body, dict):
        for key in ("items", "rows"):  # of a cluster, without what other conversations made
            if isinstance(body.get(key), list):
                body = body | {key: [item for item in body[key] if namespace in json.dumps(item)]}
    answer = golden.normalise(answer | {"body": body}, namespace, managed=True)
    return answer | {"type": answer["type"].replace(" ", "")}


def _named(kind, name):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _resources(server):
    found = {}
    groups = server.send({"method": "GET", "path": "/apis"})["body"]["groups"]
    versions = [("", "v1", "/api/v1")]
    versions += [
        (group["name"], version["version"], f"/apis/{version['groupVersion']}")
        for group in groups
        for version in group["versions"]
    ]
    for group, version, path in versions:
        listed = server.send({"method": "GET", "path": path})["body"].get("resources", [])
        inner = {}
        for resource in listed:
            name, _, subresource = resource["name"].partition("/")
            if subresource and subresource not in READ_ONLY:
                inner.setdefault(name, []).append(subresource)
        for resource in listed:
            if "/" not in resource["name"]:
                place = "/namespaces/${ns}" if resource["namespaced"] else ""
                found[f"{path}{place}/{resource['name']}"] = Resource(
                    group, version, resource["kind"], tuple(inner.get(resource["name"], ()))
                )
    return found


def _start(stack, folder):
    etcd = stack.enter_context(EtcdServer(options=QUICK))
    homes = folder / "real", folder / "ours"
    for home in homes:
        home.mkdir()
    real = stack.enter_context(RealApiServer(homes[0], etcd))
    tokens = write_tokens(homes[1] / "tokens.csv")
    ours = stack.enter_context(
        ApiServerProcess(homes[1], "--token-auth-file", tokens, "--service-cluster-ip-range=10.0.0.0/16")
    )
    return real.url, ours.url


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--groups", type=int, default=40, help="how many groups of differences to print")
    parser.add_argument("--output", help="a file for every group's smallest reproducer, one a line")
    parser.add_argument("--least", type=float, default=0.0, help="per cent that have to be the same")
    parser.add_argument("--real", help="the address of a real server that runs, which knows the token admin")
    parser.add_argument("--ours", help="the address of ours")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
