"""Defaults and validation of OpenKruise's workloads, as its webhooks apply them."""

import pytest

from tests.packs.kruise.support.kruise import (
    CLONES,
    SELECTOR,
    STATEFUL,
    UNITED,
    clone_set,
    pod_template,
    stateful_set,
    subset,
    united_deployment,
    workload,
)
from tests.support.server import apiserver


@pytest.fixture
async def client():
    async with apiserver.running("--packs=kruise") as client:
        yield client


async def refusal(client, path, tree):
    answer = await client.post(path, tree)
    assert answer.status == 422, answer.body
    return answer.body["message"]


# --- what is filled in


async def test_clone_set_is_defaulted(client):
    spec = (await client.post(CLONES, clone_set())).body["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    del spec["template"], spec["selector"]
    assert spec == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "scaleStrategy": {},
        "updateStrategy": {"type": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0},
    }


async def test_fractional_percentage_is_accepted(client):
    tree = clone_set(replicas=8, updateStrategy={"partition": "12.5%"})
    spec = (await client.post(CLONES, tree)).body["spec"]
    assert spec["updateStrategy"]["partition"] == "12.5%"


async def test_advanced_stateful_set_is_defaulted(client):
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = (await client.post(STATEFUL, stateful_set(volumeClaimTemplates=[claim]))).body["spec"]
    assert "volumeMode" not in spec["volumeClaimTemplates"][0]["spec"]
    assert spec["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "partition": 0,
            "maxUnavailable": 1,
            "podUpdatePolicy": "ReCreate",
            "minReadySeconds": 0,
        },
    }
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert (spec["podManagementPolicy"], spec["replicas"]) == ("OrderedReady", 1)


async def test_united_deployment_is_defaulted(client):
    tree = united_deployment(subset("a", maxReplicas=2), subset("b"))
    spec = (await client.post(UNITED, tree)).body["spec"]
    assert spec["updateStrategy"] == {"type": "Manual", "manualUpdate": {}}
    assert spec["revisionHistoryLimit"] == 10
    assert [one["minReplicas"] for one in spec["topology"]["subsets"]] == [0, 0]


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        pytest.param("statefulSetTemplate", True, id="a StatefulSet's"),
        pytest.param("deploymentTemplate", False, id="a Deployment's"),
        pytest.param("advancedStatefulSetTemplate", False, id="an advanced StatefulSet's"),
        pytest.param("cloneSetTemplate", False, id="a CloneSet's"),
    ],
)
async def test_only_first_template_kind_is_defaulted(client, template, filled):
    spec = (await client.post(UNITED, united_deployment(subset("a"), template=template))).body["spec"]
    pod = spec["template"][template]["spec"]["template"]["spec"]
    assert ("restartPolicy" in pod) is filled


async def test_united_deployment_without_replicas_has_one(client):
    tree = united_deployment(subset("a", replicas=1))
    del tree["spec"]["replicas"]
    created = await client.post(UNITED, tree)
    assert (created.status, created.body["spec"]["replicas"]) == (201, 1)


async def test_reapplied_object_is_unchanged(client):
    created = (await client.post(CLONES, clone_set())).body
    again = clone_set()
    again["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    assert (await client.put(f"{CLONES}/foo", again)).body["metadata"] == created["metadata"]


# --- what is refused: UnitedDeployments

TWO = (subset("a"), subset("b"))
NO_TEMPLATE = "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate"


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        pytest.param(united_deployment(*TWO, selector={}), "empty selector is invalid for statefulset", id="3"),
        pytest.param(
            united_deployment(
                template="statefulSetTemplate",
                topology={"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}},
            ),
            "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling",
            id="4",
        ),
        pytest.param(united_deployment(*TWO, template="x") | {"spec": {"selector": SELECTOR}}, f"spec.template: Required value: should provide one of {NO_TEMPLATE}", id="5"),
        pytest.param(
            united_deployment(*TWO) | {"spec": {"selector": SELECTOR, "template": {"statefulSetTemplate": workload(), "cloneSetTemplate": workload()}}},
            f"should provide only one of {NO_TEMPLATE}",
            id="6",
        ),
        pytest.param(
            united_deployment(*TWO, selector={"matchLabels": {"app": "bar"}}),
            'spec.template.deploymentTemplate.metadata.labels: Invalid value: map[string]string{"app":"foo"}: `selector` does not match template `labels`',
            id="7",
        ),
        pytest.param(
            united_deployment(template="advancedStatefulSetTemplate", selector={"matchLabels": {"app": "bar"}}),
            "spec.template.statefulSetTemplate.metadata.labels: Invalid value",
            id="7 names another template",
        ),
        pytest.param(
            united_deployment(*TWO) | {"spec": {"selector": SELECTOR, "template": {"deploymentTemplate": workload(replicas=1)}}},
            "spec.template.deploymentTemplate.spec.replicas: Invalid value: 1: replicas in deploymentTemplate will not be used",
            id="8",
        ),
        pytest.param(
            united_deployment(*TWO) | {"spec": {"selector": SELECTOR, "template": {"statefulSetTemplate": workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}})}}},
            "partition in statefulSetTemplate will not be used",
            id="9",
        ),
        pytest.param(
            united_deployment(*TWO) | {"spec": {"selector": SELECTOR, "template": {"deploymentTemplate": workload(template=pod_template(containers=[]))}}},
            "spec.template.deploymentTemplate.spec.template.spec.containers: Required value",
            id="10",
        ),
        pytest.param(united_deployment(subset("a"), subset("a")), 'spec.topology.subsets[1].name: Invalid value: "a": duplicated subset name a', id="11 duplicate names"),
        pytest.param(united_deployment(subset("A_B")), "invalid subset name a lowercase RFC 1123 label", id="11 no label"),
        pytest.param(
            united_deployment(subset("a", nodeSelectorTerm={"matchExpressions": [{"key": "k", "operator": "Oops"}]})),
            "spec.topology.subsets[0].nodeSelectorTerm.matchExpressions[0].operator",
            id="12 term",
        ),
        pytest.param(united_deployment(subset("a", tolerations=[{"operator": "Oops"}])), "spec.topology.subsets[0].tolerations[0].operator", id="12 toleration"),
        pytest.param(
            united_deployment(topology={"scheduleStrategy": {"type": "Adaptive"}, "subsets": [subset("a", replicas=1), subset("b")]}),
            "spec.topology.subsets[0].replicas: Forbidden: specify replicas use minReplicas/maxReplicas to enable adaptive strategy",
            id="13",
        ),
        pytest.param(united_deployment(subset("a", replicas="x"), subset("b")), 'spec.topology.subsets[0].replicas: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"x"}: subset replicas (x) only support', id="14"),
        pytest.param(united_deployment(subset("a", minReplicas=3, maxReplicas=2), subset("b")), "subset[0].minReplicas must be less than or equal to maxReplicas", id="15"),
        pytest.param(
            united_deployment(subset("a", replicas=1), subset("b", maxReplicas=2)),
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a UnitedDeployment",
            id="16",
        ),
        pytest.param(united_deployment(subset("a", maxReplicas=1)), "at least one subset.maxReplicas must be empty", id="18"),
        pytest.param(
            united_deployment(subset("a", minReplicas=3_000_000), subset("b")),
            "sum of indicated subset.minReplicas should not be greater than sum of indicated subset.maxReplicas",
            id="19",
        ),
        pytest.param(
            united_deployment(subset("a", replicas=4), subset("b")),
            "sum of indicated subset replicas 4 should not be greater than UnitedDeployment replicas 3",
            id="20",
        ),
        pytest.param(
            united_deployment(subset("a", replicas=1), subset("b", replicas=1)),
            "if replicas of all subsets are provided, the sum of indicated subset replicas 2 should equal UnitedDeployment replicas 3",
            id="21",
        ),
        pytest.param(
            united_deployment(*TWO, updateStrategy={"manualUpdate": {"partitions": {"c": 1}}}),
            'spec.updateStrategy.manualUpdate.partitions: Invalid value: map[string]int32{"c":1}: subset c does not exist',
            id="23",
        ),
    ],
)  # fmt: skip
async def test_invalid_united_deployment_is_refused(client, tree, problem):
    tree["spec"] = {name: value for name, value in tree["spec"].items() if value is not None}
    message = await refusal(client, UNITED, tree)
    assert message.startswith('admission webhook "vuniteddeployment.kb.io" denied the request: ')
    assert problem in message


@pytest.mark.parametrize(
    ("path", "kind", "tree"),
    [
        pytest.param(UNITED, "UnitedDeployment", united_deployment(*TWO, replicas=-1), id="UnitedDeployment"),
        pytest.param(CLONES, "CloneSet", clone_set(replicas=-1), id="CloneSet"),
    ],
)
async def test_negative_replicas_are_refused_before_webhooks(client, path, kind, tree):
    message = await refusal(client, path, tree)
    assert message == (
        f'{kind}.apps.kruise.io "{tree["metadata"]["name"]}" is invalid: '
        ".spec.replicas: Invalid value: -1: should be a non-negative integer"
    )


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        pytest.param(
            {"topology": {"subsets": [subset("a", tolerations=[{"key": "k", "operator": "Exists"}])]}},
            "spec.topology.subsets[0].tolerations: Forbidden: may not be changed in an update",
            id="tolerations",
        ),
        pytest.param(
            {"topology": {"subsets": [subset("a", nodeSelectorTerm={"matchExpressions": [{"key": "k", "operator": "Exists"}]})]}},
            "spec.topology.subsets[0].nodeSelectorTerm: Forbidden: may not be changed in an update",
            id="nodes",
        ),
        pytest.param(
            {"template": {"statefulSetTemplate": {"spec": {"serviceName": "x"}}}},
            "updates to statefulsetTemplate spec for fields other than 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy', 'minReadySeconds' and 'ordinals' are forbidden",
            id="a StatefulSet's template",
        ),
    ],
)  # fmt: skip
async def test_forbidden_united_deployment_change_is_refused(client, changed, problem):
    await client.post(UNITED, united_deployment(subset("a"), template="statefulSetTemplate"))
    answer = await client.patch(f"{UNITED}/foo", {"spec": changed})
    assert answer.status == 422
    assert problem in answer.body["message"]


async def test_template_may_change_its_kind(client):
    await client.post(UNITED, united_deployment(subset("a")))
    change = {"spec": {"template": {"deploymentTemplate": None, "cloneSetTemplate": workload()}}}
    assert (await client.patch(f"{UNITED}/foo", change)).status == 200


# --- what is refused: CloneSets


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"selector": {}}, "empty selector is invalid for cloneset", id="selector"),
        pytest.param({"template": pod_template(restartPolicy="Never")}, 'spec.template.spec.restartPolicy: Unsupported value: "Never"', id="restarts"),
        pytest.param({"template": pod_template(activeDeadlineSeconds=5)}, "activeDeadlineSeconds in cloneset is not Supported", id="deadline"),
        pytest.param({"minReadySeconds": 9, "progressDeadlineSeconds": 9}, "spec.progressDeadlineSeconds: Invalid value: 9: must be greater than minReadySeconds", id="progress"),
        pytest.param({"scaleStrategy": {"podsToDelete": ["p", "p"]}}, "duplicated items [p]", id="a pod twice"),
        pytest.param({"scaleStrategy": {"podsToDelete": ["p"]}}, 'find pod p failed: Pod "p" not found', id="no pod"),
        pytest.param({"updateStrategy": {"type": "Foo"}}, "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'", id="type"),
        pytest.param({"updateStrategy": {"type": "InPlaceOnly", "maxSurge": 1}}, "can not use maxSurge with strategy type InPlaceOnly", id="surge"),
        pytest.param({"updateStrategy": {"maxUnavailable": 0}}, "maxUnavailable and maxSurge should not both be less than 1", id="maxUnavailable 0 without surge"),
        pytest.param({"updateStrategy": {"partition": "x"}}, "failed GetScaledValueFromIntOrPercent for partition", id="partition"),
        pytest.param(
            {"updateStrategy": {"priorityStrategy": {"orderPriority": [{"orderedKey": ""}]}}},
            "spec.updateStrategy.priorityStrategy: Required value: order key can not be empty",
            id="order",
        ),
        pytest.param(
            {"updateStrategy": {"scatterStrategy": [{"key": "k", "value": "v"}] * 2}},
            "spec.updateStrategy.scatterStrategy: Required value: duplicated key=k value=v",
            id="scatter",
        ),
    ],
)  # fmt: skip
async def test_invalid_clone_set_is_refused(client, spec, problem):
    assert problem in await refusal(client, CLONES, clone_set(**spec))


async def test_only_images_may_change_in_place(client):
    await client.post(CLONES, clone_set(updateStrategy={"type": "InPlaceOnly"}))
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    assert (await client.patch(f"{CLONES}/foo", image, kind="json-patch+json")).status == 200
    name = [{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "d"}]
    answer = await client.patch(f"{CLONES}/foo", name, kind="json-patch+json")
    assert "InPlaceOnly, but found replace /containers/0/name" in answer.body["message"]


async def test_clone_set_selector_is_immutable(client):
    await client.post(CLONES, clone_set())
    change = {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}}
    answer = await client.patch(f"{CLONES}/foo", change)
    assert answer.status == 422
    assert "spec: Forbidden: updates to cloneset spec for fields other than" in answer.body["message"]


async def test_empty_list_is_no_change_of_selector(client):
    await client.post(CLONES, clone_set())
    change = {"spec": {"selector": {"matchExpressions": []}}}
    assert (await client.patch(f"{CLONES}/foo", change)).status == 200


async def test_invalid_pod_template_is_refused(client):
    answer = await client.post(CLONES, clone_set(template={"spec": {"containers": "none"}}))
    assert answer.status == 400
    assert answer.body["message"].startswith(
        'admission webhook "mcloneset.kb.io" denied the request: json: cannot'
    )


# --- what is refused: advanced StatefulSets


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"podManagementPolicy": "Foo"}, "must be 'OrderedReady' or 'Parallel'", id="management"),
        pytest.param({"reserveOrdinals": [1, -1]}, "1 th reserve ordinal is negative: -1", id="reserved number"),
        pytest.param({"reserveOrdinals": ["x"]}, '0 th reserve ordinal is not a valid range: x, spec: Invalid value: []intstr.IntOrString{intstr.IntOrString{Type:1, IntVal:0, StrVal:"x"}}: 0 th reserve ordinal is invalid: x, err = invalid range x', id="two errors of a range"),
        pytest.param({"reserveOrdinals": ["3-1"]}, "0 th reserve ordinal is invalid: 3-1, err = invalid range 3-1", id="range with its start above its end"),
        pytest.param({"reserveOrdinals": ["3"]}, "0 th reserve ordinal is not a valid range: 3", id="reserved range"),
        pytest.param({"scaleStrategy": {"maxUnavailable": 2}}, 'spec.scaleStrategy.maxUnavailable: Invalid value: intstr.IntOrString{Type:0, IntVal:2, StrVal:""}: can only work with Parallel', id="scale"),
        pytest.param({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}, "should not be less than 1", id="none unavailable"),
        pytest.param({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}, "can only work with Parallel PodManagementPolicyType", id="some unavailable"),
        pytest.param({"updateStrategy": {"rollingUpdate": {"minReadySeconds": 301}}}, "must be no more than 300 seconds", id="ready"),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}},
            "must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceOnly",
            id="gate",
        ),
        pytest.param({"updateStrategy": {"rollingUpdate": {"unorderedUpdate": {}}}}, "unorderedUpdate can only work with Parallel", id="unordered"),
        pytest.param({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}, "only allowed for updateStrategy 'RollingUpdate'", id="on delete"),
        pytest.param({"updateStrategy": {"type": "Foo"}}, "must be 'RollingUpdate' or 'OnDelete'", id="type"),
        pytest.param({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Foo"}}, 'Unsupported value: "Foo"', id="retention"),
        pytest.param({"template": pod_template() | {"metadata": {}}}, "`selector` does not match template `labels`", id="labels"),
    ],
)  # fmt: skip
async def test_invalid_advanced_stateful_set_is_refused(client, spec, problem):
    assert problem in await refusal(client, STATEFUL, stateful_set(**spec))


async def test_advanced_stateful_set_fields_are_immutable(client):
    await client.post(STATEFUL, stateful_set())
    answer = await client.patch(f"{STATEFUL}/foo", {"spec": {"serviceName": "x"}})
    assert answer.status == 422
    assert (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals'" in answer.body["message"]
    )
