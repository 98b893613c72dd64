"""Read a KubeSchedulerConfiguration from a file, with upstream's messages for what is invalid."""

from pathlib import Path as FilePath
from typing import Any

import orjson
from msgspec.structs import replace

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.configuration_files import ConfigurationError, decode
from mockube.scheduler.pods import DEFAULT_SCHEDULER

from .args import ARGS, Args
from .types import GROUP_VERSION, KIND, KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig
from .validation import validate


def read_configuration(file: FilePath, gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Return the configuration of a file; raise ConfigurationError if it is invalid."""
    try:
        document = load(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"open {file}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigurationError(str(error)) from error
    if document.strict_errors:
        raise ConfigurationError(f"strict decoding error: {', '.join(document.strict_errors)}")
    return configuration_of(document.tree, gates)


def configuration_of(tree: Any, gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Decode and validate a configuration; raise ConfigurationError if it is invalid."""
    if problem := _type_problem(tree):
        raise ConfigurationError(problem)
    configuration: KubeSchedulerConfiguration = decode(tree, KubeSchedulerConfiguration)
    try:
        for extender in configuration.extenders:
            parse_duration(extender.http_timeout)
    except DurationError as error:
        raise ConfigurationError(str(error)) from error
    profiles = [_with_args(profile, number) for number, profile in enumerate(configuration.profiles)]
    if len(profiles) <= 1:
        profiles = [_with_name(profile) for profile in profiles or [KubeSchedulerProfile()]]
    configuration = replace(configuration, profiles=tuple(profiles))
    if errors := [str(error) for error in validate(configuration, gates)]:
        raise ConfigurationError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return configuration


def _type_problem(tree: Any) -> str:
    if not isinstance(tree, dict):
        return "the file is not an object"
    for name, name_in_message in (("apiVersion", "apiVersion"), ("kind", "Kind")):
        if not isinstance(tree.get(name), str) or not tree[name]:
            return f"Object '{name_in_message}' is missing"
    if (tree["apiVersion"], tree["kind"]) != (GROUP_VERSION, KIND):
        return f"no kind {quote(tree['kind'])} is registered for version {quote(tree['apiVersion'])}"
    return ""


def _with_name(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """Return the only profile, which has the default name."""
    return (
        profile if profile.scheduler_name is not None else replace(profile, scheduler_name=DEFAULT_SCHEDULER)
    )


def _with_args(profile: KubeSchedulerProfile, number: int) -> KubeSchedulerProfile:
    """Return a profile with the decoded arguments of its plugins. Those of a plugin of the user's own stay as they are."""
    rows = []
    for index, row in enumerate(profile.plugin_config):
        kind = ARGS.get(row.name)
        try:
            rows.append(row if kind is None else replace(row, args=_decoded_args(row, kind)))
        except ConfigurationError as error:
            place = f"decoding .profiles[{number}].pluginConfig[{index}]"
            raise ConfigurationError(f"{place}: decoding args for plugin {row.name}: {error}") from error
    return replace(profile, plugin_config=tuple(rows))


def _decoded_args(row: PluginConfig, kind: type[Args]) -> Args:
    tree = row.args
    if tree is not None and not isinstance(tree, dict):
        raise ConfigurationError(f"the arguments are no object, but {orjson.dumps(tree).decode()}")
    args: Args = decode(tree or {}, kind)
    kind_of_args = (args.api_version or GROUP_VERSION, args.kind or kind.__name__)
    if kind_of_args != (GROUP_VERSION, kind.__name__):
        raise ConfigurationError(
            f"no kind {quote(kind_of_args[1])} is registered for version {quote(kind_of_args[0])}"
        )
    return args.with_defaults()
