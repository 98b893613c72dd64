"""What to type instead of a command that mockube does not have: one of kubectl, one of a similar tool, or a mistyped one."""

import argparse
import shlex
import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from mockube import kubectl
from mockube.clusters.named_cluster import (
    ClusterState,
    cluster_folder,
    inspect_cluster,
    name_flag,
    running_names,
)
from mockube.component_base.suggestions import nearest

from .output import program_name
from .parsing import suggestion
from .target import chosen_name

OTHER_NAMES: Final = {
    "start": "up",
    "stop": "down",
    "destroy": "down",
    "ls": "list",
    "ps": "list",
    "info": "status",
    "create cluster": "up",
    "delete cluster": "down",
    "get clusters": "list",
}
"""Our commands by the names that kind, minikube, docker and others have for them."""


_MAX_NAMES: Final = 3
"""How many running clusters are named."""


def unknown_problem(
    options: argparse.Namespace, known_commands: Collection[str], environment: Mapping[str, str]
) -> str:
    """Return the message about an unknown command; the options have the command, its arguments, and a name if one was given."""
    words = [options.command, *options.rest]
    for other in (" ".join(words[:2]), words[0]):
        if other in OTHER_NAMES:
            return f'unknown command "{other}": did you mean {OTHER_NAMES[other]}? (see `mockube --help`)'
    if words[0] in kubectl.RESOURCES:
        words = ["get", *words]
    if words[0] in kubectl.COMMANDS:
        name = chosen_name(argparse.Namespace(name=getattr(options, "name", None)))
        return _lines_to_type(name, words, environment)
    return f'unknown command "{words[0]}"{_suggestion(words[0], known_commands)} (see `mockube --help`)'


def _suggestion(word: str, known_commands: Collection[str]) -> str:
    """Suggest the most similar command, of mockube or of kubectl."""
    likely = nearest(word, [*known_commands, *sorted(kubectl.COMMANDS)])
    if likely in kubectl.COMMANDS and likely not in known_commands:
        return f": did you mean `{program_name()} kubectl {likely}`?"
    return suggestion(word, known_commands)


def _lines_to_type(name: str, words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what to type instead of a command of kubectl."""
    folder, line = cluster_folder(name, environment), shlex.join(words)
    flag, program = name_flag(name), program_name()
    with_mockube = f"  {program} kubectl{flag} {line}"
    if inspect_cluster(folder).state is not ClusterState.RUNNING:
        running = running_names(folder.path.parent)
        problem = f'"{name}" is not running' if running else "no cluster is running"
        lines = [
            f'"{words[0]}" is a command of kubectl, and {problem}. Type',
            f"  {program} up --detach{flag}",
            with_mockube,
        ]
        for each in running[:_MAX_NAMES]:
            lines += [
                "or, for one that runs," if each == running[0] else "or",
                f"  {program} kubectl --name={each} {line}",
            ]
    else:
        lines = [
            f'"{words[0]}" is a command of kubectl. Type',
            with_mockube,
            "or",
            f"  export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}",
            f"  kubectl {line}",
        ]
    if shutil.which(kubectl.KUBECTL) is None:
        lines.append(f"kubectl is not installed: {kubectl.how_to_install()}")
    return "\n".join(lines)
