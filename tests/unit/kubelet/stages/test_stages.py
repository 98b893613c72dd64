"""Stage documents: parsing of each format, selection and execution."""

from datetime import UTC, datetime, timedelta

import pytest
import yaml

from mockube.apimachinery.randomness import SeededRandom
from mockube.kubelet.stages.document import stage_of
from mockube.kubelet.stages.files import load_stages, of_kind
from mockube.kubelet.stages.matching import choose_stage, delay_of, matches_stage
from mockube.kubelet.stages.playing import stage_effects
from mockube.kubelet.stages.query import StageError
from mockube.kubelet.step_effects import DeleteObject, EmitEvent, PatchObject

NOW = datetime(2030, 1, 1, tzinfo=UTC)
POD = {
    "metadata": {
        "name": "p",
        "resourceVersion": "7",
        "labels": {"app": "web"},
        "annotations": {"delay": "5s", "weight": "3", "when": "2030-01-01T00:00:09Z", "odd": "?"},
        "finalizers": ["one", "two"],
    },
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    "status": {"phase": "Running"},
}


def stage(spec, name="s"):
    document = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {}, "next": {}, **spec},
    }
    return stage_of(document)


def effects_of(spec):
    return stage_effects(stage(spec), POD, {"Now": lambda: "2030-01-01T00:00:00Z"})


def requirement(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


# --- selectors


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param({}, True, id="an empty one"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="a label"),
        pytest.param({"matchLabels": {"app": "db"}}, False, id="another label"),
        pytest.param({"matchAnnotations": {"delay": "5s"}}, True, id="an annotation"),
        pytest.param({"matchAnnotations": {"none": "such"}}, False, id="no annotation"),
        *(
            pytest.param({"matchExpressions": [requirement(*expression)]}, matches, id=" ".join(expression))
            for expression, matches in (
                ((".status.phase", "Exists"), True),
                ((".status.phase", "DoesNotExist"), False),
                ((".status.podIP", "DoesNotExist"), True),
                ((".status.phase", "In", "Pending", "Running"), True),
                ((".status.phase", "NotIn", "Running"), False),
                ((".status.podIP", "NotIn", "a"), True),
                ((".status.podIP", "In", "a"), False),
                ((".metadata.finalizers.[]", "In", "two"), True),
                ((".status.conditions.[]", "Exists"), False),
            )
        ),
        pytest.param(
            {"matchExpressions": [{"jq": requirement(".status.phase", "In", "Running")}]},
            True,
            id="the newer shape",
        ),
        pytest.param(
            {"matchExpressions": [requirement(".status.phase", "Exists"), requirement(".none", "Exists")]},
            False,
            id="one of two",
        ),
    ],
)
def test_stage_selectors(selector, matches):
    assert matches_stage(stage({"selector": selector}), POD) is matches


def test_stage_without_selector_never_runs():
    assert stage({"selector": None}) is None


# --- the choice


@pytest.mark.parametrize(
    ("delay", "minimum", "maximum"),
    [
        pytest.param({}, 0, 0, id="none"),
        pytest.param({"durationMilliseconds": 1500}, 1.5, 1.5, id="fixed"),
        pytest.param(
            {"durationMilliseconds": 1000, "jitterDurationMilliseconds": 3000}, 1, 3, id="by chance"
        ),
        pytest.param(
            {"durationMilliseconds": 3000, "jitterDurationMilliseconds": 1000}, 1, 1, id="less jitter"
        ),
        pytest.param(
            {"durationMilliseconds": 1, "durationFrom": {"expressionFrom": ".metadata.annotations.delay"}},
            5,
            5,
            id="of the object",
        ),
        pytest.param(
            {"durationFrom": {"jq": {"expression": ".metadata.annotations.when"}}},
            9,
            9,
            id="a moment, newer shape",
        ),
        pytest.param(
            {"durationFrom": {"expressionFrom": ".metadata.annotations.odd"}}, 0, 0, id="invalid duration"
        ),
    ],
)
def test_stage_delays(delay, minimum, maximum):
    random = SeededRandom(1)
    delays = [delay_of(stage({"delay": delay}), POD, NOW, random) for _ in range(20)]
    assert min(delays) >= timedelta(seconds=minimum)
    assert max(delays) <= timedelta(seconds=maximum)
    assert (len(set(delays)) > 1) is (maximum > minimum)


def test_absent_delay_field_falls_back_to_stage():
    delay = {
        "durationMilliseconds": 2000,
        "durationFrom": {"expressionFrom": ".metadata.annotations | .none"},
    }
    missing = {**POD, "metadata": {**POD["metadata"], "annotations": None}}
    assert delay_of(stage({"delay": delay}), missing, NOW, SeededRandom()) == timedelta(seconds=2)


def choice_counts(*specs, draws=200):
    stages = [stage(spec, name=str(at)) for at, spec in enumerate(specs)]
    random = SeededRandom(3)
    names = [choose_stage(stages, POD, random).name for _ in range(draws)]
    return {name: names.count(name) for name in sorted(set(names))}


def test_stages_are_chosen_by_weight():
    counts = choice_counts({"weight": 1}, {"weight": 0}, {"weight": 9})
    assert set(counts) == {"0", "2"}
    assert counts["2"] > 5 * counts["0"]


def test_stages_without_weights_are_equally_likely():
    assert set(choice_counts({}, {})) == {"0", "1"}


def test_weight_from_object_is_used():
    assert choice_counts(
        {"weight": 0, "weightFrom": {"expressionFrom": ".metadata.annotations.weight"}}, {}
    ) == {"0": 200}


def test_invalid_weight_excludes_stage():
    wrong = {"weightFrom": {"expressionFrom": ".metadata.annotations.odd"}}
    assert choice_counts(wrong, {}) == {"1": 200}
    assert set(choice_counts(wrong, wrong)) == {"0", "1"}


def test_no_stage_is_chosen_from_none():
    assert choose_stage([], POD, SeededRandom()) is None


# --- effects

TEMPLATE = """
phase: Failed
startTime: {{ Now }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
{{ end }}
"""
STATUS = {"phase": "Failed", "startTime": "2030-01-01T00:00:00Z", "containerStatuses": [{"name": "c"}]}


@pytest.mark.parametrize(
    ("spec", "effects"),
    [
        pytest.param({"next": {"statusTemplate": TEMPLATE}}, [PatchObject(body={"status": STATUS})], id="a status"),
        pytest.param(
            {"next": {"patches": [{"root": "metadata", "type": "merge", "template": "labels: {a: b}"}]}},
            [PatchObject(body={"metadata": {"labels": {"a": "b"}}}, kind="merge", subresource="")],
            id="patches",
        ),
        pytest.param(
            {"steps": [{"patch": {"root": "status", "subresource": "status", "template": "phase: Failed"}}]},
            [PatchObject(body={"status": {"phase": "Failed"}})],
            id="steps",
        ),
        pytest.param(
            {
                "steps": [
                    {
                        "patch": {
                            "root": "metadata",
                            "type": "json",
                            "template": "[{op: add, path: /labels/a, value: b}]",
                        }
                    }
                ]
            },
            [PatchObject(body=[{"op": "add", "path": "/metadata/labels/a", "value": "b"}], kind="json", subresource="")],
            id="a JSON patch",
        ),
        pytest.param({"next": {"statusTemplate": "{{ if .none }}a: b{{ end }}"}}, [], id="empty rendering"),
        pytest.param({"next": {"delete": True}}, [DeleteObject()], id="deletion"),
        pytest.param(
            {"next": {"delete": True, "finalizers": {"empty": True}, "event": {"reason": "Gone", "message": "{{ .metadata.name }}"}}},
            [
                EmitEvent("Normal", "Gone", "p"),
                PatchObject(
                    body={"metadata": {"resourceVersion": "7", "finalizers": None}}, kind="merge", subresource=""
                ),
                DeleteObject(),
            ],
            id="event, finalizers and deletion",
        ),
        pytest.param(
            {"next": {"finalizers": {"remove": [{"value": "one"}], "add": [{"value": "three"}, {"value": "two"}]}}},
            [
                PatchObject(
                    body={"metadata": {"resourceVersion": "7", "finalizers": ["two", "three"]}},
                    kind="merge",
                    subresource="",
                )
            ],
            id="finalizers",
        ),
        pytest.param({"next": {"finalizers": {"remove": [{"value": "none"}]}}}, [], id="finalizers as they are"),
        pytest.param(
            {"steps": [{"delete": True}, {"patch": {"template": "a: b"}}, {"event": {"type": "Warning", "reason": "R"}}]},
            [DeleteObject(), EmitEvent("Warning", "R", "")],
            id="only events after deletion",
        ),
    ],
)  # fmt: skip
def test_stages_run_in_sequence(spec, effects):
    assert list(effects_of(spec)) == effects


# --- refusals


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"resourceRef": {"kind": "Job"}}, "Stage s: spec.resourceRef.kind: 'Job' is not supported"),
        ({"resourceRef": {"apiGroup": "apps/v1", "kind": "Pod"}}, "spec.resourceRef.apiGroup: 'apps/v1'"),
        ({"dance": 1}, "Stage s: spec.dance: is not supported"),
        ({"weight": "heavy"}, "spec.weight: must be a number"),
        ({"selector": {"matchFields": {}}}, "spec.selector.matchFields: is not supported"),
        ({"selector": {"matchExpressions": [{"cel": "true"}]}}, "spec.selector.matchExpressions[0]"),
        ({"selector": {"matchExpressions": [requirement(".a", "In")]}}, "must not be empty for In"),
        ({"selector": {"matchExpressions": [requirement(".a", "Exists", "b")]}}, "must be empty for Exists"),
        ({"selector": {"matchExpressions": [requirement("map(.a)", "Exists")]}}, "jq 'map(.a)'"),
        ({"next": {"statusTemplate": "{{ Frob }}"}}, "spec.next.statusTemplate: function 'Frob'"),
        ({"next": {"statusPatchAs": {"username": "a"}}}, "spec.next.statusPatchAs: is not supported"),
        ({"steps": [{"patch": {"impersonation": {}}}]}, "spec.steps[0].patch.impersonation"),
        ({"steps": [{"patch": {"type": "apply"}}]}, "spec.steps[0].patch.type: 'apply' is not supported"),
        ({"steps": ["x"]}, "spec.steps[0]: must be an object"),
    ],
)
def test_unsupported_stage_field_is_named(spec, problem):
    with pytest.raises(StageError) as raised:
        stage(spec)
    assert problem in str(raised.value)


# --- files


def write_documents(path, *documents):
    path.write_text("---\n".join(yaml.safe_dump(document) for document in documents))
    return path


def document(name, kind="Pod"):
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"kind": kind}, "selector": {}, "next": {}},
    }


def names(kind, *files):
    return [stage.name for stage in of_kind(kind, load_stages(files))]


def test_stages_of_files_replace_built_in_ones_of_kind(tmp_path):
    file = write_documents(
        tmp_path / "stages.yaml", document("one"), {"kind": "List", "items": [document("two")]}
    )
    assert names("Pod", file) == ["one", "two"]
    assert names("Node", file) == ["node-initialize", "node-heartbeat"]
    file = write_documents(tmp_path / "nodes.yaml", document("mine", kind="Node"))
    assert names("Node", file) == ["mine"]
    assert names("Pod", file) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "expected"),
        ("kind: Pod", "Stage ?.apiVersion: '' is not supported"),
        ("- 1", "must be an object"),
    ],
)
def test_files_without_stages_are_refused(tmp_path, text, problem):
    file = tmp_path / "stages.yaml"
    file.write_text(text)
    with pytest.raises(StageError) as raised:
        load_stages([file])
    assert problem in str(raised.value)
    assert str(file) in str(raised.value)


def test_missing_stage_file_is_refused(tmp_path):
    with pytest.raises(StageError, match="No such file"):
        load_stages([tmp_path / "none.yaml"])
