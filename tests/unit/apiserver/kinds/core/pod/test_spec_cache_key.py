"""The validation result of a pod is reused for pods with an equivalent spec, and for no others."""

import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.validation_context import validate_as
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.spec import cached_by_spec, check_pod_spec, is_large, spec_cache_key
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


def spec_errors(spec, metadata=POD, options=STRICT):
    return [str(error) for error in check_pod_spec(spec, metadata, ROOT, options)]


def with_volumes(*volumes):
    return {**SPEC, "volumes": [*volumes]}


def with_tokens(*names):
    """Return a spec with volumes of these names, of which the first is mounted."""
    mounts = [{"name": names[0], "mountPath": "/token"}]
    volumes = [{"name": name, "emptyDir": {}} for name in names]
    return with_volumes(*volumes) | {"containers": [{**CONTAINER, "volumeMounts": mounts}]}


def test_specs_differing_in_token_volume_name_share_cache_key():
    assert spec_cache_key(with_tokens("kube-api-access-bbbbb")) == spec_cache_key(
        with_tokens("kube-api-access-ccccc")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(SPEC, {**SPEC, "restartPolicy": "Never"}, id="anything else differs"),
        pytest.param(
            with_tokens("kube-api-access-bbbbb"),
            with_tokens("token"),
            id="one name without the generated form",
        ),
        pytest.param(
            with_tokens("kube-api-access-bbbbb", "kube-api-access-ccccc"),
            with_tokens("kube-api-access-bbbbb", "kube-api-access-bbbbb"),
            id="two generated names and a repeated one",
        ),
        pytest.param(
            with_tokens("kube-api-access-bbbbb", "kube-api-access-00000"),
            with_tokens("kube-api-access-bbbbb", "kube-api-access-bbbbb"),
            id="placeholder name",
        ),
    ],
)
def test_other_specs_have_different_cache_keys(one, other):
    assert spec_cache_key(one) != spec_cache_key(other)


def test_equal_specs_are_validated_once():
    asked = []
    answer = cached_by_spec(asked.append)
    for name in ("kube-api-access-bbbbb", "kube-api-access-ccccc"):
        answer(spec_cache_key(with_tokens(name)))
    assert len(asked) == 1


def test_cached_errors_have_path_of_each_object():
    wrong = {**SPEC, "restartPolicy": "x"}
    message = 'restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'
    assert spec_errors(wrong) == spec_errors(wrong) == [message]
    assert [str(error) for error in check_pod_spec(wrong, None, ROOT.child("spec"), STRICT)] == [
        f"spec.{message}"
    ]


def test_template_and_pod_results_are_cached_separately():
    ports = [{"containerPort": 80, "protocol": "TCP"}]
    spec = {**SPEC, "hostNetwork": True, "containers": [{**CONTAINER, "ports": ports}]}
    assert (spec_errors(spec, None), len(spec_errors(spec)), spec_errors(spec, None)) == ([], 1, [])


def test_long_pod_name_makes_ephemeral_claim_name_invalid():
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = with_volumes({"name": "v", "ephemeral": {"volumeClaimTemplate": template}})
    assert (spec_errors(spec), len(spec_errors(spec, {"name": "p" * 253}))) == ([], 1)


def test_mirror_pod_claims_are_refused_despite_cache():
    spec = {**SPEC, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}
    watch_cache = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    assert (spec_errors(spec), spec_errors(spec, watch_cache)) == (
        [],
        ["[]: Forbidden: static pods do not support resource claims"],
    )


def test_lenient_options_are_cached_separately():
    spec = with_volumes({"name": "v", "image": {"pullPolicy": "Always"}})
    lenient = PodValidationOptions(images_without_reference=True)
    assert (
        spec_errors(spec, options=lenient),
        len(spec_errors(spec)),
        spec_errors(spec, options=lenient),
    ) == ([], 1, [])


def test_results_of_minors_are_cached_separately():
    spec = with_volumes({"name": "v", "image": {"pullPolicy": "Always"}})
    with validate_as("1.36"):
        assert spec_errors(spec, None) == []
    assert spec_errors(spec, None) == ["volumes[0].image.reference: Required value"]


def test_warnings_are_repeated_and_annotations_not_cached():
    odd = {**SPEC, "terminationGracePeriodSeconds": -1}
    annotated = {"annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}}
    for _ in range(2):
        assert template_warnings({"spec": SPEC}, ROOT) == []
        assert len(template_warnings({"spec": odd}, ROOT)) == 1
        assert len(template_warnings({"spec": SPEC, "metadata": annotated}, ROOT)) == 1


def test_large_spec_is_not_encoded_for_cache():
    many = [{"name": f"c{number}", "image": "i"} for number in range(1000)]
    assert is_large({"containers": many})
    assert is_large({"containers": many[:1], "volumes": many})
    assert not is_large({"containers": many[:10]})
    assert not is_large({})
