"""What was right of one pod is right of those like it, and of no others."""

import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.core.pod.context import (
    STRICT,
    PodValidationOptions,
    cached_by_spec,
    is_large,
    spec_cache_key,
)
from mockube.apiserver.kinds.core.pod.spec import check_pod_spec
from mockube.apiserver.kinds.core.pod.warnings import template_warnings

CONTAINER = {
    "name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
    "terminationMessagePath": "/dev/termination-log", "resources": {},
}  # fmt: skip
SPEC = {
    "containers": [CONTAINER], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
}  # fmt: skip
POD = {"name": "p", "namespace": "ns"}


def found(spec, metadata=POD, options=STRICT):
    return [str(error) for error in check_pod_spec(spec, metadata, ROOT, options)]


def with_volumes(*volumes):
    return {**SPEC, "volumes": [*volumes]}


def with_tokens(*names):
    """Volumes of these names, the first of which is mounted."""
    mounts = [{"name": names[0], "mountPath": "/token"}]
    volumes = [{"name": name, "emptyDir": {}} for name in names]
    return with_volumes(*volumes) | {"containers": [{**CONTAINER, "volumeMounts": mounts}]}


def test_pods_that_differ_in_the_name_of_their_tokens_volume_are_alike():
    assert spec_cache_key(with_tokens("kube-api-access-bbbbb")) == spec_cache_key(
        with_tokens("kube-api-access-ccccc")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(SPEC, {**SPEC, "restartPolicy": "Never"}, id="anything else differs"),
        pytest.param(with_tokens("kube-api-access-bbbbb"), with_tokens("token"), id="one has no such name"),
        pytest.param(
            with_tokens("kube-api-access-bbbbb", "kube-api-access-ccccc"),
            with_tokens("kube-api-access-bbbbb", "kube-api-access-bbbbb"),
            id="two names and one",
        ),
        pytest.param(
            with_tokens("kube-api-access-bbbbb", "kube-api-access-00000"),
            with_tokens("kube-api-access-bbbbb", "kube-api-access-bbbbb"),
            id="the name that stands for any",
        ),
    ],
)
def test_other_pods_are_not_alike(one, other):
    assert spec_cache_key(one) != spec_cache_key(other)


def test_each_question_is_answered_once_for_all_that_are_alike():
    asked = []
    answer = cached_by_spec(asked.append)
    for name in ("kube-api-access-bbbbb", "kube-api-access-ccccc"):
        answer(spec_cache_key(with_tokens(name)))
    assert len(asked) == 1


def test_what_is_wrong_is_told_each_time_and_where_it_is():
    wrong = {**SPEC, "restartPolicy": "x"}
    told = 'restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'
    assert found(wrong) == found(wrong) == [told]
    assert [str(error) for error in check_pod_spec(wrong, None, ROOT.child("spec"), STRICT)] == [
        f"spec.{told}"
    ]


def test_what_is_right_in_a_template_may_be_wrong_in_a_pod():
    spec = with_volumes({"name": "v", "image": {"pullPolicy": "Always"}})
    assert (found(spec, None), len(found(spec)), found(spec, None)) == ([], 1, [])


def test_a_claims_name_is_as_long_as_the_name_of_its_pod_makes_it():
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = with_volumes({"name": "v", "ephemeral": {"volumeClaimTemplate": template}})
    assert (found(spec), len(found(spec, {"name": "p" * 253}))) == ([], 1)


def test_pods_that_nobody_created_have_no_claims():
    spec = {**SPEC, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}
    watch_cache = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    assert (found(spec), found(spec, watch_cache)) == (
        [],
        ["[]: Forbidden: static pods do not support resource claims"],
    )


def test_what_an_old_pod_may_keep_a_new_one_may_still_not_have():
    spec = {**SPEC, "securityContext": {"seLinuxChangePolicy": "MountOption"}}
    lenient = PodValidationOptions(selinux_policy=True)
    assert (found(spec, options=lenient), len(found(spec)), found(spec, options=lenient)) == ([], 1, [])


def test_warnings_are_told_each_time_and_annotations_are_always_looked_at():
    odd = {**SPEC, "terminationGracePeriodSeconds": -1}
    annotated = {"annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}}
    for _ in range(2):
        assert template_warnings({"spec": SPEC}, ROOT) == []
        assert len(template_warnings({"spec": odd}, ROOT)) == 1
        assert len(template_warnings({"spec": SPEC, "metadata": annotated}, ROOT)) == 1


def test_a_large_spec_is_not_encoded_for_the_cache():
    many = [{"name": f"c{number}", "image": "i"} for number in range(1000)]
    assert is_large({"containers": many})
    assert is_large({"containers": many[:1], "volumes": many})
    assert not is_large({"containers": many[:10]})
    assert not is_large({})
