"""Validation of affinity, topology spread constraints, tolerations and scheduling gates."""

import pytest

from tests.support.field_rules import changed, create_errors
from tests.support.valid_pods import POD

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR = {"matchLabels": {"a": "b"}}
TERM = {"topologyKey": "zone", "labelSelector": SELECTOR}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def errors_of(change):
    return create_errors("v1", "Pod", changed(POD, {f"spec.{path}": value for path, value in change.items()}))


def node_errors(affinity):
    texts = errors_of({"affinity": {"nodeAffinity": affinity}})
    return [text.removeprefix("spec.affinity.nodeAffinity.") for text in texts]


def term_errors(term, kind="podAffinity"):
    """Return the errors of a required term of pod affinity, without its path."""
    texts = errors_of({"affinity": {kind: {REQUIRED: [term]}}})
    return [text.removeprefix(f"spec.affinity.{kind}.{REQUIRED}[0].") for text in texts]


def spread_errors(constraints):
    texts = errors_of({"topologySpreadConstraints": constraints})
    return [text.removeprefix("spec.topologySpreadConstraints") for text in texts]


def toleration_errors(toleration):
    texts = errors_of({"tolerations": [toleration]})
    return [text.removeprefix("spec.tolerations[0].") for text in texts]


def terms(*node_terms):
    return {REQUIRED: {"nodeSelectorTerms": [*node_terms]}}


def expression(**fields):
    return terms({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"], **fields}]})


def name(**fields):
    return terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"], **fields}]})


def requirement(**fields):
    return {**TERM, "labelSelector": {"matchExpressions": [{"key": "a", **fields}]}}


NODES = [
    pytest.param({}, [], id="nothing"),
    pytest.param(terms(),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least "
          "one node selector term")], id="requirement without terms"),
    pytest.param(terms({}), [], id="term without expressions"),
    pytest.param(expression(), [], id="expression"),
    pytest.param(expression(values=["b", "c"]), [], id="expression with two values"),
    pytest.param(expression(key=""),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: Invalid "
          'value: "": name part must be non-empty'),
         ("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: Invalid "
          "value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
          "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
          "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="expression without key"),
    pytest.param(expression(key="a b"),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: Invalid "
          "value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
          "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
          "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="expression with invalid key"),
    pytest.param(expression(values=["b c"]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]: "
          'Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
          "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")],
        id="expression with invalid value"),
    pytest.param(expression(operator=""),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: "
          'Invalid value: "": not a valid selector operator')], id="expression without operator"),
    pytest.param(expression(operator="Is"),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: "
          'Invalid value: "Is": not a valid selector operator')], id="expression with unknown operator"),
    pytest.param(expression(values=[]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
          "Required value: must be specified when `operator` is 'In' or 'NotIn'")], id="In without values"),
    pytest.param(expression(operator="NotIn", values=[]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
          "Required value: must be specified when `operator` is 'In' or 'NotIn'")], id="NotIn without values"),
    pytest.param(expression(operator="Exists"),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
          "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'")], id="Exists with values"),
    pytest.param(expression(operator="DoesNotExist", values=[]), [], id="DoesNotExist without values"),
    pytest.param(expression(operator="Gt", values=["1"]), [], id="Gt with one value"),
    pytest.param(expression(operator="Gt", values=["b"]), [], id="Gt with a text"),
    pytest.param(expression(operator="Lt", values=[]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
          "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'")], id="Lt without values"),
    pytest.param(expression(operator="Lt", values=["1", "2"]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
          "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'")], id="Lt with two values"),
    pytest.param(name(), [], id="name"),
    pytest.param(name(operator="NotIn"), [], id="another name"),
    pytest.param(name(values=["b", "c"]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values: Required "
          "value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector")], id="two names"),
    pytest.param(name(values=[]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values: Required "
          "value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector")], id="no name"),
    pytest.param(name(operator="Exists", values=[]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: Invalid "
          'value: "Exists": not a valid selector operator')], id="name with operator for keys"),
    pytest.param(name(values=["B"]),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]: "
          'Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
          "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
          "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")],
        id="name that is invalid"),
    pytest.param(name(key="metadata.namespace"),
        [("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid "
          'value: "metadata.namespace": not a valid field selector key')], id="another field"),
    pytest.param({PREFERRED: [{"weight": 1, "preference": {}}]}, [], id="lowest weight"),
    pytest.param({PREFERRED: [{"weight": 100, "preference": {}}]}, [], id="highest weight"),
    pytest.param({PREFERRED: [{"preference": {}}]},
        [("preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range "
          "1-100")], id="weight zero"),
    pytest.param({PREFERRED: [{"weight": 101, "preference": {}}]},
        [("preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range "
          "1-100")], id="weight too high"),
    pytest.param({PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}]},
        [], id="preference with invalid value"),
    pytest.param({PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}}]},
        [("preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator: Invalid "
          'value: "in": not a valid selector operator')], id="preference with invalid operator"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), NODES)
def test_node_affinity_is_validated(change, expected):
    assert node_errors(change) == expected


TERMS = [
    pytest.param(TERM, [], id="term"),
    pytest.param({"topologyKey": "zone"}, [], id="term without selector"),
    pytest.param({},
        ["topologyKey: Required value: can not be empty",
         'topologyKey: Invalid value: "": name part must be non-empty',
         ("topologyKey: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="empty term"),
    pytest.param({**TERM, "topologyKey": "a b"},
        [("topologyKey: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid key of topology"),
    pytest.param({**TERM, "namespaces": ["a", "b"]}, [], id="namespaces"),
    pytest.param({**TERM, "namespaces": ["A", "b", ""]},
        [('namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
         ('namespace: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="invalid namespaces"),
    pytest.param({**TERM, "namespaceSelector": {}}, [], id="empty selector of namespaces"),
    pytest.param({**TERM, "namespaceSelector": {"matchLabels": {"a": "b c"}}},
        [('namespaceSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or '
          "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector of namespaces"),
    pytest.param({**TERM, "labelSelector": {"matchLabels": {"a b": "c"}}},
        [('labelSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="label with invalid key"),
    pytest.param(requirement(),
        ['labelSelector.matchExpressions[0].operator: Invalid value: "": not a valid selector operator'],
        id="expression without operator"),
    pytest.param(requirement(operator="Gt", values=["1"]),
        ['labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator'],
        id="expression with unknown operator"),
    pytest.param(requirement(operator="In"),
        [("labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' "
          "or 'NotIn'")], id="expression In without values"),
    pytest.param(requirement(operator="Exists", values=["b"]),
        [("labelSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is "
          "'Exists' or 'DoesNotExist'")], id="expression Exists with values"),
    pytest.param(requirement(operator="In", values=["b c"]),
        [('labelSelector.matchExpressions[0].values[0]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="expression with invalid value"),
    pytest.param({**TERM, "matchLabelKeys": ["c"], "mismatchLabelKeys": ["d"]}, [], id="label keys that match"),
    pytest.param({"topologyKey": "zone", "matchLabelKeys": ["c"], "mismatchLabelKeys": ["d"]},
        ["matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
         "mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        id="label keys without selector"),
    pytest.param({**TERM, "matchLabelKeys": ["c d"], "mismatchLabelKeys": ["e f"]},
        [("matchLabelKeys[0]: Invalid value: \"c d\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('mismatchLabelKeys[0]: Invalid value: "e f": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid label keys"),
    pytest.param({**TERM, "matchLabelKeys": ["b", "c"], "mismatchLabelKeys": ["c"]},
        ['matchLabelKeys[1]: Invalid value: "c": exists in both matchLabelKeys and mismatchLabelKeys'],
        id="label key that matches and differs"),
    pytest.param({**requirement(operator="In", values=["b"]), "matchLabelKeys": ["a"]},
        [], id="label key of the labels and an expression"),
    pytest.param({**TERM, "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, "matchLabelKeys": ["a"]},
        [('spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]: Invalid value: "a": '
          "exists in both matchLabelKeys and labelSelector")], id="label key in two expressions"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TERMS)
def test_pod_affinity_is_validated(change, expected):
    assert term_errors(change) == expected


AFFINITIES = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}, [], id="preferred term"),
    pytest.param({"podAffinity": {PREFERRED: [{"podAffinityTerm": TERM}]}},
        [("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: "
          "0: must be in the range 1-100")], id="preferred term without weight"),
    pytest.param({"podAntiAffinity": {PREFERRED: [{"weight": 101}]}},
        [("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid "
          "value: 101: must be in the range 1-100"),
         ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: "
          "Required value: can not be empty"),
         ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: "
          'Invalid value: "": name part must be non-empty'),
         ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: "
          "Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must "
          "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
          "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="weight of no term"),
    pytest.param({"podAntiAffinity": {REQUIRED: [{}]}},
        [("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
          "Required value: can not be empty"),
         ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid "
          'value: "": name part must be non-empty'),
         ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid "
          "value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
          "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
          "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="required term against pods"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), AFFINITIES)
def test_affinity_of_pods_is_validated(change, expected):
    assert errors_of({"affinity": change}) == expected


SPREADING = [
    pytest.param([SPREAD], [], id="constraint"),
    pytest.param([{**SPREAD, "maxSkew": 0}],
        ["[0].maxSkew: Invalid value: 0: must be greater than zero"], id="skew zero"),
    pytest.param([{**SPREAD, "maxSkew": -1}],
        ["[0].maxSkew: Invalid value: -1: must be greater than zero"], id="negative skew"),
    pytest.param([{}],
        ["[0].maxSkew: Invalid value: 0: must be greater than zero",
         "[0].topologyKey: Required value: can not be empty",
         '[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"'],
        id="empty constraint"),
    pytest.param([{**SPREAD, "whenUnsatisfiable": "Wait"}],
        ['[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"'],
        id="unknown action"),
    pytest.param([{**SPREAD, "topologyKey": "a b"}], [], id="invalid key"),
    pytest.param([SPREAD, {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}], [], id="same key with two actions"),
    pytest.param([SPREAD, {**SPREAD, "maxSkew": 2}],
        ['[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'], id="same key and action"),
    pytest.param([{**SPREAD, "minDomains": 1}], [], id="one domain"),
    pytest.param([{**SPREAD, "minDomains": 0}],
        ["[0].minDomains: Invalid value: 0: must be greater than zero"], id="no domain"),
    pytest.param([{**SPREAD, "minDomains": -1}],
        ["[0].minDomains: Invalid value: -1: must be greater than zero"], id="negative domains"),
    pytest.param([{**SPREAD, "minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
        [("[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
          "ScheduleAnyway")], id="domains of a soft constraint"),
    pytest.param([{**SPREAD, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}],
        [], id="policies of nodes"),
    pytest.param([{**SPREAD, "nodeAffinityPolicy": "ignore", "nodeTaintsPolicy": ""}],
        ['[0].nodeAffinityPolicy: Unsupported value: "ignore": supported values: "Honor", "Ignore"',
         '[0].nodeTaintsPolicy: Unsupported value: "": supported values: "Honor", "Ignore"'],
        id="unknown policies of nodes"),
    pytest.param([{**SPREAD, "labelSelector": {"matchLabels": {"a": "b c"}}}],
        [('[0].labelSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or '
          "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
    pytest.param([{**SPREAD, "matchLabelKeys": ["a"]}],
        ["[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        id="keys without selector"),
    pytest.param([{**SPREAD, "matchLabelKeys": ["c"], "labelSelector": SELECTOR}], [], id="keys with selector"),
    pytest.param([{**SPREAD, "matchLabelKeys": ["c d"], "labelSelector": SELECTOR}],
        [('[0].matchLabelKeys[0]: Invalid value: "c d": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid keys"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SPREADING)
def test_spread_constraints_are_validated(change, expected):
    assert spread_errors(change) == expected


TOLERATIONS = [
    pytest.param({"operator": "Exists"}, [], id="all taints"),
    pytest.param({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}, [], id="equal value"),
    pytest.param({"key": "a", "value": "b", "effect": "PreferNoSchedule"}, [], id="no operator"),
    pytest.param({},
        [('operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all '
          'values and all keys"')], id="empty"),
    pytest.param({"operator": "Equal", "value": "b"},
        [('operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match '
          'all values and all keys"')], id="Equal without key"),
    pytest.param({"key": "a b", "operator": "Exists"},
        [("key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and "
          "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
          "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="invalid key"),
    pytest.param({"key": "a", "value": "b c"},
        [('operator: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric '
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  "
          "or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid value"),
    pytest.param({"key": "a", "operator": "Exists", "value": "b"},
        ["operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"], id="Exists with value"),
    pytest.param({"key": "a", "operator": "In"},
        ['operator: Unsupported value: "In": supported values: "Equal", "Exists"'], id="unknown operator"),
    pytest.param({"key": "a", "operator": "Gt", "value": "1"},
        ['operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'], id="comparison"),
    pytest.param({"key": "a", "effect": "Evict"},
        ['effect: Unsupported value: "Evict": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'],
        id="unknown effect"),
    pytest.param({"key": "a", "effect": "NoExecute", "tolerationSeconds": 0}, [], id="seconds"),
    pytest.param({"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}, [], id="negative seconds"),
    pytest.param({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
        ["effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
        id="seconds of another effect"),
    pytest.param({"key": "a", "tolerationSeconds": 1},
        ["effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
        id="seconds of all effects"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TOLERATIONS)
def test_tolerations_are_validated(change, expected):
    assert toleration_errors(change) == expected


GATES = [
    pytest.param({"schedulingGates": [{"name": "a"}, {"name": "example.com/b"}]}, [], id="gates"),
    pytest.param({"schedulingGates": [{}]},
        ['spec.schedulingGates[0]: Invalid value: "": name part must be non-empty',
         ('spec.schedulingGates[0]: Invalid value: "": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="gate without name"),
    pytest.param({"schedulingGates": [{"name": "a b"}]},
        [('spec.schedulingGates[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="gate with invalid name"),
    pytest.param({"schedulingGates": [{"name": "a"}, {"name": "a"}]},
        ['spec.schedulingGates[1]: Duplicate value: "a"'], id="gate twice"),
    pytest.param({"schedulingGates": [{"name": "a"}], "nodeName": "n"},
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        id="gate of a pod on a node"),
    pytest.param({"nodeSelector": {"a": "b"}}, [], id="selector of nodes"),
    pytest.param({"nodeSelector": {"a b": "c", "d": "e f"}},
        [("spec.nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('spec.nodeSelector: Invalid value: "e f": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector of nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), GATES)
def test_scheduling_gates_are_validated(change, expected):
    assert errors_of(change) == expected
