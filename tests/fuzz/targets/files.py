"""All inputs from files and command lines: each is read, or refused with an error that names the cause."""

import asyncio
import contextlib
import gzip
import hashlib
import io
import tempfile
from functools import cache
from pathlib import Path

import orjson

from mockube.apimachinery import yaml_decode, yaml_scalars
from mockube.apiserver.audit import policy as audit_policy
from mockube.apiserver.config import command_line
from mockube.apiserver.request_info import parse as parse_url
from mockube.apiserver.wire import yaml_codec
from mockube.client import kubeconfig
from mockube.clusters import kubeconfigs
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager import command_line as manager_flags
from mockube.etcd.archive import lines
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.archive.restore import RestoreTarget, restore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import KeyValue
from mockube.failure import Failure
from mockube.importing import cleaning, documents, order
from tests.fuzz import texts
from tests.fuzz.engine import Fault, Target
from tests.fuzz.values import object_of
from tests.support.hostile import hostile_bodies
from tests.support.hostile.hostile_samples import OWN
from tests.support.server.apiserver import ALICE
from tests.support.stores import archives

MAX_FILE_LENGTH = 3 << 20
POD = next(sample.body for sample in OWN if sample.method == "POST" and sample.path.endswith("/pods"))


@cache
def _folder():
    """A folder for the process; nothing else is written there."""
    directory = tempfile.TemporaryDirectory(prefix="mockube-fuzz-")
    _kept.append(directory)
    return Path(directory.name)


_kept = []


def file(name, data):
    path = _folder() / name
    path.write_bytes(data)
    return path


def as_yaml(tree, random):
    """Return the text of a file: the tree as YAML, damaged or not."""
    data = yaml_codec.dump(tree) if random.random() < 0.5 else orjson.dumps(tree)
    return (hostile_bodies.scramble(data, random) if random.random() < 0.3 else data).decode("latin-1")


def mutated_file(text, random):
    """Return a changed file, or the same one if the changed one would be larger than any that a person writes."""
    changed = _mutated(text.encode("latin-1"), random)
    return changed if len(changed) <= MAX_FILE_LENGTH else text


def _mutated(data, random):
    with contextlib.suppress(yaml_scalars.YamlError):
        tree = yaml_decode.load(data).tree
        if random.random() < 0.7:
            return as_yaml(hostile_bodies.mutated(tree, random), random)
    return hostile_bodies.scramble(data, random).decode("latin-1")


# --- kubeconfigs

KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "AAE=", "tls-server-name": "a", "insecure-skip-tls-verify": False}}],
    "users": [{"name": "u", "user": {"token": "t", "tokenFile": "f", "client-certificate-data": "AAE=", "client-key-data": "AAE=", "client-key": "k"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "n"}}], "preferences": {},
}  # fmt: skip


def _make_kubeconfig(random):
    return as_yaml(hostile_bodies.mutated(KUBECONFIG, random), random)


def _kubeconfig(text):
    path = file("kubeconfig", text.encode("latin-1"))
    outcomes = []
    try:
        access = kubeconfig.read(path)
        outcomes.append(f"read: {type(access).__name__}")
        _check_texts(access.server, access.server_name, access.token)
    except kubeconfig.KubeconfigError as error:
        outcomes.append(f"refused: {str(error).replace(str(path), '')}")
    try:
        outcomes.append(f"server: {bool(kubeconfigs.server_url(kubeconfigs._read(path)))}")
    except Failure as error:
        outcomes.append(f"refused: {str(error).replace(str(path), '')}")
    return " ".join(outcomes)


def _check_texts(*values):
    if not all(isinstance(value, str) for value in values):
        raise Fault("a text of a kubeconfig is none")


# --- audit policies

POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "omitManagedFields": True,
    "rules": [
        {"level": "None", "users": ["a"], "verbs": ["watch"], "resources": [{"group": "", "resources": ["endpoints", "pods/*", "*/status"], "resourceNames": ["a"]}]},
        {"level": "Metadata", "userGroups": ["system:authenticated"], "nonResourceURLs": ["/api*", "/version"], "omitStages": ["ResponseStarted"]},
        {"level": "RequestResponse", "namespaces": ["default"], "resources": [{"group": "apps"}]},
        {"level": "Request"},
    ],
}  # fmt: skip
_INFOS = [
    parse_url(method, path, watch=False)
    for method, path in (
        ("GET", "/api/v1/namespaces/default/pods/a"), ("PUT", "/apis/apps/v1/namespaces/default/deployments/a/status"), ("GET", "/version"), ("GET", "/api/v1/nodes"),
    )
]  # fmt: skip


def _make_policy(random):
    return as_yaml(hostile_bodies.mutated(POLICY, random), random)


def _policy(text):
    path = file("policy", text.encode("latin-1"))
    try:
        policy = audit_policy.read(path)
    except audit_policy.BadPolicy as error:
        return f"refused: {str(error).replace(str(path), '')}"
    return "read: " + " ".join(policy.decide(ALICE, info).level.name for info in _INFOS)


# --- imported files


LIST = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [POD, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}],
}


def _make_import(random):
    trees = []
    for _ in range(random.choice((1, 1, 2, 4))):
        kind = random.choice(
            (
                ("v1", "Pod"),
                ("v1", "Service"),
                ("batch/v1", "Job"),
                ("v1", "Node"),
                ("v1", "PersistentVolume"),
                ("coordination.k8s.io/v1", "Lease"),
            )
        )
        tree = random.choice((LIST, POD, object_of(random, *kind)))
        trees.append(hostile_bodies.mutated(tree, random) if random.random() < 0.7 else tree)
    separator = random.choice(("\n---\n", "\n--- # x\n", "\n---\r\n", "\n...\n", "\n"))
    return separator.join(as_yaml(tree, random) for tree in trees)


def _import(text):
    listed = list(documents.read(text.encode("latin-1"), "f"))
    for one in listed:
        str(one.origin)
    trees = [one.tree for one in listed if isinstance(one, documents.Document)]
    if sorted(at for wave in order.concurrent_batches(trees) for at in wave) != list(range(len(trees))):
        raise Fault("not every object has its turn once")
    list(cleaning.implied_objects(trees))
    for tree in trees:
        cleaning.reason_to_skip(tree)
        cleaning.status_of(tree, ())
        orjson.dumps(cleaning.without_assigned_fields(cleaning.clean_object(tree, ("n",))))
    problems = sorted({one.problem for one in listed if isinstance(one, documents.InvalidDocument)})
    return f"read: {len(trees)} {problems}"


# --- snapshots

ENTRIES = {
    "/registry/configmaps/default/a": {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "default"},
    },
    "/registry/pods/default/a": POD,
}


def _make_snapshot(random):
    """Return the lines in some order, with a correct or wrong checksum, packed and damaged or not."""
    trees = dict(ENTRIES)
    if random.random() < 0.5:
        key = random.choice(list(trees))
        trees[key] = hostile_bodies.mutated(trees[key], random)
    header = lines.header_line(
        random.choice((b"/registry/", b"/", b"", b"/x/")),
        random.choice((1, 0, -1, 2**63 - 1, 2**70)),
        "2030-01-01T00:00:00Z",
    )
    entries = [
        lines.entry_line(
            KeyValue(
                key=key.encode(),
                value=orjson.dumps(tree),
                create_revision=1,
                mod_revision=1,
                version=1,
                lease=0,
            ),
            random.choice((0, 0, 0, 60, 60, -1, 2**63)),
        )
        for key, tree in sorted(trees.items())
    ]
    if random.random() < 0.4:
        at = random.randrange(len(entries))
        entries[at] = hostile_bodies.scramble(entries[at], random)
    if random.random() < 0.2:
        entries = random.choice((entries[::-1], entries * 2, [*entries, header], []))
    if random.random() < 0.2:
        header = hostile_bodies.scramble(header, random)
    digest = hashlib.sha256(header + b"".join(entries)).hexdigest()
    trailer = lines.trailer_line(len(entries) + random.choice((0, 0, 0, 0, 1)), digest)
    trailer = hostile_bodies.scramble(trailer, random) if random.random() < 0.1 else trailer
    data = gzip.compress(header + b"".join(entries) + trailer, mtime=0)
    return (hostile_bodies.scramble(data, random) if random.random() < 0.2 else data).decode("latin-1")


def _mutated_snapshot(text, random):
    return hostile_bodies.scramble(text.encode("latin-1"), random).decode("latin-1")


def _snapshot(text):
    try:
        archive = archives.check(io.BytesIO(text.encode("latin-1")), "f")
    except BadArchive as error:
        return f"refused: {error}"
    entries = list(archive.entries())
    return asyncio.run(_restore_and_save(archive, entries))


async def _restore_and_save(archive, entries):
    store = MemoryStore(clock=SteppedClock())
    try:
        await restore(store, archive, RestoreTarget(root=archives.ROOT), replace=True)
        data = await archives.saved(store)
    finally:
        await store.close()
    if len(archives.entries(data)) != len(entries):
        raise Fault("a snapshot that was restored is saved with other keys")
    return f"restored: {len(entries)}"


# --- flags


@cache
def _flag_names():
    help_text = Path("docs/flags.md").read_text()
    return tuple(sorted({word for word in help_text.replace("`", " ").split() if word.startswith("--")}))


_VALUES = (
    "", "0", "1", "-1", "true", "false", "x", "9" * 30, "1h", "-1s", "/nowhere", "a=b", "a=b,c=d", "10.0.0.0/16", "::/0", "1-2", "2-1", "127.0.0.1", "*", "\x00", "é", "a,b", "=", ",",
    "https://a", "http://[", "RBAC", "AlwaysAllow", "1e3", "1Gi", "9" * 5000, "pods#1", "default", "WatchList=false", "info", "json",
)  # fmt: skip


def _make_flags(random):
    arguments = []
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        name, value = random.choice(_flag_names()), random.choice(_VALUES)
        arguments += random.choice(
            ([f"{name}={value}"], [name, value], [name], [name.replace("-", "_"), value], [value])
        )
    return {
        "arguments": arguments,
        "environment": {"MOCKUBE_APISERVER_SECURE_PORT": random.choice(_VALUES)}
        if random.random() < 0.2
        else {},
    }


def _flags(case):
    if not {"arguments", "environment"} <= case.keys():
        return "no case"
    outcomes = []
    for parse in (
        lambda: command_line.parse(case["arguments"], case["environment"]),
        lambda: manager_flags.parse(case["arguments"], case["environment"], {"deployment"}),
    ):
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                parse()
            outcomes.append("read")
        except SystemExit as error:
            outcomes.append(f"ends with {error.code}: {said.getvalue().rpartition('error: ')[2]}")
    return " ".join(outcomes)


def _mutate_flags(case, random):
    return case | {
        "arguments": [
            texts.mutated(argument, random) if random.random() < 0.3 else argument
            for argument in case["arguments"]
        ]
    }


TARGETS = (
    Target(
        name="kubeconfigs", generate=_make_kubeconfig, check=_kubeconfig, mutate=mutated_file, examples=150
    ),
    Target(name="audit-policies", generate=_make_policy, check=_policy, mutate=mutated_file, examples=150),
    Target(name="imports", generate=_make_import, check=_import, mutate=mutated_file, examples=100),
    Target(
        name="snapshots", generate=_make_snapshot, check=_snapshot, mutate=_mutated_snapshot, examples=200
    ),
    Target(name="flags", generate=_make_flags, check=_flags, mutate=_mutate_flags, examples=60),
)
