"""What the message of a refusal says, in each of the forms that servers and admission plugins give it."""

import pytest

from mockube.explanations.explanation import Explanation, Origin
from mockube.explanations.facts import Member
from mockube.explanations.refusals import in_cluster, refusal_of
from mockube.explanations.remedies import is_restorable, restored
from tests.support.explained import facts_of, thing
from tests.support.told import evidence_of, told

QUOTA = "requested: cpu=1500m,pods=1, used: cpu=1,pods=2, limited: cpu=2,pods=2"
OF_QUOTA = "@ resourcequota/q spec.hard"
DESCRIBE = "- kubectl -n shop describe quota q"
RAISE = """- kubectl -n shop patch resourcequota/q --type=merge -p '{"spec":{"hard":{"cpu":"2500m","pods":"3"}}}'"""
CONFIGURATIONS = "- kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
EXPRESSIONS = [
    "- kubectl get validatingadmissionpolicy few -o yaml",
    "@ validatingadmissionpolicy/few spec",
    "@ validatingadmissionpolicybinding/b spec",
]
GRANT = "- Grant only what the user has, or give the user the verb escalate or bind."
TERMINATING = 'namespaces "shop" is forbidden: unable to create because it is being terminated'
PRIVILEGED = "- kubectl label namespace shop pod-security.kubernetes.io/enforce=privileged --overwrite"

MESSAGES = {
    "unknown": ("x is forbidden: y", ["x is forbidden: y"], ()),
    "quota": (
        f'pods "p" is forbidden: exceeded quota: q, {QUOTA}',
        [f"the ResourceQuota q is exhausted: {QUOTA}", DESCRIBE, RAISE, OF_QUOTA],
        (),
    ),
    **{
        f"quota in another form: {amounts}": (
            f"exceeded quota: q, {amounts}",
            [f"the ResourceQuota q is exhausted: {amounts}", DESCRIBE, OF_QUOTA],
            (),
        )
        for amounts in ("requested: pods=x, used: pods=1", "requested: pods=1", "used: pods=1")
    },
    "quota that needs requests": (
        "failed quota: q: must specify requests.cpu for: c",
        [
            "the ResourceQuota q requires what the object lacks: must specify requests.cpu for: c",
            "- Set requests.cpu for: c in its containers.",
            DESCRIBE,
            OF_QUOTA,
        ],
        ("containers",),
    ),
    "pod security": (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged (container "c")',
        [
            'Pod Security refuses the pod: it violates restricted:latest: privileged (container "c")',
            PRIVILEGED,
            '@ namespace/shop metadata.labels["pod-security.kubernetes.io/enforce"]',
        ],
        (),
    ),
    "webhook": (
        'admission webhook "w.x.y" denied the request: no',
        ["the admission webhook w.x.y denied it: no", CONFIGURATIONS],
        (),
    ),
    "webhook without a message": (
        'admission webhook "w.x.y" denied the request',
        ["the admission webhook w.x.y denied it: without an explanation", CONFIGURATIONS],
        (),
    ),
    "webhook that cannot be called": (
        'failed calling webhook "w.x.y": no route',
        ["the admission webhook w.x.y cannot be called: no route", "- Start its server.", CONFIGURATIONS],
        (),
    ),
    "webhook that cannot be called for no reason": (
        'failed calling webhook "w.x.y"',
        [
            'the admission webhook w.x.y cannot be called: failed calling webhook "w.x.y"',
            "- Start its server.",
            CONFIGURATIONS,
        ],
        (),
    ),
    "policy": (
        "ValidatingAdmissionPolicy 'few' with binding 'b' denied request: small",
        ["the ValidatingAdmissionPolicy few, bound by b, denied it: small", *EXPRESSIONS],
        (),
    ),
    "service account": (
        'error looking up service account shop/bot: serviceaccount "bot" not found',
        [
            "the ServiceAccount bot does not exist",
            "- kubectl -n shop create serviceaccount bot",
            "@ serviceaccount/bot",
        ],
        ("serviceAccountName",),
    ),
    "priority class": (
        "no PriorityClass with name high was found",
        [
            "the PriorityClass high does not exist",
            "- kubectl create priorityclass high --value=1000",
            "@ priorityclass/high",
        ],
        ("priorityClassName",),
    ),
    "runtime class": (
        'pod rejected: RuntimeClass "gvisor" not found',
        [
            "the RuntimeClass gvisor does not exist",
            "- Create it, or leave runtimeClassName out.",
            "- kubectl get runtimeclasses",
            "@ runtimeclass/gvisor",
        ],
        ("runtimeClassName",),
    ),
    "rights": (
        "x is attempting to grant RBAC permissions not currently held",
        [
            "nobody may grant rights that they lack: x is attempting to grant RBAC permissions not currently held",
            GRANT,
        ],
        (),
    ),
    "namespace": (
        TERMINATING,
        [f"the namespace is being deleted, so nothing is created in it: {TERMINATING}"],
        (),
    ),
    **{
        f"limits of a {kind}": (
            f'pods "p" is forbidden: maximum cpu usage per {kind} is 1, but limit is 2',
            [
                f"a LimitRange of the namespace refuses it: maximum cpu usage per {kind} is 1, but limit is 2",
                "- kubectl -n shop describe limitrange",
                "@ limitrange/l spec.limits",
            ],
            ("containers",),
        )
        for kind in ("Container", "Pod")
    },
}
LIMITS = thing("LimitRange", "l", namespace="shop")


@pytest.mark.parametrize(("message", "lines", "field"), MESSAGES.values(), ids=MESSAGES)
def test_message(message, lines, field):
    refusal = in_cluster(refusal_of(message, "shop"), "shop", facts_of(LIMITS))
    found = Explanation(cause=refusal.text, remedies=refusal.remedies, origins=refusal.origins)
    said = told(found)
    assert ([said[0].removeprefix("Explained: "), *said[1:]], refusal.field) == (lines, field)


def webhooks(kind, *clients):
    members = [
        {"name": f"w{number}.x.y", "failurePolicy": "Fail", "clientConfig": client}
        for number, client in enumerate(clients)
    ]
    return thing(kind, "conf", api_version="admissionregistration.k8s.io/v1", namespace="", webhooks=members)


IGNORE = """- kubectl patch validatingwebhookconfiguration/conf -p '{"webhooks":[{"name":"w0.x.y","failurePolicy":"Ignore"}]}'"""


@pytest.mark.parametrize(
    ("message", "client", "address", "remedies", "origins"),
    [
        (
            'failed calling webhook "w0.x.y": no',
            {"service": {"namespace": "a", "name": "b"}},
            "the Service a/b",
            ["- Start its server.", IGNORE],
            ["@ service/b"],
        ),
        ('admission webhook "w0.x.y" denied the request: no', {"url": "https://x"}, "https://x", [], []),
    ],
    ids=["failing", "denying"],
)
def test_configuration_of_a_webhook_is_named(message, client, address, remedies, origins):
    configuration = webhooks("ValidatingWebhookConfiguration", client, {"url": "https://other"})
    refusal = in_cluster(refusal_of(message, "shop"), "shop", facts_of(configuration))
    found = Explanation(
        cause="c", evidence=refusal.evidence, remedies=refusal.remedies, origins=refusal.origins
    )
    assert told(found)[1:] == [
        *remedies,
        CONFIGURATIONS,
        '@ validatingwebhookconfiguration/conf webhooks["w0.x.y"]',
        *origins,
    ]
    assert evidence_of(found) == [f"failurePolicy Fail, called at {address}"]


@pytest.mark.parametrize(
    ("path", "before", "after", "body"),
    [
        (("spec", "x"), 1, 2, '{"spec":{"x":1}}'),
        (("spec", "x"), None, 2, '{"spec":{"x":null}}'),
        (("spec",), {"a": 1}, {"a": 2, "b": 3}, '{"spec":{"a":1,"b":null}}'),
        (("spec",), {"a": {"b": 1}}, {"a": {"c": 1}}, '{"spec":{"a":{"c":null,"b":1}}}'),
        (("spec",), {"a": 1}, "x", '{"spec":{"a":1}}'),
        (("spec",), "x", {"a": 1}, '{"spec":"x"}'),
        (("containers", Member("c"), "image"), "x", "y", '{"containers":[{"name":"c","image":"x"}]}'),
        (("containers", Member("c")), {"image": "x"}, {}, '{"containers":[{"name":"c","image":"x"}]}'),
        (("containers", Member("c")), None, {}, '{"containers":[{"name":"c"}]}'),
    ],
)
def test_patch_that_restores_a_value(path, before, after, body):
    remedy = restored("Undo:", Origin.named("v1", "Pod", "a", "b", *path), before, after)
    is_strategic = any(isinstance(step, Member) for step in path)
    assert remedy.request.body == body
    assert ("strategic" in remedy.request.media_type) is is_strategic
    assert ("--type=merge" in remedy.command) is not is_strategic


OF_MEMBER = ("containers", Member("c"), "x")


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        (("spec", "x"), [{"a": 1}], [], True),
        (OF_MEMBER, None, [{"a": 1}], True),
        (OF_MEMBER, [{"a": 1}], None, True),
        (OF_MEMBER, ["a"], ["b"], True),
        (OF_MEMBER, [{"a": 1}], [{"a": 2}], False),
        (OF_MEMBER, [], [{"a": 2}], False),
        (OF_MEMBER, [{"a": 1}], [{"a": 1}], True),
        (OF_MEMBER, {"y": [{"a": 1}]}, {"y": [{"a": 2}]}, False),
        (OF_MEMBER, {"y": [{"a": 1}], "z": 1}, {"y": [{"a": 1}], "z": 2}, True),
        (OF_MEMBER, 1, 2, True),
    ],
)
def test_value_that_a_patch_restores_exactly(path, before, after, expected):
    assert is_restorable(path, before, after) is expected
