import os
import sys

import pytest
import yaml

from mockube.exploration.plans import TEXTS
from mockube.exploration.scenario import InvalidScenario, ObjectRef, read_scenario, read_scenario_file

SITE = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "blog", "namespace": "shop"}}


def read(tmp_path, **fields):
    return read_scenario({"act": [{"apply": SITE}], **fields}, tmp_path)


def test_subject_is_in_the_namespace_of_its_step(tmp_path):
    page = {"apiVersion": "example.com/v1", "kind": "Page", "metadata": {"name": "a"}}
    scenario = read(tmp_path, act=[{"apply": page, "namespace": "shop"}])
    assert scenario.subject == ObjectRef(target="Page.example.com/a", namespace="shop")


def test_steps_have_several_forms(tmp_path):
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    scenario = read(
        tmp_path,
        arrange=[
            "a.yaml",
            "kubectl label node node-1 a='b c'",
            SITE,
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
        ],
        act=[
            {"apply": ["a.yaml", SITE], "until": ["Site/blog Ready -n shop"]},
            {"delete": "ConfigMap/a", "until": ["ConfigMap/a gone"]},
            {"patch": "Site/blog", "with": {"spec": {"size": 2}}, "namespace": "shop", "name": "grow"},
        ],
    )
    assert [step.operation.type for step in scenario.arrange] == ["apply", "kubectl", "apply", "apply"]
    assert scenario.arrange[1].operation.arguments == ["label", "node", "node-1", "a=b c"]
    first, second, third = scenario.act
    assert [tree["metadata"]["name"] for tree in first.operation.objects] == ["a", "blog"]
    assert first.until[0].object == ObjectRef(target="Site/blog", namespace="shop")
    assert first.until[0].condition == "Ready"
    assert (second.operation.target.target, second.until[0].condition) == ("ConfigMap/a", "gone")
    assert (third.name, third.operation.patch, third.operation.target.namespace) == (
        "grow",
        {"spec": {"size": 2}},
        "shop",
    )


def test_only_leaves_out_all_other_disturbances(tmp_path):
    assert read(tmp_path, only=["restart", "timeout"]).without == {*TEXTS} - {"restart", "timeout"}
    assert read(tmp_path, without=["restart"]).without == {"restart"}


def test_subject_is_the_first_applied_object(tmp_path):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites"},
    }
    scenario = read(tmp_path, act=[{"apply": [definition, SITE]}])
    assert scenario.subject == ObjectRef(target="Site.example.com/blog", namespace="shop")
    assert read(tmp_path, subject="Site/other -n x").subject == ObjectRef(target="Site/other", namespace="x")
    assert read(tmp_path, act=["kubectl get nodes"]).subject is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"act": []}, "act: a scenario needs at least one step", id="no step"),
        pytest.param({"acts": []}, 'the scenario: unknown field "acts": did you mean "act"?', id="unknown field"),
        pytest.param({"act": {}}, "act: a scenario needs at least one step", id="empty map"),
        pytest.param({"act": [{"until": []}]}, "act[0]: a step has one of apply, delete, patch, kubectl", id="nothing to do"),
        pytest.param({"act": [{"apply": SITE, "delete": "a/b"}]}, "act[0]: a step has one of apply, delete, patch, kubectl", id="two"),
        pytest.param({"act": [{"apply": "no.yaml"}]}, "act[0].apply: ", id="no file"),
        pytest.param({"act": [{"delete": "blog"}]}, "act[0].delete: an object is KIND/NAME, not 'blog'", id="no kind"),
        pytest.param({"act": [{"patch": "Site/blog"}]}, "act[0].with: a patch is a map or a list", id="no patch"),
        pytest.param({"act": [{"apply": SITE, "until": ["Site/blog"]}]}, "act[0].until[0]: an expectation is KIND/NAME CONDITION", id="no condition"),
        pytest.param({"expect": ["Site/blog jsonpath={.a"]}, "expect[0]: ", id="bad condition"),
        pytest.param({"expect": "Site/blog Ready"}, "expect: must be a list, not str", id="no list"),
        pytest.param({"invariants": ["quorum-is-kep"]}, 'invariants[0]: no invariant of the library is "quorum-is-kep": did you mean "quorum-is-kept"?', id="unknown invariant"),
        pytest.param({"invariants": [{"expression": "object.x +"}]}, "invariants[0]: expression: ", id="bad expression"),
        pytest.param({"operator": {"serviceAccount": "a"}}, "operator.serviceAccount: must be NAMESPACE/NAME, not 'a'", id="account"),
        pytest.param({"operator": {"podOf": "manager"}}, "operator.podOf: an object is KIND/NAME, not 'manager'", id="pod of nothing"),
        pytest.param({"operator": {"podOf": "deployment/a", "serviceAccount": "a/b"}}, "operator.serviceAccount: that of the pod is used", id="two accounts"),
        pytest.param({"operator": {"environment": {"A": 1}}}, "operator.environment: must be a map of texts", id="environment"),
        pytest.param({"operator": {"environment": {1: "a"}}}, "operator.environment: must be a map of texts", id="name of a variable"),
        pytest.param({"operator": {"environment": {"A=B": "a"}}}, 'operator.environment: "A=B" is no name of a variable', id="equals sign"),
        pytest.param({"operator": {"ownNetwork": "yes"}}, "operator.ownNetwork: must be true or false, not 'yes'", id="network"),
        pytest.param({"act": ["kubectl get pods -l 'a"]}, "act[0].kubectl: No closing quotation", id="quotation"),
        pytest.param({"cluster": {"flags": 5}}, "cluster.flags: must be a list, not int", id="flags"),
        pytest.param({"cluster": {"flags": "--x"}}, "cluster.flags: must be a list, not str", id="one flag"),
        pytest.param({"cluster": {"flags": [5]}}, "cluster.flags[0]: must be a text, not 5", id="number as a flag"),
        pytest.param({"without": [["restart"]]}, "without[0]: must be a text", id="list of lists"),
        pytest.param({"without": ["restarts"]}, 'without[0]: there is no disturbance "restarts": did you mean "restart"?', id="unknown disturbance"),
        pytest.param({"only": ["restarts"]}, 'only[0]: there is no disturbance "restarts": did you mean "restart"?', id="unknown only disturbance"),
        pytest.param({"only": []}, "only: it names no disturbance", id="empty only"),
        pytest.param({"only": ["restart"], "without": ["timeout"]}, "only: leave out `without`", id="only and without"),
        pytest.param({"timeout": True}, "timeout: must be a number of seconds, not True", id="timeout"),
        pytest.param({"cluster": {"node": 3}}, 'cluster: unknown field "node": did you mean "nodes"?', id="cluster"),
    ],
)  # fmt: skip
def test_mistakes_have_their_places(fields, message, tmp_path):
    with pytest.raises(InvalidScenario) as raised:
        read(tmp_path, **fields)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "scenario.yaml: No such file or directory", id="missing"),
        pytest.param("a: [", "scenario.yaml: ", id="no YAML"),
        pytest.param("- a", "scenario.yaml: the scenario: must be a map, not list", id="a list"),
        pytest.param("", "scenario.yaml: the scenario: must be a map, not NoneType", id="empty"),
    ],
)
def test_files_that_are_no_scenario(content, message, tmp_path):
    path = tmp_path / "scenario.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidScenario, match=message):
        read_scenario_file(path)


BLOG = ("Site.example.com", "default", "blog")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("Site.example.com/blog", True, id="kind with group"),
        pytest.param("site/blog", True, id="kind"),
        pytest.param("Site.other.com/blog", False, id="another group"),
        pytest.param("Site/other", False, id="another name"),
    ],
)
def test_subject_is_an_object(target, expected):
    assert ObjectRef(target=target).is_of(BLOG) == expected
    assert not ObjectRef(target=target, namespace="other").is_of(BLOG)


def test_subject_of_exactly_the_same_kind_is_found_first():
    core, other = ("Service", "default", "web"), ("Service.serving.knative.dev", "default", "web")
    assert ObjectRef(target="Service/web").find([other, core]) == core
    assert ObjectRef(target="service.serving.knative.dev/web").find([core, other]) == other
    assert ObjectRef(target="service/web").find([other]) == other
    assert ObjectRef(target="service/web").find([BLOG]) is None


HELM = f"""#!{sys.executable}
import sys, yaml
if sys.argv[1] == "show":
    sys.exit()
data = {{"arguments": " ".join(sys.argv[2:])}}
for argument in sys.argv:
    if argument.startswith("--values="):
        data |= yaml.safe_load(open(argument.removeprefix("--values=")))
if "fail" in data:
    sys.exit("Error: " + data["fail"])
metadata = {{"name": sys.argv[2]}}
print("---")
print(yaml.dump({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}}))
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with a chart `shop`, and a helm that renders its arguments and values."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/Chart.yaml").write_text("{apiVersion: v2, name: shop, version: 1.0.0}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").write_text(HELM)
    (tmp_path / "bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_chart_is_rendered_with_its_values(shop):
    (shop / "more.yaml").write_text(yaml.dump({"color": "blue", "size": 1}))
    values = [{"color": "red"}, "more.yaml", {"size": 2}]
    step = {
        "chart": "shop",
        "release": "web",
        "namespace": "shops",
        "values": values,
        "until": ["configmap/web gone"],
    }
    (arranged,) = read(shop, arrange=[step], cluster={"version": "1.35"}).arrange
    (tree,) = arranged.operation.objects
    assert (arranged.name, arranged.operation.type) == ("chart shop", "apply")
    assert tree["metadata"]["namespace"] == arranged.until[0].object.namespace == "shops"
    assert (tree["metadata"]["name"], tree["data"]["color"], tree["data"]["size"]) == ("web", "blue", 2)
    for flag in ("--namespace=shops", "--kube-version=1.35", "--include-crds", "--skip-tests"):
        assert flag in tree["data"]["arguments"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        pytest.param({"chart": "none"}, r"act\[0\]\.chart: .*none is no chart", id="no chart"),
        pytest.param({"chart": "a.yaml"}, r"act\[0\]\.chart: .*a\.yaml is no chart", id="a manifest"),
        pytest.param({"chart": "shop", "values": "none.yaml"}, r'chart: --values: the path ".*none\.yaml" does not exist', id="no values"),
        pytest.param({"chart": "shop", "values": [1]}, r"act\[0\]\.values\[0\]: must be a text", id="values"),
        pytest.param({"chart": "shop", "values": {"fail": "no color"}}, r"act\[0\]\.chart: .*no color", id="helm fails"),
        pytest.param({"apply": SITE, "values": {}}, r"act\[0\]\.values: only a step with chart has it", id="values of an object"),
        pytest.param({"apply": SITE, "with": {}}, r"act\[0\]\.with: only a step with patch has it", id="patch of an object"),
    ],
)  # fmt: skip
def test_mistakes_of_charts(shop, step, message):
    (shop / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    with pytest.raises(InvalidScenario, match=message):
        read(shop, act=[step])


def test_chart_needs_helm(shop, monkeypatch):
    monkeypatch.setenv("PATH", str(shop))
    with pytest.raises(InvalidScenario, match="helm, which renders it, is not on PATH"):
        read(shop, arrange=[{"chart": "shop"}])


def test_version_of_the_cluster_is_a_known_one(tmp_path):
    with pytest.raises(InvalidScenario, match=r"cluster\.version: "):
        read(tmp_path, cluster={"version": "1.0"})
