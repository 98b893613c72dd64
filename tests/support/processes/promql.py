"""The expressions in the files of deploy/prometheus, and the metrics that they name."""

import base64
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


# --- kubernetes-mixin


MIXIN = FOLDER / "mixin"
DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
_INTERVAL = re.compile(r"\$__(?:rate_)?interval|\$resolution|\$interval")
_METRIC_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_IN_MATCHER = re.compile(r'(=|=~)\s*"\$\w+"')


def mixin_rules():
    """Return the rules of kubernetes-mixin, of recordings and of alerts."""
    files = [yaml.safe_load((MIXIN / name).read_text()) for name in ("rules.yml", "alerts.yml")]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def mixin_panels():
    """Return the queries of the dashboards of kubernetes-mixin by the name of the dashboard, with all variables at "all"."""
    found = {}
    for path in sorted(DASHBOARDS.glob("*.json")):
        queries = dict.fromkeys(_queries(orjson.loads(path.read_bytes())))
        found[path.stem] = [_IN_MATCHER.sub('=~".*"', _INTERVAL.sub("5m", query)) for query in queries]
    return found


def _queries(tree):
    if isinstance(tree, list):
        for child in tree:
            yield from _queries(child)
    elif isinstance(tree, dict):
        if isinstance(tree.get("expr"), str):
            yield tree["expr"]
        for child in tree.values():
            yield from _queries(child)


def selections_of_jobs(expression):
    """Yield each metric that an expression selects with its jobs and the labels that it matches."""
    marked = _STRING.sub(lambda match: match[0].replace("{", "(").replace("}", ")"), expression)
    for name, inside in _SELECTOR.findall(marked):
        job = re.search(r'\bjob=~?"([^"]*)"', inside)
        yield name, job[1].split("|") if job else [], set(_LABEL.findall(_STRING.sub('""', inside)))


def recorded_names(expression):
    """Return the names with a colon, as those of recorded metrics have."""
    return {name for name in _METRIC_NAME.findall(_STRING.sub("", expression)) if ":" in name}


def decoded(kubeconfig):
    """Return the certificates and the key of a kubeconfig."""
    parts = (kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"])
    return {
        name: base64.b64decode(value)
        for part in parts
        for name, value in part.items()
        if name.endswith("-data")
    }
