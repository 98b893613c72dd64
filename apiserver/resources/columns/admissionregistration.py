"""The columns of admissionregistration.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import count, items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _webhook_configuration(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "webhooks"), ages.age(tree, now)]


def _policy(rules: str, tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), count(tree, "spec", rules), _param_kind(tree), ages.age(tree, now)]


def _param_kind(policy: Tree) -> str:
    kind = part(policy, "spec", "paramKind")
    return "<unset>" if kind is None else f"{meta.api_version(kind)}/{meta.kind(kind)}"


def _binding(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "spec", "policyName"), _param_ref(tree), ages.age(tree, now)]


def _param_ref(binding: Tree) -> str:
    """A parameter by its name, in whatever namespace if none is said; else the selector of parameters."""
    reference = part(binding, "spec", "paramRef")
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = part(reference, "selector")
    return "<unset>" if selector is None else _go_selector(selector)


def _go_selector(selector: Any) -> str:
    """As Go prints the struct."""
    labels = part(selector, "matchLabels") or {}
    pairs = "".join(f"{key}: {value}," for key, value in sorted(labels.items()))
    requirements = "".join(map(_go_requirement, items(selector, "matchExpressions")))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def _go_requirement(requirement: Any) -> str:
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = " ".join(items(requirement, "values"))
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"


_WEBHOOKS: Final = Printer(
    columns=(NAME, Column(name="Webhooks", type="integer"), AGE), cells=_webhook_configuration
)
_BINDING: Final = Printer(
    columns=(NAME, Column(name="PolicyName"), Column(name="ParamRef"), AGE), cells=_binding
)

PRINTERS: Final[Mapping[str, Printer]] = {
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": Printer(
        columns=(NAME, Column(name="Validations", type="integer"), Column(name="ParamKind"), AGE),
        cells=partial(_policy, "validations"),
    ),
    "MutatingAdmissionPolicy": Printer(
        columns=(NAME, Column(name="Mutations", type="integer"), Column(name="ParamKind"), AGE),
        cells=partial(_policy, "mutations"),
    ),
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "MutatingAdmissionPolicyBinding": _BINDING,
}
