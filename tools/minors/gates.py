"""The feature gates of a release's kube-apiserver: what stage each has reached, whether it is on, and what it needs."""

import re
from typing import Any, TypeAlias

import yaml

from tools.minors.gomodules import Release, module_folder

Gates: TypeAlias = dict[str, list[Any]]
"""By name: its stage, whether it is on by default, whether it is locked to that, and the gates that it needs, if any."""

LISTS = ("test/compatibility_lifecycle/reference", "test/featuregates_linter/test_data")
"""Where releases since 1.32 list their gates, with what they were in each minor."""
SOURCES = (
    ("apiserver", "pkg/features/kube_features.go"),
    ("apiextensions-apiserver", "pkg/features/kube_features.go"),
    ("component-base", "logs/api/v1/kube_features.go"),
    ("component-base", "metrics/features/kube_features.go"),
)
CLIENTS = ("client-go", "features/known_features.go")
NOT_OF_SERVER = frozenset(
    {
        "ContextualLogging",
        "ControllerManagerReleaseLeaderElectionLockOnExit",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "NativeHistograms",
    }
)
"""Gates of other components alone, which are in the same lists."""
OF_ALL = {"AllAlpha": ["ALPHA", False, False], "AllBeta": ["BETA", False, False]}

NAME = re.compile(r'^\s*(\w+)\s+(?:featuregate\.Feature\s+)?= *"(\w+)"', re.MULTILINE)
SPEC = re.compile(
    r"^\s*(?:\w+\.)?(\w+): +\{Default: (\w+), PreRelease: featuregate\.(\w*)(.*?)\}", re.MULTILINE
)


CLIENT = re.compile(r"^\t(\w+): \{\n?(.*?)\}?,$\n?(?=\t\w|\})", re.MULTILINE | re.DOTALL)
CLIENT_SPEC = re.compile(
    r"(?:MustParse\(\"(?P<since>[\d.]+)\"\), )?Default: (?P<on>\w+), PreRelease: (?P<how>\w+)(?P<rest>.*)"
)


NEEDS_MAP = re.compile(r"^var defaultKubernetesFeatureGateDependencies = .*?^\}", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^\t(?:\w+\.)?(\w+):\s+\{(.+)\}", re.MULTILINE)
NEEDED = re.compile(r"(\w+)\)?(?:,|$)")


def read_gates(release: Release) -> Gates:
    gates = of_server(release) | of_clients(release)
    for name, needed in needs(release).items():
        gates[name] = [*gates[name], needed]
    return {name: gate for name, gate in sorted(gates.items()) if name not in NOT_OF_SERVER}


def needs(release: Release) -> dict[str, list[str]]:
    """The gates that each gate needs, of releases since 1.35."""
    text = (release.source / "pkg/features/kube_features.go").read_text()
    found = NEEDS_MAP.search(text)
    names = dict(NAME.findall(text))
    return {
        names.get(name, name): [names.get(each, each) for each in NEEDED.findall(needed)]
        for name, needed in NEEDS.findall(found[0] if found else "")
    }


def of_clients(release: Release) -> Gates:
    """Those of client-go, which every component has."""
    module, path = CLIENTS
    file = module_folder(release, module) / path
    if not file.exists():
        return {}
    gates = {}
    for name, text in CLIENT.findall(file.read_text()):
        stages = [
            match
            for match in CLIENT_SPEC.finditer(text)
            if number(match["since"] or "1.0") <= number(release.minor)
        ]
        if stages:
            gates[name] = [
                stage(stages[-1]["how"]),
                stages[-1]["on"] == "true",
                "LockToDefault: true" in stages[-1]["rest"],
            ]
    return gates


def of_server(release: Release) -> Gates:
    for folder in LISTS:
        paths = sorted((release.source / folder).glob("*versioned_feature_list.yaml"))
        if paths:
            return OF_ALL | {
                name: gate
                for path in paths
                for row in yaml.safe_load(path.read_text()) or ()
                if (gate := spec_of_minor(row["versionedSpecs"], release.minor))
                for name in [row["name"]]
            }
    return OF_ALL | from_sources(release)


def number(minor: str) -> int:
    return int(minor.partition(".")[2])


def spec_of_minor(specs: list[dict[str, Any]], minor: str) -> list[Any] | None:
    """What a gate is in a minor, by what it became in each; nothing if it was not there yet."""
    present_specs = [
        spec for spec in specs if not spec["version"] or number(spec["version"]) <= number(minor)
    ]
    if not present_specs:
        return None
    spec = present_specs[-1]
    return [stage(spec["preRelease"]), spec["default"], spec["lockToDefault"]]


def stage(text: str) -> str:
    return (text or "GA").upper()


def from_sources(release: Release) -> Gates:
    """From the Go code of releases whose gates have no versions."""
    texts = [(release.source / "pkg/features/kube_features.go").read_text()]
    for module, path in SOURCES:
        file = module_folder(release, module) / path
        if file.exists():
            texts.append(file.read_text())
    names = dict(pair for text in texts for pair in NAME.findall(text))
    return {
        names.get(name, name): [
            stage("" if stage_name == "GA" else stage_name),
            on == "true",
            "LockToDefault: true" in rest,
        ]
        for text in texts
        for name, on, stage_name, rest in SPEC.findall(text)
    }
