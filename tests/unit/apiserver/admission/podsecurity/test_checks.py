"""Pod security violations by level and version match those recorded from kube-apiserver 1.36."""

from pathlib import Path

import orjson
import pytest

from mockube.apiserver.admission.podsecurity.evaluate import evaluate
from mockube.apiserver.admission.podsecurity.policy import (
    LevelVersion,
    PodSecurityLevels,
    parse_version,
    read_policy,
)

CASES = [
    orjson.loads(line) for line in (Path(__file__).parent / "violations.jsonl").read_bytes().splitlines()
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_pod_security_violations_match_recording(case):
    for recorded in case["violations"]:
        for version in recorded["versions"]:
            wanted = LevelVersion(recorded["level"], parse_version(version))
            found = ", ".join(map(str, evaluate(wanted, case["annotations"], case["spec"])))
            assert found == recorded["detail"], wanted


def test_privileged_level_has_no_violations():
    assert evaluate(LevelVersion("privileged"), {}, {"hostNetwork": True, "containers": []}) == []


def test_seccomp_annotations_count_in_old_policy_versions():
    annotations = {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/a": "localhost/x",
        "container.seccomp.security.alpha.kubernetes.io/b": "x",
    }
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    (violation,) = evaluate(LevelVersion("baseline", 18), annotations, spec)
    assert str(violation) == (
        'seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/b="x", '
        'seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, "privileged:latest privileged:latest privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest privileged:latest baseline:latest"),
        (
            {"enforce": "baseline", "enforce-version": "v1.20"},
            "baseline:v1.20 privileged:latest baseline:v1.20",
        ),
        ({"enforce": "baseline", "warn-version": "v1.3"}, "baseline:latest privileged:latest baseline:v1.3"),
        (
            {"enforce": "restricted", "warn": "privileged"},
            "restricted:latest privileged:latest privileged:latest",
        ),
        (
            {"audit": "restricted", "audit-version": "v1.0"},
            "privileged:latest restricted:v1.0 privileged:latest",
        ),
        (
            {"enforce": "x", "audit": "x", "warn": "x"},
            "restricted:latest privileged:latest privileged:latest",
        ),
        (
            {"enforce": "baseline", "enforce-version": "1.20"},
            "baseline:latest privileged:latest baseline:latest",
        ),
    ],
)
def test_namespace_labels_select_policy(labels, expected):
    prefixed = {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}
    policy, _ = read_policy(prefixed, PodSecurityLevels())
    assert " ".join(map(str, policy)) == expected


@pytest.mark.parametrize(
    "text", ["", "v1", "v1.01", "v2.1", "1.2", "v1.99999999999999999999", "v1.2 ", "v1.-1", "v1.\u0661"]
)
def test_invalid_policy_version_is_refused(text):
    assert parse_version(text) is None
