"""Commands that a user can paste: every argument is quoted, because names and values are anybody's text."""

import shlex

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree


def command(*arguments: str) -> str:
    return shlex.join(arguments)


def namespace_flags(namespace: str) -> tuple[str, ...]:
    return ("-n", namespace) if namespace else ()


def kubectl(*arguments: str, namespace: str = "") -> str:
    """Return a command of kubectl, in a namespace if the object has one."""
    return command("kubectl", *namespace_flags(namespace), *arguments)


def about(obj: ReadOnlyTree, verb: str, *arguments: str) -> str:
    """Return a command of kubectl with a verb for one object."""
    return kubectl(
        *verb.split(), f"{kind_argument(obj)}/{meta.name(obj)}", *arguments, namespace=meta.namespace(obj)
    )


def explanation_command(kind: str, namespace: str, name: str) -> str:
    return command("mockube", "why", f"{kind.lower()}/{name}", *namespace_flags(namespace))


def why_object(obj: ReadOnlyTree) -> str:
    """Return the command that explains an object."""
    return explanation_command(kind_argument(obj), meta.namespace(obj), meta.name(obj))


def kind_argument(obj: ReadOnlyTree) -> str:
    return _kind_argument(meta.api_version(obj), meta.kind(obj))


def _kind_argument(api_version: str, kind: str) -> str:
    """Return the name of a kind as kubectl takes it, with its group if that is no group of Kubernetes."""
    group = api_version.rpartition("/")[0]
    is_own = "." not in group or group.endswith(".k8s.io")
    return kind.lower() if is_own else f"{kind.lower()}.{group}"


def log_command(api_version: str, kind: str, namespace: str, name: str, field: str = "") -> str:
    """Return the command that prints who wrote an object, or one of its fields."""
    named = f"{_kind_argument(api_version, kind)}/{name}"
    of_field = ("--field", field) if field else ()
    return command("mockube", "log", named, *namespace_flags(namespace), *of_field)
