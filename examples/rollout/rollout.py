"""Roll a Deployment to a new image and watch it, with the official client."""

from pathlib import Path

from kubernetes import client, watch

from mockube import Cluster

with Cluster(nodes=3) as cluster:
    cluster.apply(Path("web.yaml"))
    cluster.wait("Deployment", "web", "Available")
    print("web runs nginx:1.28")

    apps = client.AppsV1Api(cluster.kubernetes())
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}}}}
    wanted = apps.patch_namespaced_deployment("web", "default", image)

    changes = watch.Watch()
    for event in changes.stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
        status = event["object"].status
        if status.observed_generation < wanted.metadata.generation:
            continue  # it tells of the old template
        print(
            f"{status.updated_replicas or 0} updated, {status.available_replicas or 0} of {status.replicas} available"
        )
        if status.updated_replicas == status.replicas == status.available_replicas == wanted.spec.replicas:
            changes.stop()
    print("web runs nginx:1.29")
