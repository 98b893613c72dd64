"""An operator of kopf: a Deployment for each Website, with what kopf recommends: idempotent handlers, owners, results in the status."""

import kopf
from kubernetes import client, config

config.load_kube_config()
MANAGER = "websites"


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "example.com/websites"


@kopf.on.resume("websites")
@kopf.on.create("websites")
@kopf.on.update("websites")
def apply_deployment(spec, name, namespace, **_):
    labels = {"website": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }
    kopf.adopt(deployment)
    client.AppsV1Api().patch_namespaced_deployment(
        name,
        namespace,
        deployment,
        field_manager=MANAGER,
        force=True,
        _content_type="application/apply-patch+yaml",
    )
    return {"replicas": spec["replicas"]}


@kopf.on.delete("websites")
def say_goodbye(logger, **_):
    """Do nothing: the garbage collector deletes the Deployment. With this handler, kopf adds a finalizer."""
    logger.info("the website goes")
