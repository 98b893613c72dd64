"""ABAC policy files in both formats: which subjects a line matches and what it allows."""

import pytest

from mockube.apiserver.authz.abac import read_policies
from mockube.apiserver.authz.chain import Attributes, Decision
from mockube.apiserver.user import User
from mockube.component_base.configuration_files import ConfigurationError

AUTHENTICATED = "system:authenticated"
ANN = User(name="ann", groups=("dev", AUTHENTICATED))
STRANGER = User(name="x", groups=("system:unauthenticated",))


def policies(folder, *lines):
    file = folder / "policies.jsonl"
    file.write_text("\n".join(lines))
    return read_policies(file)


def versioned(**spec):
    fields = ", ".join(f'"{name}": {value}' for name, value in spec.items())
    return f'{{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {{{fields}}}}}'


def is_allowed(abac, user=ANN, verb="get", **asked):
    return abac.decide(Attributes(user=user, verb=verb, **(asked or {"path": "/x"})))[0] is Decision.ALLOW


POD = {"resource": "pods", "namespace": "n"}
CASES = {
    "a user": (versioned(user='"ann"', namespace='"*"', resource='"*"', apiGroup='"*"'), ANN, POD, True),
    "another user": (
        versioned(user='"bob"', namespace='"*"', resource='"*"', apiGroup='"*"'),
        ANN,
        POD,
        False,
    ),
    "a group": (versioned(group='"dev"', namespace='"n"', resource='"pods"'), ANN, POD, True),
    "another group": (versioned(group='"ops"', namespace='"n"', resource='"pods"'), ANN, POD, False),
    "another namespace": (versioned(user='"ann"', namespace='"m"', resource='"pods"'), ANN, POD, False),
    "another API group": (
        versioned(user='"ann"', namespace='"n"', resource='"pods"', apiGroup='"apps"'),
        ANN,
        POD,
        False,
    ),
    "everybody": (versioned(user='"*"', namespace='"*"', resource='"*"', apiGroup='"*"'), ANN, POD, True),
    "a stranger": (
        versioned(user='"*"', namespace='"*"', resource='"*"', apiGroup='"*"'),
        STRANGER,
        POD,
        False,
    ),
    "nobody": (versioned(namespace='"*"', resource='"*"', apiGroup='"*"'), ANN, POD, False),
    "a path": (versioned(user='"ann"', nonResourcePath='"/x"'), ANN, {"path": "/x"}, True),
    "paths below": (versioned(user='"ann"', nonResourcePath='"/x/*"'), ANN, {"path": "/x/y"}, True),
    "another path": (versioned(user='"ann"', nonResourcePath='"/x/*"'), ANN, {"path": "/y"}, False),
    "all in the old form": ("{}", ANN, POD, True),
    "all paths in the old form": ("{}", ANN, {"path": "/y"}, True),
    "nobody unknown in the old form": ("{}", STRANGER, POD, False),
    "a user in the old form": ('{"user": "ann", "resource": "pods"}', ANN, POD, True),
    "no paths in the old form with a resource": (
        '{"user": "ann", "resource": "pods"}',
        ANN,
        {"path": "/"},
        False,
    ),
}


@pytest.mark.parametrize(("line", "user", "asked", "allowed"), CASES.values(), ids=CASES)
def test_abac_policy_allows(tmp_path, line, user, asked, allowed):
    assert is_allowed(policies(tmp_path, line), user, **asked) is allowed


def test_readonly_abac_policy_allows_reads(tmp_path):
    abac = policies(
        tmp_path, "# a comment", "", versioned(user='"ann"', nonResourcePath='"*"', readonly="true")
    )
    assert [verb for verb in ("get", "list", "watch", "post") if is_allowed(abac, verb=verb)] == [
        "get",
        "list",
        "watch",
    ]
    assert abac.decide(Attributes(user=STRANGER, verb="get", path="/")) == (
        Decision.NO_OPINION,
        "No policy matched.",
    )


def test_rules_of_user_are_those_of_abac_policies(tmp_path):
    line = versioned(
        user='"ann"', namespace='"*"', resource='"pods"', nonResourcePath='"/x"', readonly="true"
    )
    rules = policies(tmp_path, line).rules(ANN, "n")
    verbs = ["get", "list", "watch"]
    assert rules.resources == [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}]
    assert rules.paths == [{"verbs": verbs, "nonResourceURLs": ["/x"]}]
    assert policies(tmp_path, line).rules(STRANGER, "n").paths == []


@pytest.mark.parametrize("line", ["[", "[]", versioned(user="1"), '{"users": "x"}'])
def test_invalid_abac_line_is_named(tmp_path, line):
    with pytest.raises(ConfigurationError, match="line 2"):
        policies(tmp_path, "{}", line)
