"""Defaults of created objects equal those of a real server, for every recorded creation.

Changes that other parts of the server make to a new object are removed from both sides, by the table below and
for the reasons in it. Values that the recorder blanked out may be anything.
"""

import re
from fnmatch import fnmatchcase

import orjson
import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import SteppedClock
from tests.support.recorded import recordings

SCHEMAS = builtin.load()
DECODER = Decoder()
DEFAULTER = Defaulter(SCHEMAS, clock=SteppedClock())

ANY = "*"

MADE_ELSEWHERE = {
    ANY: {
        "metadata uid": "given to what is created",
        "metadata creationTimestamp": "given to what is created",
        "metadata namespace": "the URL's",
        "metadata generation": "given by strategies",
        "metadata resourceVersion": "the store's",
        "metadata managedFields": "field management",
        "metadata selfLink": "no client's to give",
        "metadata deletionTimestamp": "no client's to give",
    },
    "APIService": {"status conditions": "strategy"},
    "CertificateSigningRequest": {
        "spec username": "strategy, from the user",
        "spec uid": "strategy, from the user",
        "spec groups": "strategy, from the user",
    },
    "ClusterRole": {"rules": "the store keeps an empty list as none"},
    "CSINode": {"spec drivers": "the store keeps an empty list as none"},
    "DaemonSet": {"metadata annotations deprecated.daemonset.template.generation": "strategy"},
    "EndpointSlice": {"ports": "the store keeps an empty list as none"},
    "Job": {
        "metadata labels batch.kubernetes.io/*": "strategy, for the selector",
        "metadata labels controller-uid": "strategy, for the selector",
        "metadata labels job-name": "strategy, for the selector",
        "spec template metadata labels batch.kubernetes.io/*": "strategy, for the selector",
        "spec template metadata labels controller-uid": "strategy, for the selector",
        "spec template metadata labels job-name": "strategy, for the selector",
        "spec selector": "strategy",
    },
    "LimitRange": {"metadata name": "strategy, where there is none"},
    "Namespace": {"spec finalizers": "strategy"},
    "Node": {
        "spec podCIDRs": "kept equal to podCIDR",
        "spec taints [key=node.kubernetes.io/not-ready]": "admission",
    },
    "PersistentVolume": {
        "metadata finalizers": "admission",
        "status lastPhaseTransitionTime": "strategy",
    },
    "PersistentVolumeClaim": {"metadata finalizers": "admission"},
    "Pod": {
        "spec serviceAccount": "admission, and kept equal to serviceAccountName",
        "spec serviceAccountName": "admission",
        "spec volumes [name=kube-api-access-*]": "admission",
        "spec *ontainers [] volumeMounts [name=kube-api-access-*]": "admission",
        "spec tolerations [key=node.kubernetes.io/*]": "admission",
        "spec priority": "admission",
        "spec preemptionPolicy": "admission",
        "status phase": "strategy",
        "status qosClass": "strategy",
    },
    "Secret": {"data": "stringData is put into it", "stringData": "goes into data"},
    "SelfSubjectAccessReview": {"status": "the answer"},
    "SelfSubjectReview": {"status": "the answer"},
    "Service": {
        "spec clusterIP": "allocated",
        "spec clusterIPs": "allocated",
        "spec ipFamilies": "allocated",
        "spec ipFamilyPolicy": "allocated",
        "spec ports [] nodePort": "allocated",
    },
    "StatefulSet": {
        "spec volumeClaimTemplates [] kind": "every claim in one says it",
        "spec volumeClaimTemplates [] apiVersion": "every claim in one says it",
    },
    "TokenRequest": {"metadata name": "the account's", "status": "the answer"},
    "TokenReview": {"status": "the answer"},
    "VolumeAttributesClass": {"metadata finalizers": "admission"},
    "admission/limitrange": {
        "metadata annotations": "admission",
        "spec containers [] resources *": "admission",
    },
}
"""By kind, or by the only recording that shows it: the path, and the component that sets it.

A path's steps are patterns of names; of a list's elements `[]` means all, `[field=pattern]` those whose field is so.
"""

GONE = object()

BLANK = re.compile(r"<(time|token)>")
"""Values that differ from run to run. Other blanks are at paths that are removed."""

ANSWERED = "Status"
"""The response kind of subresources that do not create an object of their own."""


def creations():
    """Yield each recorded request that created an object of a built-in kind, with the created object."""
    found = []
    for parameter in recordings.cases():
        if parameter.values[0] is None:
            return [parameter]
        case = parameter.values[0]
        for number, (request, response) in enumerate(recordings.steps(case)):
            recorded = response.get("body")
            if request.get("method") == "POST" and response["status"] == 201 and is_built_in(recorded):
                creation = {"id": case["id"], "given": request_body(request), "made": recorded}
                found.append(pytest.param(creation, id=f"{case['id']}#{number}"))
    return found


def is_built_in(tree):
    return tree["kind"] != ANSWERED and SCHEMAS.kind(tree["apiVersion"], tree["kind"]) is not None


def request_body(request):
    body = request["body"] if request.get("body") is not None else orjson.loads(request["raw"])
    return orjson.loads(orjson.dumps(body).replace(b"${ns}", b"<ns>"))


def without(tree, path):
    """Return the tree without the value at a path, and without parents that become empty."""
    step, *rest = path
    if isinstance(tree, dict):
        left = {
            name: remaining_or_gone(value, rest) if fnmatchcase(name, step) else value
            for name, value in tree.items()
        }
        return {name: value for name, value in left.items() if value is not GONE}
    if isinstance(tree, list):
        left = [remaining_or_gone(item, rest) if is_selected(item, step) else item for item in tree]
        return [item for item in left if item is not GONE]
    return tree


def is_selected(item, step):
    field, _, pattern = step.strip("[]").partition("=")
    return not field or fnmatchcase(item.get(field, ""), pattern)


def remaining_or_gone(value, path):
    left = without(value, path) if path else GONE
    return GONE if left in ({}, []) else left


def without_generated_fields(tree, creation):
    for key in (ANY, creation["made"]["kind"], creation["id"]):
        for path in MADE_ELSEWHERE.get(key, ()):
            tree = without(tree, path.split())
    return tree


def with_blanks(tree, recorded):
    """Return the tree, with blanks where the recorder has blanks in the other."""
    if isinstance(tree, dict) and isinstance(recorded, dict):
        return {name: with_blanks(value, recorded.get(name)) for name, value in tree.items()}
    if isinstance(tree, list) and isinstance(recorded, list):
        return [with_blanks(*both) for both in zip(tree, recorded, strict=False)] + tree[len(recorded) :]
    return recorded if isinstance(recorded, str) and BLANK.fullmatch(recorded) and tree else tree


@pytest.mark.parametrize("creation", creations())
def test_defaults_match_recorded_objects(creation):
    api_version, kind = creation["made"]["apiVersion"], creation["made"]["kind"]
    tree = {"apiVersion": api_version, "kind": kind} | creation["given"]
    actual = DECODER.decode(SCHEMAS.kind(api_version, kind), tree).tree
    DEFAULTER.default_object(api_version, kind, actual)
    expected = without_generated_fields(creation["made"], creation)
    assert with_blanks(without_generated_fields(actual, creation), expected) == expected
