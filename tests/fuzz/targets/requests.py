"""Hostile requests, sent to the server without a socket; `tests/integration/test_hostile_requests.py`
sends those of the same generator over one, with malformed framing as well.
"""

from functools import partial
from urllib.parse import quote

from mockube.apiserver.request.endpoints import MAX_BODY
from tests.fuzz import texts
from tests.fuzz.engine import Target
from tests.fuzz.server import path_of, session
from tests.fuzz.targets.objects import ROWS, clear
from tests.support.hostile import hostile_bodies
from tests.support.hostile.hostile_samples import OWN, recorded_samples

SAMPLES = [*OWN, *(recorded_samples() or ())]
_LANGUAGES = (
    "json-patch+json",
    "merge-patch+json",
    "strategic-merge-patch+json",
    "apply-patch+yaml",
    "json",
    "yaml",
    "vnd.kubernetes.protobuf",
    "cbor",
    "x",
)
_QUERIES = {
    "labelSelector": texts.LABEL_SELECTORS,
    "fieldSelector": texts.FIELD_SELECTORS,
    "limit": ("1", "0", "-1", "9" * 30, "x"),
    "continue": (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
        "e30",
        "x",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiZGVmYXVsdC9hIn0",
    ),
    "resourceVersion": ("0", "1", "9" * 18, "-1", "x", ""),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "timeoutSeconds": ("1", "0", "-1", "x"),
    "timeout": ("1s", "-1s", "x", "1ns", "0"),
    "sendInitialEvents": ("true", "false", "x"),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("m", "\x01", "a" * 129, ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x"),
    "pretty": ("true", "x"),
    "gracePeriodSeconds": ("0", "-1", "9" * 30, "x"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "includeObject": ("Object", "None", "Metadata", "x"),
    "orphanDependents": ("true", "x"),
}
ACCEPTS = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*")
OPTIONS = {
    "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": {"uid": "u", "resourceVersion": "1"}, "propagationPolicy": "Background",
    "orphanDependents": False, "dryRun": ["All"], "ignoreStoreReadErrorWithClusterBreakingPotential": True,
}  # fmt: skip


def _query(random):
    pairs = []
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        name = random.choice(list(_QUERIES))
        usual = _QUERIES[name]
        grammar = name in ("labelSelector", "fieldSelector")
        pairs.append(f"{name}={quote(texts.join_tokens(random, usual) if grammar else random.choice(usual))}")
    return "&".join(pairs)


def _make(random):
    sample = random.choice(SAMPLES)
    method = (
        sample.method
        if random.random() < 0.8
        else random.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    )
    path, _, query = sample.path.partition("?")
    if random.random() < 0.1:
        path = quote(texts.join_tokens(random, texts.URL_PATHS, maximum=14), safe="/%:~*")
    path = path if path.startswith("/") else f"/{path}"
    query = "&".join(filter(None, (query, _query(random))))
    query = "&".join(part for part in query.split("&") if not part.startswith(("watch", "follow")))
    media_type, body = "application/json", b""
    if sample.body is not None or method in ("POST", "PUT", "PATCH"):
        media_type, body = hostile_bodies.encoded(
            hostile_bodies.mutated(sample.body if sample.body is not None else {}, random), random
        )
    if method == "PATCH":
        media_type = f"application/{random.choice(_LANGUAGES)}"
    elif method == "DELETE" and random.random() < 0.6:
        media_type, body = hostile_bodies.encoded(hostile_bodies.mutated(OPTIONS, random), random)
    elif random.random() < 0.06:
        media_type, body = hostile_bodies.bomb(random)
    accept = (
        texts.join_tokens(random, texts.MEDIA_TYPES, maximum=4)
        if random.random() < 0.1
        else random.choice(ACCEPTS)
    )
    return {
        "method": method,
        "path": path,
        "query": query,
        "type": media_type,
        "body": body[: MAX_BODY + 9].decode("latin-1"),
        "accept": accept,
    }


def _mutate(case, random):
    field = random.choice(("body", "body", "body", "query", "path", "accept", "type"))
    changed = hostile_bodies.scramble(case[field].encode("latin-1", "replace"), random).decode("latin-1")
    if field in ("query", "path"):
        changed = quote(changed, safe="/%=&?:+,")
        changed = changed if field == "query" or changed.startswith("/") else f"/{changed}"
    if "watch" in changed and field != "body":
        return case
    return case | {field: changed}


async def _check(server, case):
    if not {"method", "path", "query", "type", "body", "accept"} <= case.keys() or not case[
        "path"
    ].startswith("/"):
        return "no case"
    printable = {"Accept": case["accept"], "Content-Type": case["type"]}
    headers = {name: value for name, value in printable.items() if value.isprintable() and value.isascii()}
    target = f"{case['path']}?{case['query']}" if case["query"] else case["path"]
    answer = await server.send(case["method"], target, case["body"].encode("latin-1"), **headers)
    if case["method"] in ("POST", "PUT", "PATCH") and answer.status in (200, 201):
        await _forget(server, answer)
    return answer.outcome


async def _forget(server, answer):
    """Delete the created objects, so that every case starts with the same server."""
    if not answer.body.startswith(b"{"):
        return
    tree = answer.tree
    name = (tree.get("metadata") or {}).get("name")
    rows = [
        row
        for row in ROWS.values()
        if (row.api_version, row.kind) == (tree.get("apiVersion"), tree.get("kind"))
    ]
    if not name or not rows or rows[0].name == "namespaces" or "get" not in rows[0].verbs:
        return
    await clear(
        server,
        f"{path_of(rows[0], namespace=tree['metadata'].get('namespace', 'default'))}/{quote(name, safe='')}",
    )


TARGETS = (
    Target(
        name="requests",
        generate=_make,
        check=_check,
        session=partial(session, ends_empty=False),
        weight=4,
        mutate=_mutate,
        examples=400,
    ),
)
