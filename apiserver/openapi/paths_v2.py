"""Conversion of paths and operations from version 3 to version 2, in which shared parameters are defined once."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery.fnv import fnv1
from mockube.apimachinery.gotext import escape_html
from mockube.apimachinery.tree import Tree, sorted_keys

from .order import METHODS
from .paths import PRODUCES
from .schemas import V2, V3

_NEVER_SHARED: Final = frozenset({"name", "dryRun", "fieldValidation"})
_WATCH: Final = (
    *PRODUCES,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_ORDER: Final = ("text/plain", *_WATCH, "application/jwk-set+json", "*/*")
_APPLY: Final = "application/apply-patch+yaml"
_AGGREGATOR: Final = "apiregistration_v1"
"""The tag of upstream's aggregator, which does not sort the extensions of its operations."""


class SharedParameters:
    """The parameters to which operations refer, by name."""

    def __init__(self) -> None:
        self.named: dict[str, Tree] = {}
        self._names: dict[bytes, str] = {}

    def reference(self, parameter: Tree) -> Tree:
        """Return the parameter, or a reference to it if it may be shared."""
        reference = parameter.get("schema", {}).get("$ref", "")
        if parameter["name"] in _NEVER_SHARED:
            return parameter
        if parameter["in"] == "body" and not reference.startswith(f"{V2}io.k8s.apimachinery"):
            return parameter
        text = orjson.dumps(parameter)
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"{parameter['name']}-{_hash(text)}"
            self.named[name] = parameter
        return {"$ref": f"#/parameters/{name}"}


def paths_v2(paths: Mapping[str, Tree], shared: SharedParameters) -> Tree:
    return {path: _path(item, shared) for path, item in paths.items()}


def _path(item: Tree, shared: SharedParameters) -> Tree:
    path_item: Tree = {method: _operation(item[method], shared) for method in METHODS if method in item}
    if "parameters" in item:
        path_item["parameters"] = [
            shared.reference(_parameter(parameter)) for parameter in item["parameters"]
        ]
    return path_item


def _operation(operation: Tree, shared: SharedParameters) -> Tree:
    responses = operation["responses"]
    produces = _types(responses["200"] if "200" in responses else responses["201"])
    consumed = operation.get("requestBody", {}).get("content", {})
    consumes = _consumed_types(operation, consumed, produces)
    operation_v2: Tree = {
        "description": operation["description"],
        **({"consumes": consumes} if consumes else {}),
        "produces": produces,
        "schemes": ["https"],
        "tags": operation["tags"],
        "operationId": operation["operationId"],
    }
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if consumed:
        parameters.insert(0, _body(operation["requestBody"]))
    if parameters:
        operation_v2["parameters"] = [shared.reference(parameter) for parameter in parameters]
    operation_v2["responses"] = {code: _response(response) for code, response in responses.items()}
    extensions = {key: value for key, value in operation.items() if key.startswith("x-")}
    is_of_aggregator = operation["tags"] == [_AGGREGATOR]
    return operation_v2 | {
        key: value if is_of_aggregator else sorted_keys(value) for key, value in extensions.items()
    }


def _consumed_types(operation: Tree, body: Tree, produces: Sequence[str]) -> Sequence[str]:
    if "x-kubernetes-action" in operation:
        if "application/vnd.kubernetes.protobuf" not in produces and "*/*" not in produces:
            return sorted(body, key=lambda kind: (kind == _APPLY, kind)) or produces  # of custom objects
        return sorted(body, key=lambda kind: (kind == _APPLY, kind)) or ["*/*"]
    return produces if operation["responses"]["200"]["content"][produces[0]]["schema"].get("$ref") else []


def _types(response: Tree) -> list[str]:
    return sorted(response.get("content", {}), key=_ORDER.index)


def _response(response: Tree) -> Tree:
    content = response.get("content")
    response_v2: Tree = {"description": response["description"]}
    return response_v2 | (
        {"schema": _rewrite_reference(next(iter(content.values()))["schema"])} if content else {}
    )


def _body(request: Tree) -> Tree:
    schema = _rewrite_reference(next(iter(request["content"].values()))["schema"])
    needed = {"required": True} if request.get("required") else {}
    return {"name": "body", "in": "body"} | needed | {"schema": schema}


def _parameter(parameter: Tree) -> Tree:
    """Return the parameter, with its members in the order of Go's encoder."""
    schema = parameter["schema"]
    parameter_v2: Tree = {
        "uniqueItems": True,
        "type": schema["type"],
        "description": parameter["description"],
    }
    parameter_v2 |= {"name": parameter["name"], "in": parameter["in"]}
    return parameter_v2 | ({"required": True} if parameter.get("required") else {})


def _rewrite_reference(schema: Tree) -> Tree:
    if "$ref" in schema:
        return {"$ref": V2 + schema["$ref"].removeprefix(V3)}
    return schema


def _hash(text: bytes) -> str:
    """Return six bytes of the 64-bit FNV-1 hash of the text in the form of Go's encoder."""
    return urlsafe_b64encode(fnv1(escape_html(text), 64).to_bytes(8, "big")[:6]).decode()


def references(tree: Any) -> set[str]:
    """Return the names of all definitions that paths refer to."""
    if isinstance(tree, list):
        return set().union(*map(references, tree))
    if not isinstance(tree, dict):
        return set()
    own_references = {tree["$ref"].rpartition("/")[2]} if isinstance(tree.get("$ref"), str) else set()
    return own_references.union(*map(references, tree.values()))
