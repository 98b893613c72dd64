"""What the scheduler runs with: the file of `--scheduler-config`, and the plugins of the user's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import astuple, fields, replace

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.component_base.configuration_files import ConfigurationError

from .config.args import DynamicResourcesArgs
from .config.plugin_sets import PluginError
from .config.types import KubeSchedulerConfiguration
from .in_tree import IN_TREE
from .plugin import OwnPlugin, is_plugin, name_of, points_of
from .profiles import DEFAULT_SETTINGS, SchedulerSettings, build_settings

if TYPE_CHECKING:
    from .config.extender_access import ExtenderAccess

GROUP: Final = "mockube.scheduler_plugins"
"""The group of entry points of plugins that a configuration may name."""
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "parallelism": "nodes are checked one after the other",
    "leader_election": "the controller manager has --leader-elect",
    "client_connection": "the controller manager has --kubeconfig",
    "enable_profiling": "there is no profiling",
    "enable_contention_profiling": "there is no profiling",
    "delay_cache_until_active": "the caches start with the leader",
}
"""The fields that are ignored, and why."""


def settings_for(file: Path | None, objects: Sequence[object], gates: FeatureGates) -> SchedulerSettings:
    """Return what a file and a user's own plugins configure; raise ConfigurationError if it is invalid."""
    if file is None and not objects:
        return DEFAULT_SETTINGS
    configuration = KubeSchedulerConfiguration()
    if file is not None:
        from .config.files import read_configuration  # noqa: PLC0415 - rarely needed

        configuration = read_configuration(file, gates)
    try:
        own = _by_name(objects)
        plugins = {**_of_entry_points(_unknown_names(configuration, own)), **own}
        settings = build_settings(configuration, plugins, default_plugins=own)
    except PluginError as error:
        raise ConfigurationError(str(error)) from error
    warnings = [*settings.warnings, *_warnings(configuration)]
    return replace(settings, extenders=_extenders_of(configuration), warnings=tuple(warnings))


def _extenders_of(configuration: KubeSchedulerConfiguration) -> tuple["ExtenderAccess", ...]:
    from .config.extender_access import access_of  # noqa: PLC0415 - rarely needed

    return tuple(map(access_of, configuration.extenders))


def _by_name(objects: Iterable[object]) -> dict[str, OwnPlugin]:
    """Return plugins by name; raise PluginError for one that cannot be used."""
    plugins: dict[str, OwnPlugin] = {}
    for plugin in objects:
        checked = _checked(plugin, repr(plugin))
        name = name_of(checked)
        if name in plugins or name in IN_TREE:
            raise PluginError(f'two plugins are named "{name}"')
        plugins[name] = checked
    return plugins


def _checked(plugin: object, origin: str) -> OwnPlugin:
    if not is_plugin(plugin):
        raise PluginError(f"{origin} is neither a subclass of SchedulerPlugin nor an object of one")
    if not points_of(plugin):
        raise PluginError(f"{origin} has neither a filter nor a score")
    if not isinstance(plugin.name, str):
        raise PluginError(f"{origin} has the name {plugin.name!r}, which is no str")
    if type(plugin.weight) is not int:
        raise PluginError(f"{origin} has the weight {plugin.weight!r}, which is no int")
    return plugin


def _unknown_names(configuration: KubeSchedulerConfiguration, own: Mapping[str, OwnPlugin]) -> Sequence[str]:
    """Return the names of plugins in a configuration that are not known otherwise."""
    sets = (chosen for profile in configuration.profiles for chosen in astuple(profile.plugins))
    names = {plugin.name for chosen in sets for plugin in chosen.enabled}
    return sorted(name for name in names if name not in IN_TREE and name not in own)


def _of_entry_points(names: Sequence[str]) -> dict[str, OwnPlugin]:
    """Return the plugins of entry points by the names of these; a name without an entry point is left out."""
    if not names:
        return {}
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    found: dict[str, OwnPlugin] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in names:
            continue
        if entry.name in found:
            raise PluginError(f'two entry points of {GROUP} are named "{entry.name}"')
        try:
            loaded = entry.load()
        except Exception as error:
            raise PluginError(
                f'plugin "{entry.name}": {entry.value} failed: {type(error).__name__}: {error}'
            ) from error
        plugin = _checked(loaded, f'plugin "{entry.name}": {entry.value}')
        if name_of(plugin) != entry.name:
            raise PluginError(f'plugin "{entry.name}": {entry.value} has the name "{name_of(plugin)}"')
        found[entry.name] = plugin
    return found


def _warnings(configuration: KubeSchedulerConfiguration) -> Iterator[str]:
    for field in fields(configuration):
        if field.name in _WITHOUT_EFFECT and getattr(configuration, field.name) != field.default:
            yield f"{field.encode_name} has no effect: {_WITHOUT_EFFECT[field.name]}"
    for number, profile in enumerate(configuration.profiles):
        for index, row in enumerate(profile.plugin_config):
            args = row.args
            if isinstance(args, DynamicResourcesArgs) and (args.filter_timeout or args.binding_timeout):
                yield f"profiles[{number}].pluginConfig[{index}]: {row.name} has no timeouts"
