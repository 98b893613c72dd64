"""Definitions of custom resources with values: schema validation, and operations on the accepted objects."""

import contextlib

import orjson

from tests.fuzz import schemas
from tests.fuzz.engine import Fault, Target
from tests.fuzz.server import Server, session
from tests.fuzz.targets.objects import TABLE, clear
from tests.support.hostile import hostile_bodies

GROUP = "example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"things.{GROUP}"
PATH = f"/apis/{GROUP}/v1/namespaces/default/things"
MAX_ATTEMPTS = 3000
_INVALID_SINCE = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
"""What kube-apiserver answers too, if a null that satisfied `required` was dropped."""
_COLUMNS = (
    ".spec.a",
    ".metadata.name",
    '.status.conditions[?(@.type=="Ready")].status',
    ".spec.x[0]",
    "[",
    ".spec.a.b",
    "..",
    ".spec['a.b']",
)


def _version(random, schema):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if random.random() < 0.3:
        scale = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
        version["subresources"] = random.choice(
            (
                {"status": {}},
                {"status": {}, "scale": scale},
                {"scale": scale},
                {"scale": hostile_bodies.mutated(scale, random)},
            )
        )
    if random.random() < 0.3:
        version["additionalPrinterColumns"] = [
            {
                "name": "A",
                "type": random.choice(("string", "integer", "date", "boolean", "number", "x")),
                "jsonPath": random.choice(_COLUMNS),
            }
        ]
    if random.random() < 0.2:
        version["selectableFields"] = [{"jsonPath": random.choice(_COLUMNS)}]
    return version


def _definition(random, schema):
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [_version(random, schema)]}
    if random.random() < 0.05:
        spec["preserveUnknownFields"] = False
    tree = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": spec,
    }
    if random.random() < 0.1:
        tree["spec"] = hostile_bodies.mutated(spec, random)
    return tree


def _value(random, schema):
    tree = schemas.value(schema, random)
    tree = tree if isinstance(tree, dict) else {"spec": tree}
    return tree | {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a"}}


def _make(random):
    schema = schemas.schema(random, top=True)
    if random.random() < 0.1:
        schema = hostile_bodies.mutated(schema, random)
    values = [_value(random, schema) for _ in range(random.choice((1, 3, 6)))]
    return {"definition": _definition(random, schema), "values": values}


def _mutate(case, random):
    if case["values"] and random.random() < 0.6:
        at = random.randrange(len(case["values"]))
        changed = hostile_bodies.mutated(case["values"][at], random)
        return case | {"values": [*case["values"][:at], changed, *case["values"][at + 1 :]]}
    return case | {"definition": hostile_bodies.mutated(case["definition"], random)}


async def _check(server: Server, case):
    if not {"definition", "values"} <= case.keys() or not isinstance(case["values"], list):
        return "no case"
    body = orjson.dumps(case["definition"])
    tried = await server.send("POST", f"{DEFINITIONS}?dryRun=All", body)
    created = await server.send("POST", DEFINITIONS, body)
    if tried.status != created.status:
        raise Fault(f"a dry run of a definition answers {tried.outcome}, a create {created.outcome}")
    if created.status != 201:
        return created.outcome
    one = f"{DEFINITIONS}/{created.tree['metadata']['name']}"
    outcomes = []
    try:
        conditions = await _final_conditions(server, one)
        if conditions.get("Established") == "True" and (await server.send("GET", PATH)).status == 200:
            outcomes = [
                await _check_value(server, value) for value in case["values"] if isinstance(value, dict)
            ]
        await server.send("GET", f"/openapi/v3/apis/{GROUP}/v1")
    finally:
        await clear(server, one, own_finalizers=["customresourcecleanup.apiextensions.k8s.io"])
        await _wait_until_gone(server, one)
    return f"201 {conditions} {' '.join(outcomes)}"


async def _final_conditions(server, one):
    """Return the conditions, once the names are accepted or not."""
    for _ in range(MAX_ATTEMPTS):
        answer = await server.send("GET", one)
        if answer.status != 200:
            return {}
        found = {
            entry["type"]: entry["status"] for entry in answer.tree.get("status", {}).get("conditions") or ()
        }
        server.check_log()
        if found.get("Established") == "True" or found.get("NamesAccepted") == "False":
            return found
        await server.clock.sleep(0.0005)
    raise Fault("it is never said whether a definition is established")


async def _wait_until_gone(server, one):
    """Wait until the definition is gone, and its paths return 404."""
    for _ in range(MAX_ATTEMPTS):
        if {(await server.send("GET", path)).status for path in (one, PATH)} == {404}:
            return
        await server.clock.sleep(0.0005)
    raise Fault("a definition that was deleted is still there, or served")


def _content(answer):
    """Return the object without version and times: where null is applied, kube-apiserver too writes it each time."""
    if answer.status not in (200, 201):
        return answer.outcome
    metadata = {**answer.tree["metadata"], "resourceVersion": "", "generation": 0}
    metadata["managedFields"] = [{**entry, "time": ""} for entry in metadata.get("managedFields", ())]
    return {**answer.tree, "metadata": metadata}


async def _check_value(server, value):
    body = orjson.dumps(value)
    created = await server.send("POST", PATH, body)
    outcomes = [created.outcome[:60]]
    one = f"{PATH}/a"
    if created.status == 201:
        one = f"{PATH}/{created.tree['metadata']['name']}"
        await _check_stored(server, one, created)
    with contextlib.suppress(ValueError):
        for language, patch in (
            ("merge-patch+json", {"spec": value.get("spec"), "status": value.get("status")}),
            ("apply-patch+yaml", value),
        ):
            target = f"{one}?fieldManager=m&force=true"
            done = await server.send(
                "PATCH", target, orjson.dumps(patch), Content_Type=f"application/{language}"
            )
            outcomes.append(str(done.status))
            if done.status in (200, 201) and language == "apply-patch+yaml":
                again = await server.send(
                    "PATCH", target, orjson.dumps(patch), Content_Type=f"application/{language}"
                )
                if _content(again) != _content(done) and _INVALID_SINCE not in again.outcome:
                    raise Fault("what is applied again changes a custom object")
    for subresource in ("status", "scale"):
        await server.send("GET", f"{one}/{subresource}")
        await server.send("PUT", f"{one}/{subresource}", body)
    await clear(server, one)
    return " ".join(outcomes)


async def _check_stored(server, one, created):
    seen = await server.send("GET", one)
    if seen.body != created.body:
        raise Fault("a GET of a custom object differs from what its create answered")
    for path in (one, PATH):
        if (await server.send("GET", path, Accept=TABLE)).status != 200:
            raise Fault("a custom object is not had as a table")
    again = await server.send("PUT", one, created.body)
    if again.status == 422 and " accessor error: " in again.outcome:
        return  # kube-apiserver, too, reads the fields of the scale after a create has set the defaults of the status
    if again.status != 200:
        raise Fault(f"a custom object is refused as it was stored: {again.outcome}")
    if again.tree["metadata"]["resourceVersion"] == created.tree["metadata"]["resourceVersion"]:
        return
    # kube-apiserver, too, writes an object again whose defaults contain null; the next write changes nothing.
    last = await server.send("PUT", one, again.body)
    if last.body != again.body:
        raise Fault("a write of a custom object that changes nothing changes the resourceVersion")


TARGETS = (
    Target(
        name="definitions",
        generate=_make,
        check=_check,
        session=session,
        weight=4,
        mutate=_mutate,
        examples=60,
    ),
)
