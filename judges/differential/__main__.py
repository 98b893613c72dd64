"""`make differential`: send the same random requests to a real kube-apiserver and to ours, and print the differences.

    python -m judges.differential --requests 20000 --seed 7 --jobs 4

Both servers are started, unless their addresses are given; MOCKUBE_REAL_KUBERNETES is then the folder with a
kube-apiserver, as `tools.minors build` builds it. Exits with 1 if fewer responses are the same than `--minimum` per cent.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from judges.differential import (
    admission,
    conversion_webhook,
    conversions,
    custom,
    expressions,
    fields,
    managers,
    rights,
    table,
    updates,
    users,
    verbs,
)
from judges.differential.answers import (
    comparable,
    generated_name,
    record_identities,
    translated,
    without_generated,
    without_suffix,
)
from judges.differential.conversations import Conversations
from judges.differential.report import Report
from judges.differential.schemas import Schemas
from tests.conformance.golden import golden
from tests.support.processes.process import ApiServerProcess
from tests.support.processes.real_kubernetes import RealApiServer, require_folder, write_tokens
from tests.support.stores.etcd_server import QUICK, EtcdServer

TOKEN = "admin"
READ_ONLY = {"log", "exec", "attach", "portforward", "proxy"}
"""Subresources that need a kubelet."""
OPENING = "storage is (re)initializing"
"""The error of a server that has not listed the objects of a new kind yet; Retry-After follows."""
ATTEMPTS = 200
UNSUPPORTED = "the required storage feature RequestWatchProgress is disabled"
"""The real server's error with an etcd that is too old for some watches."""
TOO_NEW = "Too large resource version"
"""The real server's error for a list or watch of the latest state, if such an etcd does not report its progress in time."""


@dataclass(frozen=True)
class Resource:
    group: str
    version: str
    kind: str
    subresources: tuple[str, ...]


def main() -> int:
    options = _options()
    if not (options.real and options.ours):
        require_folder()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-differential-") as folder,
        contextlib.ExitStack() as stack,
    ):
        real, ours = options.real, options.ours
        if not (real and ours):
            real, ours = _start(stack, Path(folder), rights.tokens() if options.rights else "")
        servers = golden.Server(real, TOKEN), golden.Server(ours, TOKEN)
        rights.wait_for_default_roles(servers)
        if options.rights:
            rights.prepare(servers)
        found, settings = _cases(options, servers, stack, Path(folder))
        if options.stop:
            settings["goes_on"] = False
        report = run(servers, found, jobs=options.jobs, seconds=options.seconds, **settings)
    for group in report.sorted()[: options.groups]:
        resources = ", ".join(f"{name} {count}" for name, count in group.resources.most_common(4))
        print(f"{group.count:5} {group.signature}\n      {resources}")
    if options.output:
        with Path(options.output).open("w") as file:
            for group in report.sorted():
                for case in group.smallest(options.examples):
                    print(json.dumps({"signature": group.signature, "count": group.count, **case}), file=file)
    if not report.requests:
        raise SystemExit("no requests were sent; resources are named by their plural, such as jobs")
    print(report.summary())
    too_different = report.same < report.requests * options.minimum / 100
    return int(too_different or (options.rights and report.decisions > 0))


def _cases(options, servers, stack, folder):
    """Return the selected conversations, and the arguments of `run` for them."""
    seed, real = options.seed, servers[0]
    many = {"requests": options.requests}
    if options.conversions:
        webhook = stack.enter_context(conversion_webhook.running_webhook(folder))
        return conversions.cases(seed, webhook), many | {"prefix": f"w{seed}", "goes_on": True}
    for module in (custom, admission, expressions, rights, users):
        name = module.__name__.rpartition(".")[2]
        if getattr(options, name):
            arguments = (_resources(real),) if module in (rights, users) else ()
            return module.cases(seed, *arguments), many | {"prefix": f"{name[0]}{seed}", "goes_on": True}
    if options.managers:
        found = managers.cases(seed, _resources(real), _schemas(real))
        return found, many | {"prefix": f"m{seed}"}
    if options.verbs:
        return verbs.cases(seed, _resources(real), _schemas(real)), many | {"prefix": f"v{seed}"}
    if options.updates is not None:
        inner = {path: resource.subresources for path, resource in _resources(real).items()}
        return updates.cases(tuple(options.updates), inner), {"prefix": "p", "goes_on": True}
    if options.fields is not None:
        kinds = tuple(options.fields)
        found = fields.cases(seed, _resources(real), _schemas(real), kinds)
        return found, {"prefix": f"f{seed}", "goes_on": True}
    if options.table is not None:
        return table.cases(tuple(options.table)), {"goes_on": True}
    return conversations(real, seed), many | {"prefix": f"d{seed}"}


def conversations(real, seed):
    """Yield conversations without end."""
    found = Conversations(_schemas(real), _resources(real))
    for number in itertools.count():
        yield found.case(seed, number)


def _schemas(real):
    @cache
    def schemas_of(group, version):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        return Schemas(real.send({"method": "GET", "path": f"/openapi/v3/{path}"})["body"])

    return schemas_of


def run(servers, cases, *, requests=None, seconds=None, jobs=1, prefix="d", goes_on=False):
    """Run conversations: all of them, or until the limit of requests or of time is reached."""
    end = time.monotonic() + seconds if seconds else float("inf")
    report, lock = Report(), threading.Lock()
    numbered = enumerate(cases)

    def work():
        while True:
            with lock:
                number, case = next(numbered, (0, None))
                if case is None or time.monotonic() > end:
                    return
                if requests is not None and report.requests >= requests:
                    return
            _converse(servers, case, f"{prefix}-{number}", report, lock, goes_on=goes_on)

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work) for _ in range(jobs)]:
            done.result()
    return report


def _converse(servers, requests: Iterator[dict], namespace, report, lock, *, goes_on=False):
    """Send each request to both, until a response differs: later differences could be consequences."""
    _create_namespace(servers, namespace)
    steps, answers, identities, generated = [], None, {}, (set(), set())
    while True:
        try:
            request = requests.send(answers and answers[0])
        except StopIteration:
            break
        filled = golden.fill(request, namespace, [])
        if "wait" in filled:
            custom.wait_for(servers, filled["wait"])
            continue
        if "roles" in filled:
            rights.wait_for_roles(servers, filled["roles"])
            continue
        sent = filled, translated(filled, identities)
        answers = [_answer(server, each) for server, each in zip(servers, sent, strict=True)]
        record_identities(identities, *(answer["body"] for answer in answers))
        for name, answer in zip(generated, answers, strict=True):
            name.update(generated_name(answer, filled))
        plain = (without_generated(*each) for each in zip(answers, generated, strict=True))
        wanted, got = (comparable(without_suffix(answer, filled), namespace) for answer in plain)
        steps = [*([] if goes_on else steps), {"request": request, "response": wanted}]
        text = json.dumps(wanted)
        if UNSUPPORTED in text or (TOO_NEW in text and "resourceVersion=" not in request["path"]):
            continue
        found = golden.differences(wanted, got)
        resource = request["path"].partition("?")[0].replace("/namespaces/${ns}", "")
        resource = "/".join(resource.split("/")[3 if resource.startswith("/api/") else 4 :][:1])
        with lock:
            if not found:
                report.add_same(refused=rights.is_refused(wanted))
                continue
            rows = [{"at": at, "want": want, "got": here} for at, want, here in found[:6]]
            case = {"case": namespace, "steps": steps, "differences": rows}
            refused = rights.is_refused(wanted), rights.is_refused(got)
            report.add_different(resource, request, found, case, refused=refused)
        if not goes_on:
            break
    for server in servers:
        server.send({"method": "DELETE", "path": f"/api/v1/namespaces/{namespace}"})


def _create_namespace(servers, namespace):
    for server in servers:
        for path, body in (
            ("/api/v1/namespaces", _object_with_name("Namespace", namespace)),
            (
                f"/api/v1/namespaces/{namespace}/serviceaccounts",
                _object_with_name("ServiceAccount", "default"),
            ),
        ):
            server.send({"method": "POST", "path": path, "body": body})


def _answer(server, request):
    """Send a request, as clients do again while the server still opens the storage of a new kind."""
    try:
        answers = (server.send(request) for _ in range(ATTEMPTS))
        done = (answer for answer in answers if OPENING not in json.dumps(answer["body"]))
        return next(done, None) or server.send(request)
    except (
        OSError,
        http.client.HTTPException,
        UnicodeError,
    ) as error:  # the last of a path that cannot be sent
        return {"status": 0, "type": "", "body": f"no answer: {error!r}"}


def _object_with_name(kind, name):
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


def _start(stack, folder, more_tokens=""):
    etcd = stack.enter_context(EtcdServer(options=QUICK))
    homes = folder / "real", folder / "ours"
    for home in homes:
        home.mkdir()
    tokens = write_tokens(folder / "tokens.csv")
    plugins = ()
    if more_tokens:
        tokens.write_text(tokens.read_text() + more_tokens)
        plugins = (rights.PLUGINS,)
    real = stack.enter_context(RealApiServer(homes[0], etcd, tokens=tokens, flags=plugins))
    ours = stack.enter_context(
        ApiServerProcess(
            homes[1],
            *("--token-auth-file", tokens, "--service-cluster-ip-range=10.0.0.0/16"),
            "--allow-privileged=false",  # the default of upstream
            *plugins,
        )
    )
    return real.url, ours.url


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m judges.differential", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--custom", action="store_true", help="custom kinds with random definitions")
    parser.add_argument(
        "--admission", action="store_true", help="pod security, limits and quotas, and pods within them"
    )
    parser.add_argument(
        "--conversions",
        action="store_true",
        help="a custom kind whose versions a webhook converts, with faults, and several field managers",
    )
    parser.add_argument("--expressions", action="store_true", help="random rules of custom kinds")
    parser.add_argument(
        "--table", nargs="*", metavar="RESOURCE", help="the table of one-field changes, of these or all"
    )
    parser.add_argument(
        "--updates", nargs="*", metavar="RESOURCE", help="the table of one-field updates, of these or all"
    )
    parser.add_argument(
        "--fields", nargs="*", metavar="RESOURCE", help="each field of the schemas of these resources or all"
    )
    parser.add_argument(
        "--verbs",
        action="store_true",
        help="all methods of all subresources, options, pages, patch directives, formats",
    )
    parser.add_argument(
        "--managers",
        action="store_true",
        help="several field managers, each of which applies parts of objects",
    )
    parser.add_argument("--users", action="store_true", help="users with few permissions")
    parser.add_argument(
        "--rights", action="store_true", help="users with random roles, and nested permissions"
    )
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--groups", type=int, default=40, help="number of groups to print")
    parser.add_argument("--seconds", type=int, help="the time after which no conversation is started")
    parser.add_argument("--output", help="file for the smallest reproducers of each group")
    parser.add_argument("--stop", action="store_true", help="end a conversation at its first difference")
    parser.add_argument("--examples", type=int, default=1, help="number of reproducers to print for a group")
    parser.add_argument("--minimum", type=float, default=0.0, help="required percentage of equal responses")
    parser.add_argument("--real", help="address of a running kube-apiserver with the token `admin`")
    parser.add_argument("--ours", help="address of a running mockube server with the token `admin`")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
