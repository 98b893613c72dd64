"""Normalize responses of two servers for comparison, and translate requests from one server to the other."""

import itertools
import json
import re
from urllib.parse import quote, unquote

import yaml

from tests.conformance.golden import golden

OWN = {"uid", "resourceVersion", "clusterIP", "nodePort", "healthCheckNodePort", "continue"}
"""Fields that each server sets by itself."""
OWN_LINE = re.compile(r"((?:uid|resourceVersion): '?)([\w-]+)")
"""Fields of a body in YAML."""
CONTINUE = re.compile(r"(?<=continue=)[^&]+")
OWN_TEXT = re.compile(r"(10\.0\.\d+\.\d+|kube-api-access-\w{5}|\w{8}(-\w{4}){3}-\w{12})$")
"""Server-generated values in other fields."""
CLUSTER_IP = re.compile(r"\b10\.(0|96)(\.\d{1,3}){2}\b")
OWN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
OWN_PORT = re.compile(r'(nodePort[\\":]{1,9}|\d:|Duplicate value: |duplicate nodePort: \{\w+ )3[0-2]\d{3}\b')
DANGLING = "api-priority-and-fairness-config-consumer-v1"
"""Manager of a condition that either server writes a moment after a FlowSchema."""
OWN_REVISION = re.compile(r"(ResourceVersion in (?:object meta: |record \()|not decodable revision=)\d+")
SHOWN_REVISION = re.compile(r"( resourceVersion:)\d+\b")
ERRORS = re.compile(r'(errors:)((?:\\n  [^"\\]*(?:\\[^n][^"\\]*)*)+)')
"""Lists of a typed object whose order is random upstream."""
OWN_CONNECTION = re.compile(r"(?<=127\.0\.0\.1:)\d+->")
OWN_TYPE = re.compile(r"(?<=selfType)\d+")
OWN_CHECK = re.compile(r"\[\+\]task-[^\\]*\\n")
MEMBER = re.compile(r"(\.(requests|limits))?(\[[^]\d][^]]*\])?$")
"""The end of a field's path that names a member of a map, or one of the two maps of resources."""
LISTED = ("resourceRules", "nonResourceRules")
"""Lists of a review whose order is random as well."""
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of the suffixes of generated names."""


def record_identities(identities, real, ours, key=""):
    """Record the second server's value for each name and number that a server generates."""
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() & {"items", "rows"}:
        # Their order is each server's. The version of a list may be that of an object: at one server, but not at both.
        of_list = {}
        record_identities(of_list, real.get("metadata"), ours.get("metadata"), key)
        identities |= of_list | identities
    elif isinstance(real, dict) and isinstance(ours, dict):
        for name in real.keys() & ours.keys():
            is_name = key == "metadata" and name == "name"
            record_identities(identities, real[name], ours[name], "uid" if is_name else name)
    elif isinstance(real, list) and isinstance(ours, list):
        for pair in zip(real, ours, strict=False):
            record_identities(identities, *pair, key)
    elif real != ours and (key in OWN or (isinstance(real, str) and OWN_TEXT.match(real))):
        identities[real] = ours


def translated(value, identities):
    """Return a request as it is sent to the second server."""
    if isinstance(value, dict):
        return {key: translated(member, identities) for key, member in value.items()}
    if isinstance(value, list):
        return [translated(item, identities) for item in value]
    if not isinstance(value, str):
        return identities.get(value, value) if value.__class__ is int else value
    if "\n" in value:
        return OWN_LINE.sub(lambda match: match[1] + str(identities.get(match[2], match[2])), value)
    if not value.startswith("/"):
        return identities.get(value, value)
    path, mark, query = value.partition("?")
    query = CONTINUE.sub(lambda match: quote(identities.get(unquote(match[0]), match[0]), safe=""), query)
    return "/".join(identities.get(segment, segment) for segment in path.split("/")) + mark + query


def generated_name(answer, request):
    """Return the name that a server generated for a new object, as a set of one or none."""
    body = answer["body"]
    metadata = body.get("metadata") if request["method"] == "POST" and isinstance(body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) and answer["status"] == 201 else None
    return (
        {name}
        if name and metadata.get("generateName") and name.startswith(metadata["generateName"])
        else set()
    )


def without_generated(answer, names):
    """Return a response without the names and addresses that a server generated."""
    text = OWN_VOLUME.sub("kube-api-access-<generated>", json.dumps(answer))
    text = CLUSTER_IP.sub("<ip>", OWN_CONNECTION.sub("<port>->", text))
    text = SHOWN_REVISION.sub(r"\1<rv>", text)
    text = OWN_REVISION.sub(r"\1<rv>", OWN_TYPE.sub("", OWN_CHECK.sub("", text)))
    text = TEXT.sub(lambda match: OWN_PORT.sub(r"\1<port>", match[0]), text)
    text = ERRORS.sub(lambda match: match[1] + r"\n  ".join(sorted(match[2].split(r"\n  "))), text)
    for name in names:
        text = text.replace(name, "<generated>")
    return json.loads(text)


def without_suffix(answer, request):
    """Return a response without the suffix of a generated name."""
    body = request.get("body")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    base = metadata.get("generateName") if isinstance(metadata, dict) else None
    if request["method"] != "POST" or not isinstance(base, str) or metadata.get("name"):
        return answer
    suffix = re.compile(re.escape(json.dumps(base[:58])[1:-1]) + f"[{ALPHABET}]{{5}}(?![a-z0-9])")
    return json.loads(suffix.sub("<generated>", json.dumps(answer)))


def comparable(answer, namespace):
    """Return the response without values that differ between two equal servers."""
    body = answer["body"]
    if "yaml" in answer["type"]:
        body = yaml.load(body, yaml.BaseLoader)
    if "protobuf" in answer["type"]:
        body = ""
    if isinstance(body, list):  # of a watch, or of what was no watch after all
        body = [event for event in body if not _is_plain_bookmark(event)]
        body = body if not body or "type" in body[0] else body[0]
    if isinstance(body, dict):
        for key in ("items", "rows"):  # of a cluster, without the objects of other conversations
            if isinstance(body.get(key), list):
                body = body | {key: [item for item in body[key] if namespace in json.dumps(item)]}
    body = _without_order(body)
    answer = golden.normalise(answer | {"body": body}, namespace, managed=True)
    return answer | {"type": answer["type"].replace(" ", "")}


def _is_plain_bookmark(event):
    """Whether the event is a bookmark without annotations, which servers send now and then."""
    return event.get("type") == "BOOKMARK" and not event["object"]["metadata"].get("annotations")


def _without_order(body):
    """Return a body without random order, and without values that identify the server."""
    if not isinstance(body, dict):
        return body
    body = _with_sorted_managers(body)
    if isinstance(body.get("items"), list):
        body = body | {"items": [_with_sorted_managers(item) for item in body["items"]]}
    if "gitVersion" in body:
        return {key: body[key] for key in ("major", "minor")}
    if body.get("kind") in ("FlowSchema", "FlowSchemaList"):
        items = [_without_dangling(item) for item in body.get("items") or ()]
        return body | {"items": items} if "items" in body else _without_dangling(body)
    status, details = body.get("status"), body.get("details")
    if isinstance(details, dict) and body.get("reason") == "Conflict" and details.get("causes"):
        return body | {"details": details | {"causes": sorted(details["causes"], key=json.dumps)}}
    if isinstance(details, dict) and details.get("causes"):
        return _with_sorted_causes(body, details)
    if isinstance(status, dict) and status.keys() & {*LISTED}:
        rules = {name: sorted(status.get(name) or (), key=json.dumps) for name in LISTED}
        return body | {"status": status | rules}
    return body


def _with_sorted_causes(body, details):
    """Sort the causes of one map: those of labels, resources and the like have a random order upstream."""
    causes = details["causes"]
    of_fields = itertools.groupby(causes, key=lambda cause: MEMBER.sub("", cause.get("field") or ""))
    ordered = [cause for _, of_field in of_fields for cause in sorted(of_field, key=json.dumps)]
    before, after = (
        ", ".join(f"{cause.get('field')}: {cause.get('message')}" for cause in each)
        for each in (causes, ordered)
    )
    message = (body.get("message") or "").replace(before, after)
    return body | {"message": message, "details": details | {"causes": ordered}}


def _with_sorted_managers(body):
    """Sort managers of several times, whose order depends on when a second ended."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    managers = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if not isinstance(managers, list) or len({json.dumps(one.get("time")) for one in managers}) < 2:
        return body
    names = ("operation", "manager", "apiVersion", "subresource")
    managers = sorted(managers, key=lambda one: [str(one.get(name)) for name in names])
    return body | {"metadata": metadata | {"managedFields": managers}}


def _without_dangling(schema):
    metadata = dict(schema.get("metadata") or {})
    managers = [one for one in metadata.pop("managedFields", None) or () if one.get("manager") != DANGLING]
    return schema | {"metadata": metadata | {"managedFields": managers}, "status": {}}
