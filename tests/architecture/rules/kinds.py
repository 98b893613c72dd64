"""Rule: code does not branch on an object's kind, except in `kinds/` and adapters; a resource is a row."""

import ast
import re
from collections.abc import Iterator, Mapping

from tests.architecture.source import Finding, Module

AT_HOME = re.compile(r"^apiserver/kinds/[a-z]+/|(^|/)adapters(/|\.py$)")

_KIND = re.compile(r"[A-Z][A-Za-z]+")
"""Kinds begin with a capital letter; other things called kind, such as the kind of a token, do not."""

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")

NOT_RESOURCES = frozenset({"AdmissionReview", "ConversionReview", "DeleteOptions", "PatchOptions", "Status"})
"""Kinds of bodies: they have no resource, so no row can hold the fact."""

ALLOWED: Mapping[str, str] = {
    "container_runtime/simulated/shell/network_programs/kubectl/administration.py": "kubectl drain itself treats the pods of DaemonSets in another way",
    "apimachinery/volumes.py": "the source of a claim's contents is a reference in its spec",
    "apiserver/admission/versions.py": "a Scale is the body of a subresource, whose resource has another kind",
    "apiserver/control/bodies.py": "a body may be sent to a path of another resource than that of its kind",
    "apiserver/registry/reviews/authentication.py": "a token is bound to an object that the request's body names",
    "apiserver/registry/subresources/binding.py": "the target is a field of the request's body",
    "controller_manager/controllers/cronjob/controller.py": "an owner reference names the kind of a controller",
    "controller_manager/controllers/disruption/scale.py": "an owner reference names the kind of a controller",
    "controller_manager/controllers/horizontalpodautoscaler/metrics_api.py": "metrics of namespaces have a path of their own",
    "explanations/disruption.py": "kubectl drain itself treats the pods of DaemonSets in another way",
    "explanations/gateways.py": "references of routes name kinds",
    "explanations/rights.py": "the subject of a binding names a kind",
    "mockube/judging/object_kinds.py": "it reads the manifests of an operator, whose objects are of no row that it could ask",
    "mockube/importing/cleaning.py": "it removes what another cluster has written, which no row of ours describes",
    "publisher/gateway_attachment.py": "references of routes and grants name kinds",
}
"""Which file decides by kind elsewhere, and why. An entry that is no longer needed is an error, too."""


def _is_kind(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "kind" or name.endswith("_kind")
        case ast.Subscript(slice=ast.Constant(value="kind")):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value="kind"), *_]):
            return True
    return False


def _literals(node: ast.AST, constants: Mapping[str, list[str]]) -> list[str]:
    """Return the kinds in a constant, in a collection of constants, or in a name that the module gives to either."""
    match node:
        case ast.Name(id=name) if name in constants:
            return constants[name]
        case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="kind"):
            return [f"{name}.kind"] if _CONSTANT.fullmatch(name) else []
        case ast.Call(func=ast.Name(id="GroupKind"), args=[_, kind]):
            return _literals(kind, constants)
        case ast.Call(func=ast.Name(id="frozenset"), args=[items]):
            return _literals(items, constants)
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [item.value for item in items if isinstance(item, ast.Constant)]
    kinds = [value for value in values if isinstance(value, str) and _KIND.fullmatch(value)]
    nested = [kind for item in items if item is not node for kind in _literals(item, constants)]
    return [kind for kind in (nested or kinds) if kind not in NOT_RESOURCES]


def _constants(module: Module) -> Mapping[str, list[str]]:
    """Map the constants of a module to the kinds in them."""
    kinds: dict[str, list[str]] = {}
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                kinds[name] = _literals(value, kinds)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                kinds[name] = _literals(value, kinds)
    return {name: found for name, found in kinds.items() if _CONSTANT.fullmatch(name)}


def _compared_kinds(node: ast.AST, constants: Mapping[str, list[str]]) -> list[str]:
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            if not any(map(_is_kind, sides)):
                return []
            return [kind for side in sides for kind in _literals(side, constants)]
        case ast.Match(subject=subject, cases=cases) if _is_kind(subject):
            patterns = [part for case in cases for part in ast.walk(case.pattern)]
            return [
                kind
                for part in patterns
                if isinstance(part, ast.MatchValue)
                for kind in _literals(part.value, constants)
            ]
    return []


def check(module: Module, allowed: Mapping[str, str] = ALLOWED) -> Iterator[Finding]:
    if module.path not in allowed and not AT_HOME.search(module.path):
        yield from decisions(module)


def decisions(module: Module) -> Iterator[Finding]:
    constants = _constants(module)
    for node in module.nodes:
        if kinds := _compared_kinds(node, constants):
            yield Finding(
                node.lineno, f"decides by kind ({', '.join(kinds)}): make it a fact of the resource's row"
            )
