"""How the operator's objects are installed, in a trial and by hand."""

from pathlib import Path
from typing import Any

from mockube.apimachinery.schema import minors
from mockube.component_base.clock import SteppedClock
from mockube.judging.context import Context, about, apply_command, target
from mockube.judging.inputs import Release, Sample
from mockube.judging.trial_cluster import Setup, in_namespace, without_pods
from mockube.lint.objects import LintObject
from mockube.lint.renderers import ChartOptions

CHART = ChartOptions(release="mine", namespace="system", flags=["--set=a=b c"])


def test_input_is_installed_as_what_it_is(tmp_path: Path) -> None:
    chart, kustomization = tmp_path / "chart", tmp_path / "config"
    for folder, file in ((chart, "Chart.yaml"), (kustomization, "kustomization.yaml")):
        folder.mkdir()
        (folder / file).touch()
    assert apply_command("deploy.yaml", CHART) == "kubectl apply --server-side -f deploy.yaml"
    assert apply_command(str(kustomization), CHART) == f"kubectl apply --server-side -k {kustomization}"
    assert apply_command(str(chart), CHART) == (
        f"helm template mine {chart} --namespace=system --include-crds '--set=a=b c' | kubectl apply --server-side -f -"
    )


def test_workload_of_the_operator_has_no_pods() -> None:
    deployment = {"kind": "Deployment", "spec": {"replicas": 2, "selector": {}}}
    assert without_pods(deployment)["spec"] == {"replicas": 0, "selector": {}}
    daemon_set = without_pods({"kind": "DaemonSet", "spec": {"template": {"spec": {"containers": []}}}})
    assert daemon_set["spec"]["template"]["spec"]["nodeSelector"] == {"mockube.dev/no-node": "true"}
    assert "replicas" not in daemon_set["spec"]


def test_object_moves_only_if_it_names_a_namespace() -> None:
    assert in_namespace({"metadata": {"name": "a"}}, "other") == {"metadata": {"name": "a"}}
    moved = in_namespace({"metadata": {"name": "a", "namespace": "b"}}, "other")
    assert moved["metadata"]["namespace"] == "other"


def test_object_is_named_for_people_and_for_kubectl() -> None:
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}}
    assert (about(tree), target(tree)) == ("Deployment web", "deployment.apps/web -n a")


DEFINITION: Any = {
    "metadata": {"name": "sites"},
    "spec": {"group": "a", "scope": "Namespaced", "names": {"plural": "sites", "kind": "Site"}},
}
SITE: Any = {"apiVersion": "a/v1", "kind": "Site", "metadata": {"name": "blog", "namespace": "web"}}
MANAGER: Any = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "manager", "namespace": "system"},
    "spec": {
        "template": {
            "spec": {
                "serviceAccountName": "manager",
                "containers": [
                    {"env": [{"name": "MODE", "value": "a b"}, {"name": "FROM", "valueFrom": {}}]}
                ],
            }
        }
    },
}
HOOKS: Any = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hooks"},
}


def _set_up(*trees: Any, **fields: Any) -> list[str]:
    objects = [LintObject(file="deploy.yaml", tree=tree) for tree in trees]
    release = Release(
        names=["deploy.yaml"], objects={minors.NEWEST: objects}, command=["./m", "a b"], chart=CHART
    )
    sample = Sample(resource=SITE, others=[], definition=DEFINITION, names=["sample.yaml"])
    setup = Setup(release=release, sample=sample, namespace="default", clock=SteppedClock(), **fields)
    return Context(setup=setup).set_up


def test_set_up_creates_namespaces_that_the_manifests_do_not_have() -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}}
    created = [each for each in _set_up(MANAGER) if "create namespace" in each]
    assert created == ["kubectl create namespace system", "kubectl create namespace web"]
    assert "kubectl create namespace system" not in _set_up(MANAGER, system)


def test_set_up_starts_the_operator_with_the_variables_of_its_container() -> None:
    assert _set_up(MANAGER)[-1] == "MODE='a b' KUBECONFIG=operator.kubeconfig ./m 'a b' &"
    assert _set_up()[-1] == "./m 'a b' &"


def test_set_up_deletes_webhooks_without_an_address() -> None:
    (deleted,) = (each for each in _set_up(HOOKS) if "kubectl delete" in each)
    assert deleted.startswith(
        "kubectl delete validatingwebhookconfiguration.admissionregistration.k8s.io/hooks "
    )
    commands = _set_up(HOOKS, webhook_services=["system/hooks=127.0.0.1:9443"])
    assert commands[0] == "mockube up --detach --name=by-hand --webhook-service=system/hooks=127.0.0.1:9443"
    assert not any("kubectl delete" in each for each in commands)
