"""An operator: a Website has a Deployment with a pod for each of its pages, and tells how many are ready."""

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


async def keep_deployments(api):
    """Each Website has its Deployment, of the right size."""
    async for event, website in api.watch("websites.example.com"):
        if event == "DELETED":
            continue  # the garbage collector sees to the rest
        wanted = await Deployment(deployment_of(website), api=api)
        if not await wanted.exists():
            await wanted.create()
        else:
            await wanted.scale(website.spec.pages)


async def report_status(api):
    """Each Website tells how many of its pods are ready."""
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
                tasks.create_task(keep_deployments(api))
                tasks.create_task(report_status(api))
        except* kr8s.ServerError as refused:
            print("begins anew:", *refused.exceptions, flush=True)  # watches begin with all that is there
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())
