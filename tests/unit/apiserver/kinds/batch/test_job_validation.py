"""Validation of new Jobs."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors
from tests.support.valid_workloads import GENERATED_LABELS, JOB

INDEXED = {"completionMode": "Indexed", "completions": 10}
CODES = {"operator": "In", "values": [1, 2]}
PATTERN = {"type": "DisruptionTarget", "status": "True"}


def errors_of(change):
    return create_errors(
        "batch/v1", "Job", changed(JOB, {f"spec.{path}": value for path, value in change.items()})
    )


def failure_errors(rules, spec=None):
    """Return the errors of a Job with rules for failed pods, without the path of the rules."""
    texts = errors_of(
        {"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": rules}, **(spec or {})}
    )
    return [text.removeprefix("spec.podFailurePolicy.rules") for text in texts]


def success_errors(rules):
    """Return the errors of an indexed Job with rules for its success, without the path of the rules."""
    return [
        text.removeprefix("spec.successPolicy.rules")
        for text in errors_of({**INDEXED, "successPolicy": {"rules": rules}})
    ]


def rule(**fields):
    return {"action": "FailJob", **fields}


def codes(*values, **fields):
    return rule(onExitCodes={"operator": "In", "values": [*values], **fields})


def pattern(**fields):
    return rule(onPodConditions=[{**PATTERN, **fields}])


FIELDS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"parallelism": -1, "completions": -1, "activeDeadlineSeconds": -1, "backoffLimit": -1, "ttlSecondsAfterFinished": -1},
        ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
         "spec.completions: Invalid value: -1: must be greater than or equal to 0",
         "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
         "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
         "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"], id="negative numbers"),
    pytest.param({"parallelism": 0, "completions": 0, "activeDeadlineSeconds": 0, "backoffLimit": 0, "ttlSecondsAfterFinished": 0},
        [], id="zeros"),
    pytest.param({**INDEXED, "backoffLimitPerIndex": -1, "maxFailedIndexes": -1},
        ["spec.backoffLimitPerIndex: Invalid value: -1: must be greater than or equal to 0",
         "spec.maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0"],
        id="negative limits of indexes"),
    pytest.param({**INDEXED, "maxFailedIndexes": 1},
        ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"],
        id="limit of failed indexes alone"),
    pytest.param({"backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
         "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode"],
        id="limits of indexes without indexes"),
    pytest.param({"completionMode": "Random"},
        ['spec.completionMode: Unsupported value: "Random": supported values: "NonIndexed", "Indexed"'],
        id="unknown mode"),
    pytest.param({"completionMode": ABSENT}, [], id="no mode"),
    pytest.param({"completionMode": "Indexed", "completions": ABSENT},
        ["spec.completions: Required value: when completion mode is Indexed"], id="indexes without completions"),
    pytest.param({**INDEXED, "completions": 100000, "parallelism": 100000, "backoffLimitPerIndex": 1, "maxFailedIndexes": 100000},
        [], id="most parallel indexes"),
    pytest.param({**INDEXED, "parallelism": 100001},
        [("spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode "
          "is Indexed")], id="too many parallel indexes"),
    pytest.param({**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 11},
        ["spec.maxFailedIndexes: Invalid value: 11: must be less than or equal to completions"],
        id="more failed indexes than indexes"),
    pytest.param({**INDEXED, "completions": 200000, "backoffLimitPerIndex": 1, "maxFailedIndexes": 100001},
        ["spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
         ("spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 when completions "
          "are above 100000 and used with backoff limit per index")], id="too many failed indexes"),
    pytest.param({**INDEXED, "completions": 100001, "parallelism": 10000, "backoffLimitPerIndex": 1, "maxFailedIndexes": 10000},
        [], id="many indexes with limits"),
    pytest.param({**INDEXED, "completions": 100001, "parallelism": 10001, "backoffLimitPerIndex": 1, "maxFailedIndexes": 10001},
        [("spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are "
          "above 100000 and used with backoff limit per index"),
         ("spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 when completions "
          "are above 100000 and used with backoff limit per index")], id="many indexes with high limits"),
    pytest.param({**INDEXED, "completions": 100001, "backoffLimitPerIndex": 1},
        ["spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"],
        id="many indexes without limit of failures"),
    pytest.param({"managedBy": "example.com/a"}, [], id="manager"),
    pytest.param({"managedBy": ""}, ["spec.managedBy: Required value"], id="no manager"),
    pytest.param({"managedBy": "/a"},
        ['spec.managedBy: Invalid value: "/a": must be a domain-prefixed path (such as "acme.io/foo")'],
        id="manager without domain"),
    pytest.param({"managedBy": "example.com"},
        ['spec.managedBy: Invalid value: "example.com": must be a domain-prefixed path (such as "acme.io/foo")'],
        id="manager without path"),
    pytest.param({"managedBy": "A/a"},
        [('spec.managedBy: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="manager of an invalid domain"),
    pytest.param({"managedBy": "a/b c"},
        [('spec.managedBy: Invalid value: "b c": Invalid path (regex used for validation is '
          "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')")], id="manager of an invalid path"),
    pytest.param({"managedBy": "a/" + "b" * 61}, [], id="manager of 63 characters"),
    pytest.param({"managedBy": "a/" + "b" * 62},
        ["spec.managedBy: Too long: may not be more than 63 bytes"], id="manager of 64 characters"),
    pytest.param({"podReplacementPolicy": "Failed"}, [], id="replacement of failed pods"),
    pytest.param({"podReplacementPolicy": "Never"},
        [('spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", '
          '"TerminatingOrFailed"')], id="unknown replacement"),
    pytest.param({"podFailurePolicy": {"rules": []}},
        ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
        id="replacement of terminating pods with a failure policy"),
    pytest.param({"successPolicy": {"rules": [{"succeededCount": 1}]}},
        [('spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
          "requires indexed completion mode")], id="success without indexes"),
    pytest.param({"template.spec.restartPolicy": "Always"},
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        id="pods that always restart"),
    pytest.param({"template.spec.restartPolicy": ABSENT},
        ["spec.template.spec.restartPolicy: Required value",
         'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        id="pods without restart policy"),
    pytest.param({"template.spec.restartPolicy": "Sometimes"},
        [('spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
          '"OnFailure", "Never"'),
         ('spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "OnFailure", '
          '"Never"')], id="pods with unknown restart policy"),
    pytest.param({"template.spec.restartPolicy": "OnFailure", "podFailurePolicy": {"rules": []}, "podReplacementPolicy": "Failed"},
        [('spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when '
          "podFailurePolicy is specified")], id="pods that restart with a failure policy"),
    pytest.param({"template.spec.containers.0.image": ""},
        ["spec.template.spec.containers[0].image: Required value"], id="invalid pod"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), FIELDS)
def test_jobs_are_validated(change, expected):
    assert errors_of(change) == expected


SELECTORS = [
    pytest.param({"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}, "template.metadata.labels": {"a": "b"}},
        [], id="manual selector"),
    pytest.param({"manualSelector": True, "selector": {"matchLabels": {"a": "c"}}, "template.metadata.labels": {"a": "b"}},
        ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
        id="manual selector of other labels"),
    pytest.param({"selector": ABSENT},
        ["spec.selector: Required value",
         ("spec.template.metadata.labels: Invalid value: "
          '{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","controller-uid":"u","job-name":"a"}: '
          "`selector` does not match template `labels`")], id="no selector"),
    pytest.param({"manualSelector": True, "selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator'],
        id="invalid selector"),
    pytest.param({"selector": {"matchLabels": {"a": "b"}}},
        ['spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated',
         ("spec.template.metadata.labels: Invalid value: "
          '{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","controller-uid":"u","job-name":"a"}: '
          "`selector` does not match template `labels`")], id="selector that was not generated"),
    pytest.param({"template.metadata.labels": {}},
        ["spec.template.metadata.labels[controller-uid]: Required value: must be 'u'",
         "spec.template.metadata.labels[job-name]: Required value: must be 'a'",
         "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Required value: must be 'u'",
         "spec.template.metadata.labels[batch.kubernetes.io/job-name]: Required value: must be 'a'",
         "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"],
        id="no generated labels"),
    pytest.param({"template.metadata.labels": {**GENERATED_LABELS, "job-name": "b"}},
        [("spec.template.metadata.labels[job-name]: Invalid value: "
          '{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","controller-uid":"u","job-name":"b"}: '
          "must be 'a'")], id="other generated labels"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SELECTORS)
def test_selectors_of_jobs_are_validated(change, expected):
    assert errors_of(change) == expected


FAILURES = [
    pytest.param([], [], id="no rules"),
    pytest.param([codes(1, 2, containerName="c")], [], id="exit codes"),
    pytest.param([pattern()], [], id="conditions"),
    pytest.param([codes(1)] * 20, [], id="twenty rules"),
    pytest.param([codes(1)] * 21, [": Too many: 21: must have at most 20 items"], id="twenty-one rules"),
    pytest.param([{**codes(1), "action": "Stop"}],
        ['[0].action: Unsupported value: "Stop": supported values: "Count", "FailIndex", "FailJob", "Ignore"'],
        id="unknown action"),
    pytest.param([{"onExitCodes": CODES}],
        ['[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'], id="no action"),
    pytest.param([{**codes(1), "action": "FailIndex"}],
        ['[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'],
        id="failed index without limit"),
    pytest.param([rule()],
        ["[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
        id="neither codes nor conditions"),
    pytest.param([rule(onExitCodes=CODES, onPodConditions=[PATTERN])],
        ["[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
        id="both codes and conditions"),
    pytest.param([codes(1, operator="Is")],
        ['[0].onExitCodes.operator: Unsupported value: "Is": supported values: "In", "NotIn"'], id="unknown operator"),
    pytest.param([codes(1, operator="")],
        ['[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]'], id="no operator"),
    pytest.param([codes(1, containerName="d")],
        [('[0].onExitCodes.containerName: Invalid value: "d": must be one of the container or initContainer '
          "names in the pod template")], id="unknown container"),
    pytest.param([codes()],
        ["[0].onExitCodes.values: Invalid value: []: at least one value is required"], id="no codes"),
    pytest.param([codes(0)],
        ["[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"], id="code zero among codes"),
    pytest.param([codes(0, 1, operator="NotIn")], [], id="code zero not among codes"),
    pytest.param([codes(1, 1)], ["[0].onExitCodes.values[1]: Duplicate value: 1"], id="code twice"),
    pytest.param([codes(2, 1)],
        ["[0].onExitCodes.values: Invalid value: [2,1]: must be ordered"], id="unordered codes"),
    pytest.param([codes(*range(1, 256))], [], id="255 codes"),
    pytest.param([pattern(type="")],
        ['[0].onPodConditions[0].type: Invalid value: "": name part must be non-empty',
         ('[0].onPodConditions[0].type: Invalid value: "": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="no type of a condition"),
    pytest.param([pattern(type="a b")],
        [('[0].onPodConditions[0].type: Invalid value: "a b": name part must consist of alphanumeric '
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
          "or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="invalid type of a condition"),
    pytest.param([pattern(status="Yes")],
        ['[0].onPodConditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"'],
        id="unknown status of a condition"),
    pytest.param([pattern(status="")],
        ['[0].onPodConditions[0].status: Required value: valid values: ["False" "True" "Unknown"]'],
        id="no status of a condition"),
    pytest.param([rule(onPodConditions=[PATTERN] * 20)], [], id="twenty conditions"),
    pytest.param([rule(onPodConditions=[PATTERN] * 21)],
        ["[0].onPodConditions: Too many: 21: must have at most 20 items"], id="twenty-one conditions"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), FAILURES)
def test_pod_failure_policies_are_validated(change, expected):
    assert failure_errors(change) == expected


SUCCESSES = [
    pytest.param([],
        [": Required value: at least one rules must be specified when the successPolicy is specified"], id="no rules"),
    pytest.param([{"succeededCount": 1}], [], id="count"),
    pytest.param([{"succeededIndexes": "0,2-4,9"}], [], id="indexes"),
    pytest.param([{"succeededIndexes": "0,2-4", "succeededCount": 4}], [], id="indexes and count"),
    pytest.param([{"succeededCount": 1}] * 21, [": Too many: 21: must have at most 20 items"], id="twenty-one rules"),
    pytest.param([{}],
        ["[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"],
        id="neither indexes nor count"),
    pytest.param([{"succeededCount": -1}],
        ["[0].succeededCount: Invalid value: -1: must be greater than or equal to 0"], id="negative count"),
    pytest.param([{"succeededCount": 11}],
        [("[0].succeededCount: Invalid value: 11: must be less than or equal to 10 (the number of specified "
          "completions)")], id="count of more than all"),
    pytest.param([{"succeededIndexes": "0-1", "succeededCount": 3}],
        [("[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the "
          "specified succeededIndexes field)")], id="count of more than the indexes"),
    pytest.param([{"succeededIndexes": "", "succeededCount": 0}], [], id="empty indexes"),
    pytest.param([{"succeededIndexes": "10"}],
        ['[0].succeededIndexes: Invalid value: "10": error parsing succeededIndexes: too large index: "10"'],
        id="index too large"),
    pytest.param([{"succeededIndexes": "a"}],
        [('[0].succeededIndexes: Invalid value: "a": error parsing succeededIndexes: cannot convert string to '
          'integer for index: "a"')], id="indexes that are no numbers"),
    pytest.param([{"succeededIndexes": "0-1-2"}],
        [('[0].succeededIndexes: Invalid value: "0-1-2": error parsing succeededIndexes: the fragment "0-1-2" '
          "violates the requirement that an index interval can have at most two parts separated by '-'")],
        id="interval of three"),
    pytest.param([{"succeededIndexes": "3-2"}],
        [('[0].succeededIndexes: Invalid value: "3-2": error parsing succeededIndexes: non-increasing order, '
          "previous: 3, current: 2")], id="interval that decreases"),
    pytest.param([{"succeededIndexes": "3-3"}],
        [('[0].succeededIndexes: Invalid value: "3-3": error parsing succeededIndexes: non-increasing order, '
          "previous: 3, current: 3")], id="interval of one"),
    pytest.param([{"succeededIndexes": "3,2"}],
        [('[0].succeededIndexes: Invalid value: "3,2": error parsing succeededIndexes: non-increasing order, '
          "previous: 3, current: 2")], id="indexes that decrease"),
    pytest.param([{"succeededIndexes": "1-3,3"}],
        [('[0].succeededIndexes: Invalid value: "1-3,3": error parsing succeededIndexes: non-increasing order, '
          "previous: 3, current: 3")], id="indexes that repeat"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SUCCESSES)
def test_success_policies_are_validated(change, expected):
    assert success_errors(change) == expected


def test_failed_index_needs_limit():
    limits = {**INDEXED, "backoffLimitPerIndex": 1}
    assert failure_errors([{**codes(1), "action": "FailIndex"}], limits) == []


def test_rule_has_at_most_255_exit_codes():
    (error,) = failure_errors([codes(*range(1, 257))])
    assert error == "[0].onExitCodes.values: Too many: 256: must have at most 255 items"


@pytest.mark.thorough
def test_indexes_have_at_most_64_kibibytes():
    longest, longer = "0," * 32767 + "00", "0," * 32768 + "0"
    assert [text for text in success_errors([{"succeededIndexes": longest}]) if "Too long" in text] == []
    expected = "[0].succeededIndexes: Too long: may not be more than 65536 bytes"
    assert [text for text in success_errors([{"succeededIndexes": longer}]) if "Too long" in text] == [
        expected
    ]


def test_name_of_last_pod_is_at_most_63_characters():
    job = changed(
        JOB, {"metadata.name": "a" * 62, "spec.manualSelector": True, "spec.completionMode": "Indexed"}
    )
    assert create_errors("batch/v1", "Job", job) == [
        f'metadata.name: Invalid value: "{"a" * 62}": will not able to create pod with invalid DNS label: {"a" * 62}-0'
    ]
