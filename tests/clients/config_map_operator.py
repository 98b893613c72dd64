"""An operator made with kopf: it writes into each ConfigMap whose label `wanted` is set that it has seen it."""

import kopf


@kopf.on.create("v1", "configmaps", labels={"wanted": kopf.PRESENT})
async def handle(patch, **_):
    patch.setdefault("data", {})["handled"] = "yes"
