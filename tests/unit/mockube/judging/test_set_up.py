"""How the operator's objects are installed, in a trial and by hand."""

from pathlib import Path

from mockube.judging.context import about, apply_command, target
from mockube.judging.trial_cluster import in_namespace, without_pods
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
