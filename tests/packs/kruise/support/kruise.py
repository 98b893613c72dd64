"""OpenKruise's workloads for tests."""

NAMESPACE = "/apis/apps.kruise.io/{version}/namespaces/default/{plural}"
UNITED = NAMESPACE.format(version="v1alpha1", plural="uniteddeployments")
CLONES = NAMESPACE.format(version="v1alpha1", plural="clonesets")
BETA_UNITED = NAMESPACE.format(version="v1beta1", plural="uniteddeployments")
BETA_CLONES = NAMESPACE.format(version="v1beta1", plural="clonesets")
ALPHA_STATEFUL = NAMESPACE.format(version="v1alpha1", plural="statefulsets")
STATEFUL = NAMESPACE.format(version="v1beta1", plural="statefulsets")

LABELS = {"app": "foo"}
SELECTOR = {"matchLabels": LABELS}


def pod_template(**spec):
    containers = [{"name": "c", "image": "nginx"}]
    return {"metadata": {"labels": LABELS}, "spec": {"containers": containers} | spec}


def workload(**spec):
    """The template of a subset's workload."""
    workload_spec = {"selector": SELECTOR, "template": pod_template()} | spec
    return {"metadata": {"labels": LABELS}, "spec": workload_spec}


def united_deployment(*subsets, template="deploymentTemplate", name="foo", **spec):
    defaults = {
        "replicas": 3,
        "selector": SELECTOR,
        "template": {template: workload()},
        "topology": {"subsets": [*subsets]},
    }
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "UnitedDeployment",
        "metadata": {"name": name},
        "spec": defaults | spec,
    }


def subset(name, **others):
    return {"name": name} | others


def clone_set(name="foo", **spec):
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {"selector": SELECTOR, "template": pod_template()} | spec,
    }


def stateful_set(name="foo", **spec):
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"selector": SELECTOR, "template": pod_template()} | spec,
    }
