"""The expressions in the files of deploy/prometheus, and the metrics that they name."""

import re

import orjson
import yaml

from tests.support.processes.process import ROOT

FOLDER = ROOT / "deploy" / "prometheus"
PROMETHEUS_OWN = {"up"}

_STRINGS_AND_SPANS = re.compile(r'"[^"]*"|\[[^\]]*\]')
_GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)?\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")
_METRIC = re.compile(r"(?<![\w:.])([a-zA-Z_:][\w:]*)\b(?!\s*\()")


def rules():
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels():
    return orjson.loads((FOLDER / "consoles" / "panels.json").read_bytes())


def expressions():
    return [*(rule["expr"] for rule in rules()), *(panel["query"] for panel in panels())]


def recorded_metrics():
    """Return the metrics that recording rules create."""
    return {rule["record"] for rule in rules() if "record" in rule}


def metrics(expression):
    plain = _SELECTOR.sub(r"\1", _STRINGS_AND_SPANS.sub("", expression))
    return set(_METRIC.findall(_GROUPING.sub("", plain)))


def labels(expression):
    """Return the labels that are selected or grouped by."""
    plain = _STRINGS_AND_SPANS.sub("", expression)
    grouped = {label.strip() for group in _GROUPING.findall(plain) for label in group.split(",")}
    return grouped | {label for _, inside in _SELECTOR.findall(plain) for label in _LABEL.findall(inside)}
