"""Patches of every type, on valid objects of every kind, through the server."""

import orjson

from mockube.apiserver.wire import yaml_codec
from tests.fuzz import texts
from tests.fuzz.engine import Fault, Target
from tests.fuzz.server import path_of, session
from tests.fuzz.targets.objects import ROWS, SAMPLES, STORED, clear, make_object
from tests.fuzz.values import object_of
from tests.support.hostile import hostile_bodies

LANGUAGES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test", "x", "")
_STEPS = (
    "",
    "-",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "~0",
    "~1",
    "~",
    "~2",
    "a/b",
    "metadata",
    "spec",
    "é",
    "00",
    "+1",
    "1e3",
)


def _pointer(tree, random):
    """Return a random path of the tree, and now and then another path."""
    steps = []
    while isinstance(tree, dict | list) and tree and random.random() < 0.85:
        step = random.choice(list(tree)) if isinstance(tree, dict) else random.randrange(len(tree))
        steps.append(str(step).replace("~", "~0").replace("/", "~1"))
        tree = tree[step]
    if random.random() < 0.2:
        steps.append(random.choice(_STEPS))
    return "".join(f"/{step}" for step in steps) if random.random() < 0.95 else "/".join(steps)


def _json_patch(tree, random):
    operations = []
    for _ in range(random.choice((1, 1, 2, 4))):
        operation = {"op": random.choice(_OPERATIONS[:6]), "path": _pointer(tree, random)}
        if operation["op"] in ("move", "copy"):
            operation["from"] = _pointer(tree, random)
        elif operation["op"] != "remove":
            operation["value"] = hostile_bodies.odd_value(random)
        operations.append(operation)
    return hostile_bodies.mutated(operations, random) if random.random() < 0.3 else operations


_DIRECTIVES = (
    {"$patch": "delete"}, {"$patch": "replace"}, {"$patch": "merge"}, {"$patch": "x"}, {"$patch": None}, {"$retainKeys": ["name"]}, {"$retainKeys": "x"},
    {"$setElementOrder/containers": [{"name": "c"}]}, {"$setElementOrder/ports": [{"containerPort": 80}]}, {"$setElementOrder/finalizers": ["a"]},
    {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}, {"$deleteFromPrimitiveList/finalizers": "x"}, {"$setElementOrder/x": None},
    {"$deleteFromPrimitiveList/args": [1]}, {"$setElementOrder/containers": [{}]}, {"$setElementOrder/containers": 1},
)  # fmt: skip


def _with_directive(tree, random):
    """Insert a directive of strategic merge patches."""
    if isinstance(tree, dict):
        if not tree or random.random() < 0.25:
            return tree | random.choice(_DIRECTIVES)
        step = random.choice(list(tree))
        return tree | {step: _with_directive(tree[step], random)}
    if isinstance(tree, list) and tree:
        at = random.randrange(len(tree))
        return [*tree[:at], _with_directive(tree[at], random), *tree[at + 1 :]]
    return tree


def _part(tree, random):
    """Return some of the fields of a tree."""
    if not isinstance(tree, dict):
        return tree
    return {name: _part(value, random) for name, value in tree.items() if random.random() < 0.6}


def _make_patch(resource, tree, language, random):
    if language == "json-patch+json":
        return _json_patch(tree, random)
    row = ROWS[resource]
    other = object_of(random, row.api_version, row.kind)
    body = _part(random.choice((tree, other, make_object(random, resource))), random)
    if random.random() < 0.3:
        body = hostile_bodies.mutated(body, random)
    if language == "strategic-merge-patch+json" and random.random() < 0.5:
        body = _with_directive(body, random)
    if language == "apply-patch+yaml" and isinstance(body, dict) and random.random() < 0.95:
        body |= {"apiVersion": row.api_version, "kind": row.kind}
    return body


def _make(random):
    resource = random.choice([name for name in SAMPLES if name in STORED])
    tree = make_object(random, resource, changed=0.05)
    patches = []
    for _ in range(random.choice((1, 1, 2, 4))):
        language = random.choice(LANGUAGES)
        patches.append({
            "language": language,
            "body": _make_patch(resource, tree, language, random),
            "query": random.choice(("fieldManager=m", "fieldManager=n&force=true", "fieldManager=kubectl", "fieldManager=m&fieldValidation=Strict")),
            "subresource": random.choice(("", "", "", "/status", "/scale")),
        })  # fmt: skip
    return {"resource": resource, "object": tree, "patches": patches}


def _mutate(case, random):
    at = random.randrange(len(case["patches"])) if case["patches"] else 0
    if not case["patches"] or random.random() < 0.2:
        return case | {"patches": [*case["patches"], *_make(random)["patches"]][:8]}
    patch = case["patches"][at]
    body = hostile_bodies.mutated(patch["body"], random)
    if random.random() < 0.3:
        body = _make_patch(case["resource"], case["object"], patch["language"], random)
    made = patch | {"body": body}
    return case | {"patches": [*case["patches"][:at], made, *case["patches"][at + 1 :]]}


async def _check(server, case):
    if not {"resource", "object", "patches"} <= case.keys() or case["resource"] not in STORED:
        return "no case"
    row = STORED[case["resource"]]
    path = path_of(row)
    created = await server.send("POST", path, orjson.dumps(case["object"]))
    if created.status != 201:
        return f"not created: {created.outcome}"
    one = f"{path}/{created.tree['metadata']['name']}"
    try:
        whole = [
            patch for patch in case["patches"] if patch.keys() >= {"language", "body", "query", "subresource"}
        ]
        outcomes = [await _patched(server, one, patch) for patch in whole]
    finally:
        await clear(server, one)
    return " ".join(outcomes) or "no case"


async def _patched(server, one, patch):
    media_type, target = f"application/{patch['language']}", f"{one}{patch['subresource']}"
    body = orjson.dumps(patch["body"])
    before = (await server.send("GET", one)).body
    tried = await server.send("PATCH", f"{target}?{patch['query']}&dryRun=All", body, Content_Type=media_type)
    if (await server.send("GET", one)).body != before:
        raise Fault(f"a dry run of a {patch['language']} changes the object")
    done = await server.send("PATCH", f"{target}?{patch['query']}", body, Content_Type=media_type)
    if tried.status != done.status:
        raise Fault(f"a dry run of a {patch['language']} answers {tried.outcome}, the patch {done.outcome}")
    if done.status not in (200, 201):
        return done.outcome
    after = await server.send("GET", target)
    if after.status == 404:  # the object is being deleted, and its last finalizer is gone
        return f"{done.status} gone"
    if after.tree != done.tree:
        raise Fault(f"a GET differs from what a {patch['language']} answered")
    if patch["language"] == "apply-patch+yaml":
        await _check_apply(server, target, patch, after.tree)
    return str(done.status)


_NOT_TYPED = "500: failed to create typed live object"


async def _check_apply(server, target, patch, tree):
    """Check that a repeated patch changes nothing, and that YAML has the same result."""
    for body in (orjson.dumps(patch["body"]), yaml_codec.dump(patch["body"])):
        again = await server.send(
            "PATCH", f"{target}?{patch['query']}", body, Content_Type="application/apply-patch+yaml"
        )
        if again.outcome.startswith(_NOT_TYPED):
            return  # kube-apiserver stores an element without its key too, and cannot read it then
        if again.status != 200:
            raise Fault(f"what was applied is refused when it is applied again: {again.outcome}")
        if again.tree != tree and not _has_empty_collection(patch["body"]):
            # kube-apiserver counts each apply of some empty lists and maps as a change, as of webhooks or matchLabels
            raise Fault("what is applied again changes the object")


def _has_empty_collection(value):
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return not value or any(map(_has_empty_collection, items))


def _make_body(random):
    """Return text that is not a patch, with each patch type."""
    return {
        "resource": "v1/configmaps",
        "language": random.choice(LANGUAGES),
        "text": texts.join_tokens(
            random,
            ('{"data":', "{", "}", "[", "]", '"a"', ":", ",", "1", '"op"', "null", "data: ", "\n", "- ", "a"),
            maximum=12,
        ),
    }


async def _check_body(server, case):
    target = f"{path_of(STORED['v1/configmaps'])}/a?fieldManager=m"
    body = case.get("text", "").encode("utf-8", "replace")
    answer = await server.send("PATCH", target, body, Content_Type=f"application/{case.get('language')}")
    if answer.status in (200, 201):
        await clear(server, target.partition("?")[0])
    return answer.outcome


def _mutate_body(case, random):
    return case | {"text": texts.mutated(case.get("text", ""), random)}


TARGETS = (
    Target(
        name="patches", generate=_make, check=_check, session=session, weight=4, mutate=_mutate, examples=200
    ),
    Target(
        name="patch-bodies",
        generate=_make_body,
        check=_check_body,
        session=session,
        mutate=_mutate_body,
        examples=200,
    ),
)
