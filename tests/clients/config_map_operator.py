"""A kopf operator that sets `data.handled` in each ConfigMap with the label `wanted`."""

import kopf


@kopf.on.create("v1", "configmaps", labels={"wanted": kopf.PRESENT})
async def handle(patch, **_):
    patch.setdefault("data", {})["handled"] = "yes"
