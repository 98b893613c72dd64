"""Everything that parses a short text: selectors, quantities, times, paths, names, headers, continue tokens."""

import base64
from functools import partial

import orjson

from mockube.apimachinery import (
    cron,
    durations,
    gotext,
    intstr,
    jsonpath,
    labels,
    names,
    pem,
    quantity,
    timestamps,
)
from mockube.apimachinery.durations import DurationError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.resource_names import is_extended, is_native
from mockube.apiserver import fields
from mockube.apiserver.kinds.common import addresses, resource_names
from mockube.apiserver.request_info import parse as parse_url
from mockube.apiserver.schema import base64text
from mockube.apiserver.storage import continue_token
from mockube.apiserver.wire import negotiation
from mockube.kubelet.stages.query import StageError, compile_query
from tests.fuzz import texts
from tests.fuzz.engine import Fault, Target
from tests.support.hostile import hostile_bodies

LABELS = ({}, {"a": "b"}, {"app": "1", "a": ""}, {"example.com/a": "99999999999999999999"})
TREE = {
    "metadata": {"name": "a", "labels": {"a.b": "c", "a": "1"}, "annotations": {"a": "x"}},
    "spec": {"containers": [{"a": 1, "name": "n"}, {"a": "1"}, None, 3], "a": {"b": [1, 2, [3]]}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    "items": [1, 2, {"a": [{}]}],
    "a": None,
}


def _label_selector(text):
    try:
        selector = labels.parse(text)
    except labels.SelectorError as error:
        return f"refused: {error}"
    again = labels.parse(str(selector))
    for given in LABELS:
        if selector.matches(given) != again.matches(given):
            raise Fault("a selector's canonical text selects something else")
    if str(again) != str(selector):
        raise Fault("a selector's canonical text is not canonical")
    return f"selects: {len(selector.requirements)}"


def _field_selector(text):
    try:
        selector = fields.parse(text)
    except fields.FieldSelectorError as error:
        return f"refused: {error}"
    selector.matches({"metadata.name": "a", "a": "b"})
    return f"selects: {selector.empty} {selector.requires_exact_match('metadata.name') is None}"


EXACT_DIGITS = 10_000
"""Sums of numbers with more digits are rounded up; those of upstream are not."""


def _loses_suffix(read):
    """Whether the canonical text has the digits alone, as upstream's has for 1000E and more: that is `1`."""
    digits = "".join(map(str, read.number.as_tuple().digits))
    zeros = read.number.as_tuple().exponent + len(digits) - len(digits.rstrip("0"))
    return bool(read) and zeros >= 21 and read.format is not quantity.Format.DECIMAL_EXPONENT


def _quantity(text):
    try:
        read = quantity.parse(text)
    except QuantityError as error:
        return f"refused: {error}"
    shown = str(read)
    if _loses_suffix(read):
        return f"read: {read.format} without its suffix"
    again = quantity.parse(shown)
    if again != read:
        raise Fault("a quantity's canonical text is another number")
    if str(quantity.Quantity(again.number, again.format)) != str(quantity.Quantity(read.number, read.format)):
        raise Fault("a quantity's canonical text is not canonical")
    try:
        total = read + read
    except QuantityError as error:
        return f"not added: {error}"
    if total - read != read and len(read.number.as_tuple().digits) < EXACT_DIGITS:
        raise Fault("a sum of quantities is not their sum")
    read.round_up(-3)
    read.scaled_value(-3)
    return f"read: {read.format} {len(shown)} {read > quantity.ZERO}"


def _duration(text):
    try:
        span = durations.parse_duration(text)
    except DurationError as error:
        return f"refused: {error}"
    if durations.parse_duration(durations.format_duration(span)) != span:
        raise Fault("a duration's canonical text is another duration")
    return "read"


def _timestamp(text):
    outcomes = []
    for parse, show in (
        (timestamps.parse_time, timestamps.format_time),
        (timestamps.parse_micro_time, timestamps.format_micro_time),
    ):
        try:
            moment = parse(text)
        except timestamps.TimestampError as error:
            outcomes.append(f"refused: {error}")
            continue
        if 1 < moment.year < 9999 and parse(show(moment)) != moment.replace(
            microsecond=moment.microsecond * (show is timestamps.format_micro_time)
        ):
            raise Fault("a time's canonical text is another time")
        outcomes.append("read")
    return " ".join(outcomes)


def _json_path(text):
    try:
        find = jsonpath.parse(text)
    except jsonpath.JSONPathError as error:
        return f"refused: {error}"
    return f"finds: {len(find(TREE))}"


def _query(text):
    try:
        query = compile_query(text)
    except StageError as error:
        return f"refused: {error}"
    values = query(TREE)
    return f"finds: {values is None}"


_NAME_CHECKS = (
    names.check_dns1123_label, names.check_dns1123_subdomain, names.check_dns1123_subdomain_with_underscore, names.check_wildcard_dns1123_subdomain,
    names.check_dns1035_label, names.check_label_key, names.check_label_value, names.check_kube_finalizer_name, names.check_path_segment_name,
    names.check_path_segment_prefix, names.check_c_identifier, names.check_env_var_name, names.check_relaxed_env_var_name, names.check_config_map_key,
    names.check_http_header_name, names.check_port_name, names.check_percent,
    resource_names.is_huge_page, is_native, is_extended, resource_names.is_overcommit_allowed, resource_names.is_integer,
    partial(resource_names.check_name, path=ROOT), partial(resource_names.check_container_name, path=ROOT),
    partial(resource_names.check_pod_name, path=ROOT), partial(resource_names.check_quota_name, path=ROOT),
)  # fmt: skip


def _name(text):
    for check in _NAME_CHECKS:
        found = check(text)
        if isinstance(found, list):
            for problem in found:
                str(problem)
    names.mask_trailing_dash(text)
    number = gotext.int_or_none(text, bits=32)
    value = text if number is None else number
    try:
        return f"scaled: {intstr.scaled_value(value, 7, round_up=True) > 0}"
    except intstr.IntOrStringError as error:
        return f"refused: {error}"


def _address(text):
    for check in (addresses.check_ip, addresses.check_cidr, addresses.check_endpoint_ip):
        for problem in check(text, ROOT):
            str(problem)
    addresses.is_ipv6(text)
    return f"read: {addresses.parse_sloppily(text) is None}"


def _schedule(text):
    try:
        cron.parse(text)
    except cron.ScheduleError as error:
        return f"refused: {error}"
    return "read"


def _base64(text):
    try:
        canonical = base64text.canonical(text)
    except base64text.Base64Error as error:
        return f"refused: {error}"
    if base64text.canonical(canonical) != canonical:
        raise Fault("canonical base64 is not canonical")
    return "read"


def _pem(text):
    return f"read: {len(pem.blocks(text.encode('latin-1', 'replace')))}"


def _media_type(text):
    negotiation.parse_media_type(text)
    wanted = [negotiation.negotiate(text, endpoint) for endpoint in negotiation.EndpointType]
    return f"wanted: {wanted[0]} {wanted.count(None)} {negotiation.matches_route(text)}"


def _url(text):
    info = parse_url("GET", text, watch=False)
    return f"url: {info.verb} {info.is_resource} {bool(info.namespace)} {info.subresource[:8]} {info.has_empty_namespace} {len(info.rest)}"


def _continue_token(text):
    try:
        token = continue_token.decode(text)
    except continue_token.BadContinueToken as error:
        return f"refused: {error}"
    if any(part in (".", "..") for part in token.start.split("/")):
        raise Fault("a continue token leads elsewhere")
    if (
        token.start
        and not token.start.startswith("/")
        and continue_token.decode(continue_token.encode(token)) != token
    ):
        raise Fault("a continue token's own text is another token")
    return "read"


def _make_continue_token(random):
    if random.random() < 0.2:
        return texts.join_tokens(random, ("e30", "eyJ2", "=", "bnVsbA", "W10", "-", "_", "+", "/", "a", "A"))
    token = {"v": "meta.k8s.io/v1", "rv": 5, "start": "default/a"}
    token["start"] = texts.join_tokens(random, ("a", "/", ".", "..", "default", "\x00", "é", "//", "%2e"))
    token = hostile_bodies.mutated(token, random) if random.random() < 0.5 else token
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


_BASE64 = ("AAE=", "A", "AA", "AAA", "=", "==", "\n", "\r\n", "-", "_", "+", "/", " ", "é", "*")
_PEM = (
    "-----BEGIN ", "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----", "-----END ", "-----", "\n", "\r\n", "AAAA", "=", "a: b\n", ":", " ", "CERTIFICATE", "-----BEGIN -----",
)  # fmt: skip


def _target(name, tokens, check, *, maximum=8, examples=400):
    def generate(random):
        return texts.join_tokens(random, tokens, maximum=maximum)

    return Target(name=name, generate=generate, check=check, mutate=texts.mutated, examples=examples)


TARGETS = (
    _target("label-selectors", texts.LABEL_SELECTORS, _label_selector, maximum=12),
    _target("field-selectors", texts.FIELD_SELECTORS, _field_selector),
    _target("quantities", texts.QUANTITIES, _quantity, maximum=5),
    _target("durations", texts.DURATIONS, _duration, maximum=6),
    _target("timestamps", texts.TIMESTAMPS, _timestamp, maximum=14),
    _target("json-paths", texts.PATHS, _json_path),
    _target("stage-queries", texts.QUERIES, _query),
    _target("names", texts.NAMES, _name),
    _target("addresses", texts.ADDRESSES, _address),
    _target("schedules", texts.SCHEDULES, _schedule, maximum=12),
    _target("base64", _BASE64, _base64),
    _target("pem", _PEM, _pem),
    _target("media-types", texts.MEDIA_TYPES, _media_type),
    _target("urls", texts.URL_PATHS, _url, maximum=14),
    Target(
        name="continue-tokens",
        generate=_make_continue_token,
        check=_continue_token,
        mutate=texts.mutated,
        examples=400,
    ),
)
