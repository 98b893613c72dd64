"""CustomResourceDefinitions for tests, and waiting until what they define is served."""

GROUP = "example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"

ANY_VALUE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name="v1", *, schema=ANY_VALUE, storage=True, **others):
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    } | others


def definition(*versions, plural="widgets", kind="Widget", **spec):
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": [plural[:2]]}
    defaults = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions or [version()]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": defaults | spec,
    }


def conditions(tree):
    return {one["type"]: one["status"] for one in tree.get("status", {}).get("conditions") or ()}


async def until(client, name, holds):
    """Wait until a condition holds for the definition, and return it; None stands for a deleted one."""
    async with client.watch(f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name%3D{name}") as events:
        async for event in events:
            tree = None if event["type"] == "DELETED" else event["object"]
            if holds(tree):
                return tree
    raise AssertionError(f"the watch of {name} ended")


async def define(client, tree):
    """Create a definition and wait until it is served."""
    answer = await client.post(DEFINITIONS, tree)
    assert answer.status == 201, answer.body
    return await established(client, tree["metadata"]["name"])


async def established(client, name):
    """Return the definition, as soon as it is served."""
    return await until(
        client, name, lambda seen: seen is not None and conditions(seen).get("Established") == "True"
    )
