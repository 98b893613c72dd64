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
    """Return the name of an object's kind as kubectl takes it, with its group if that is no group of Kubernetes."""
    group = meta.api_version(obj).rpartition("/")[0]
    name = meta.kind(obj).lower()
    is_own = "." not in group or group.endswith(".k8s.io")
    return name if is_own else f"{name}.{group}"


def blame(obj: ReadOnlyTree, field: str) -> str:
    """Return the command that prints who set a field."""
    named = f"{kind_argument(obj)}/{meta.name(obj)}"
    return command("mockube", "blame", named, *namespace_flags(meta.namespace(obj)), "--field", field)
