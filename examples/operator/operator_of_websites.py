"""An operator: each Website gets a Deployment with a pod for each page; its status has the number of ready pods."""

import asyncio

import kr8s.asyncio
from kr8s.asyncio.objects import Deployment, new_class

Website = new_class(kind="Website", version="example.com/v1", namespaced=True, plural="websites")


def deployment_of(website):
    labels = {"website": website.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": website.name,
            "namespace": website.namespace,
            "ownerReferences": [owner(website)],
        },
        "spec": {
            "replicas": website.spec.pages,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "page", "image": "nginx:1.29"}]},
            },
        },
    }


def owner(website):
    identity = {name: website.raw[name] for name in ("apiVersion", "kind")}
    return identity | {"name": website.name, "uid": website.metadata.uid, "controller": True}


async def reconcile_deployments(api):
    """Create a Deployment for each Website, and scale it."""
    async for event, website in api.watch("websites.example.com"):
        if event == "DELETED":
            continue  # the garbage collector deletes the Deployment
        deployment = await Deployment(deployment_of(website), api=api)
        if not await deployment.exists():
            await deployment.create()
        else:
            await deployment.scale(website.spec.pages)


async def report_status(api):
    """Write the number of ready pods into the status of each Website."""
    async for event, deployment in api.watch("deployments.apps"):
        owners = deployment.metadata.get("ownerReferences", ())
        if event != "DELETED" and owners and owners[0].kind == "Website":
            website = await Website.get(owners[0].name, namespace=deployment.namespace, api=api)
            ready = deployment.status.get("readyReplicas", 0)
            await website.patch({"status": {"ready": ready}}, subresource="status")


async def main():
    api = await kr8s.asyncio.api()
    while True:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(reconcile_deployments(api))
                tasks.create_task(report_status(api))
        except* kr8s.ServerError as errors:
            print(
                "restarting:", *errors.exceptions, flush=True
            )  # new watches begin with all existing objects
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())
