"""The variables and files that the entrypoint of an image requires: without them it logs what is missing, and ends. Pure."""

from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from posixpath import normpath
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import RunBehavior, end_at_start
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.config.volumes import referenced_names
from mockube.container_runtime.control_plane_flags import flag_problem
from mockube.container_runtime.images.references import has_version
from mockube.container_runtime.images.table import Image, ImageTable, Requirement
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.start_errors import NOT_STARTED, message_of_start

from .hidden_servers import hidden_server, new_volumes, start_problem
from .missing_files import is_absent, missing_file, names_needed_file
from .wrong_options import names_options, wrong_option

_SOME_VALUE: Final = b64encode(b"a value").decode()
FindObject = Callable[[str], ReadOnlyTree | None]
_SERVERS: Final = frozenset(
    ("mysqld", "mariadbd", "postgres", "mongod", "redis-server", "minio", "server", "start", "start-dev")
)
"""Arguments with which entrypoints start the server as without any."""


def unmet_requirement(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Requirement | None:
    """Return the first requirement of the image's entrypoint that the container's variables do not meet; None if all are met.

    A command in place of the entrypoint requires nothing, and neither do arguments that are another program. A program of the control
    plane requires flags that it knows.
    """
    if (wrong := wrong_flags(container)) is not None:
        return wrong
    image = images.behavior_of(container)
    if image is None or not image.requires or container.get("command"):
        return None
    first = next(iter(container.get("args") or ()), "")
    if first and not first.startswith("-") and first not in _SERVERS:
        return None
    variables = environment_of(pod, container, references, image.env)
    set_in_pod = environment_of(pod, container, references)
    absent = {
        name
        for name in _file_variables(image)
        if (path := variables.get(name)) and is_absent(path, pod, container, references)
    }
    files = image.variable_files
    if files is not None and (names := [name for name in files.variables if name in absent]):
        logs = expand_references(files.logs, {"path": variables[names[0]]})
        return Requirement(one_of=(), logs=tuple(logs))
    unmet = next(
        (
            each
            for each in image.requires
            if _is_unmet(each, set_in_pod if each.mounted else variables, absent, pod, container)
        ),
        None,
    )
    if unmet is None:
        return None
    names = [name for name in unmet.when if _is_set(name, variables)]
    logs = [
        line
        for text in unmet.logs
        for line in (
            expand_references([text], {"when": name})[0] for name in (names if "$(when)" in text else [""])
        )
    ]
    return replace(unmet, logs=tuple(expand_references(logs, variables) if absent else logs))


def _file_variables(image: Image) -> set[str]:
    """Return the variables with the path of a file that has the value of another one."""
    required = {name for each in image.requires for name in each.one_of if name.endswith("_FILE")}
    return required if image.variable_files is None else required.union(image.variable_files.variables)


def wrong_flags(container: ReadOnlyTree) -> Requirement | None:
    """Return what a program of the control plane logs about a flag that it does not know; None if it knows all."""
    problem = flag_problem([*(container.get("command") or ()), *(container.get("args") or ())])
    return (
        None if problem is None else Requirement(one_of=(), logs=problem.lines, exit_code=problem.exit_code)
    )


def unmet_need(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Requirement | None:
    """Return what keeps the program of a container from its start: a variable or a file that is missing, or a wrong option."""
    return (
        hidden_server(images, pod, container)
        or unmet_requirement(images, pod, container, references)
        or missing_file(images, pod, container, references)
        or wrong_option(images, pod, container, references)
    )


def _is_unmet(
    requirement: Requirement,
    variables: Mapping[str, str],
    absent: Collection[str],
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
) -> bool:
    """Return whether variables do not meet a requirement; those with the path of an absent file do not count."""
    if not has_version(container.get("image") or "", requirement.since):
        return False
    if requirement.mounted and requirement.mounted not in _mount_paths(container):
        return False
    if requirement.when and not any(_is_set(text, variables) for text in requirement.when):
        return False
    if any(text not in absent and _is_set(text, variables) for text in requirement.one_of):
        return False
    return not requirement.unless or not _may_exist(requirement.unless, pod, container)


def _mount_paths(container: ReadOnlyTree) -> list[str]:
    return [normpath(mount["mountPath"]) for mount in container.get("volumeMounts") or ()]


def _is_set(text: str, variables: Mapping[str, str]) -> bool:
    name, has_value, value = text.partition("=")
    present = variables.get(name)
    return present == value if has_value else bool(present)


def _may_exist(path: str, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a volume may have a file that the server writes: one of another kind, or that an init container mounts."""
    volumes = {volume["name"] for volume in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        if f"{path}/".startswith(f"{normpath(mount['mountPath'])}/") and mount["name"] in volumes:
            return mount["name"] not in new_volumes(pod)
    return False


def end_of_entrypoint(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    config_map: FindObject,
    secret: FindObject,
) -> RunBehavior | None:
    """Return the end of an entrypoint that lacks a variable; None if it has all, as far as that is known."""
    wrong = wrong_flags(container)
    image = images.behavior_of(container)
    is_scripted = script.times_runs or script.ignore_missing or script.command(container["name"]) is not None
    if wrong is not None and not is_scripted:
        return end_at_start(container, wrong.exit_code, wrong.logs)
    if image is None or is_scripted:
        return None
    if (hidden := hidden_server(images, pod, container)) is not None:
        if problem := start_problem(hidden):
            return RunBehavior(seconds=0, exit_code=NOT_STARTED, start_error=message_of_start(problem))
        return end_at_start(container, hidden.exit_code, hidden.logs)
    names = {entry["name"] for entry in container.get("env") or ()}
    names_file = not names.isdisjoint(_file_variables(image))
    reads_files = names_file or names_needed_file(images, container) or names_options(images, container)
    if not image.requires and not reads_files:
        return None
    in_volumes = referenced_names(pod, container) if reads_files else (set(), set())
    config_maps = {name: config_map(name) for name in {*_referenced(container, "configMap"), *in_volumes[0]}}
    secrets = {name: secret(name) for name in {*_referenced(container, "secret"), *in_volumes[1]}}
    if {} in (*config_maps.values(), *secrets.values()):  # Nobody knows what the object contains.
        return None
    references = References(
        config_maps={name: found for name, found in config_maps.items() if found is not None},
        secrets={name: _with_values(found) for name, found in secrets.items() if found is not None},
    )
    requirement = unmet_need(images, pod, container, references)
    if requirement is None:
        return None
    return end_at_start(container, requirement.exit_code, requirement.logs)


def _with_values(secret: ReadOnlyTree) -> ReadOnlyTree:
    """Return a Secret in which each key has a value: the kubelet's cache keeps the keys only, and nearly none is empty."""
    return {
        **secret,
        "data": {key: value or _SOME_VALUE for key, value in (secret.get("data") or {}).items()},
    }


def _referenced(container: ReadOnlyTree, kind: str) -> Iterator[str]:
    """Yield the names of the ConfigMaps or Secrets from which the container has variables."""
    selectors = [source.get(f"{kind}Ref") for source in container.get("envFrom") or ()]
    selectors += [(entry.get("valueFrom") or {}).get(f"{kind}KeyRef") for entry in container.get("env") or ()]
    yield from (selector.get("name") or "" for selector in selectors if selector)
