"""The methods about objects of `Cluster`, the fixture and `connect`: they block until the server has responded."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, overload

from .arguments import TIMEOUT
from .client import PatchType
from .conditions import Condition
from .exec import ExecResult
from .manifests import Manifests
from .pods import LogOptions
from .port_forward import PortForward
from .senders import BlockingSender
from .trees import Object, Objects, OneObject


class ObjectMethods(BlockingSender):
    """Methods about objects.

    An object is named by its kind and its name, by `KIND/NAME`, or by the object itself. A kind is written as kubectl takes
    it: `Deployment`, `deployments`, `deploy`, `deployments.apps`. Objects are dicts, models of a client library, YAML or JSON
    as a text, the path of a file, of a folder or of a kustomization, or a list of these. A `str` is a text if it contains a
    line break, `{` or `: `, and a path otherwise.
    """

    # --- writes

    def apply(self, manifests: Manifests, *, namespace: str = "default") -> Objects:
        """Apply objects with server-side apply, in their order, and return the resulting objects.

        `namespace` is that of objects without one. If the manifests contain a CustomResourceDefinition, objects of its
        kind are applied when it is served.
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.apply(manifests, namespace))

    def create(self, manifests: Manifests, *, namespace: str = "default") -> Objects:
        """Create objects, and return them; raise AlreadyExists if one exists. `metadata.generateName` is allowed."""
        __tracebackhide__ = True
        return self._do(lambda requests: requests.create(manifests, namespace))

    @overload
    def patch(
        self,
        kind: str,
        name: str,
        patch: Mapping[str, Any] | list[Any] | str,
        *,
        type: PatchType | None = None,
        subresource: str = "",
        namespace: str = "default",
    ) -> Object: ...

    @overload
    def patch(
        self,
        target: str | OneObject,
        patch: Mapping[str, Any] | list[Any] | str,
        /,
        *,
        type: PatchType | None = None,
        subresource: str = "",
        namespace: str = "default",
    ) -> Object: ...

    def patch(
        self,
        kind: Any,
        name: Any = None,
        patch: Any = None,
        *,
        type: PatchType | None = None,  # noqa: A002 - it is kubectl's word
        subresource: str = "",
        namespace: str = "default",
    ) -> Object:
        """Patch an object, and return it: `patch("Deployment", "web", {"spec": {"paused": True}})`.

        A list is a JSON patch, and a dict a strategic merge patch, or a merge patch for custom resources; `type` chooses
        another one. `subresource` is for example "status".
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.patch((kind, name, patch), namespace, type, subresource))

    @overload
    def scale(self, kind: str, name: str, replicas: int, *, namespace: str = "default") -> Object: ...

    @overload
    def scale(self, target: str | OneObject, replicas: int, /, *, namespace: str = "default") -> Object: ...

    def scale(
        self, kind: Any, name: Any = None, replicas: Any = None, *, namespace: str = "default"
    ) -> Object:
        """Set the number of replicas of an object, and return its Scale: `scale("Deployment", "web", 5)`."""
        __tracebackhide__ = True
        return self._do(lambda requests: requests.scale((kind, name, replicas), namespace))

    @overload
    def rollout_restart(self, kind: str, name: str, *, namespace: str = "default") -> Object: ...

    @overload
    def rollout_restart(self, target: str | OneObject, /, *, namespace: str = "default") -> Object: ...

    def rollout_restart(self, kind: Any, name: Any = None, *, namespace: str = "default") -> Object:
        """Restart the pods of a Deployment, StatefulSet or DaemonSet, and return the object, as `kubectl rollout restart`."""
        __tracebackhide__ = True
        return self._do(lambda requests: requests.rollout_restart(kind, name, namespace))

    @overload
    def delete(
        self, kind: str, name: str, *, namespace: str = "default", ignore_not_found: bool = False
    ) -> None: ...

    @overload
    def delete(
        self, objects: Manifests, /, *, namespace: str = "default", ignore_not_found: bool = False
    ) -> None: ...

    def delete(
        self, kind: Any, name: Any = None, *, namespace: str = "default", ignore_not_found: bool = False
    ) -> None:
        """Delete an object, or the objects of manifests, the last one first. `wait_gone` waits until they do not exist."""
        __tracebackhide__ = True
        return self._do(
            lambda requests: requests.delete(kind, name, namespace, ignore_not_found=ignore_not_found)
        )

    # --- reads

    @overload
    def get(self, kind: str, name: str, *, namespace: str = "default") -> Object: ...

    @overload
    def get(self, target: OneObject, /, *, namespace: str = "default") -> Object: ...

    @overload
    def get(self, objects: Manifests, /, *, namespace: str = "default") -> Any: ...

    def get(self, kind: Any, name: Any = None, *, namespace: str = "default") -> Any:
        """Return an object; or a list of objects, if manifests are passed."""
        __tracebackhide__ = True
        return self._do(lambda requests: requests.get(kind, name, namespace))

    def list(
        self,
        kind: str,
        *,
        namespace: str = "default",
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
    ) -> Objects:
        """Return the objects of a kind that match a label selector and a field selector.

        "" as the namespace means all namespaces. A selector is a text, such as "app=web,tier!=db", or a dict of values.
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.list(kind, namespace, labels, fields))

    @overload
    def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,
        *,
        namespace: str = "default",
    ) -> Object: ...

    @overload
    def wait(
        self,
        target: OneObject,
        condition: Condition,
        /,
        *,
        timeout: float = TIMEOUT,
        namespace: str = "default",
    ) -> Object: ...

    @overload
    def wait(
        self,
        objects: Manifests,
        condition: Condition,
        /,
        *,
        timeout: float = TIMEOUT,
        namespace: str = "default",
    ) -> Any: ...

    def wait(
        self,
        kind: Any,
        name: Any = None,
        condition: Any = None,
        timeout: float = TIMEOUT,
        *,
        namespace: str = "default",
    ) -> Any:
        """Wait until an object meets a condition, and return it; raise WaitFailed, a TimeoutError, if it does not.

        The condition is the type of a status condition that must be True ("Available"), a type with another status
        ("Available=False"), a path and a value ("jsonpath={.status.phase}=Running"), or a function of the object that
        returns true. For a list or for manifests, all objects must meet it.

        A function is called for each change of the object, and each half second without one. It runs in the thread of the
        caller, or in the loop of the caller if the method is awaited, and may call methods that block. It is not
        interrupted when the time is over.
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.wait((kind, name, condition), timeout, namespace))

    @overload
    def wait_gone(
        self, kind: str, name: str, timeout: float = TIMEOUT, *, namespace: str = "default"
    ) -> None: ...

    @overload
    def wait_gone(
        self, objects: Manifests, /, *, timeout: float = TIMEOUT, namespace: str = "default"
    ) -> None: ...

    def wait_gone(
        self, kind: Any, name: Any = None, timeout: float = TIMEOUT, *, namespace: str = "default"
    ) -> None:
        """Wait until an object does not exist; raise WaitFailed, a TimeoutError, if it still does."""
        __tracebackhide__ = True
        return self._do(lambda requests: requests.wait_gone(kind, name, timeout, namespace))

    # --- containers

    def logs(
        self,
        pod: str | OneObject,
        *,
        container: str = "",
        previous: bool = False,
        tail: int | None = None,
        timestamps: bool = False,
        namespace: str = "default",
    ) -> str:
        """Return the log of a container: `logs("web-0")`, `logs("deployment/web", tail=10)`.

        A workload or a Service stands for its first ready pod. `previous` is the container before its last restart.
        """
        __tracebackhide__ = True
        options = LogOptions(container=container, previous=previous, tail=tail, timestamps=timestamps)
        return self._do(lambda requests: requests.logs(pod, namespace, options))

    def exec(
        self,
        pod: str | OneObject,
        command: str | Sequence[str],
        *,
        container: str = "",
        stdin: str | bytes | None = None,
        timeout: float = TIMEOUT,
        namespace: str = "default",
    ) -> ExecResult:
        """Run a command in a container, and return its output and exit code: `exec("web-0", "cat /etc/hostname").stdout`.

        The command is a list of arguments, or a str that is split like a line of a shell. No shell runs it: for pipes,
        use `["sh", "-c", "..."]`.
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.exec(pod, command, namespace, container, stdin, timeout))

    def port_forward(
        self,
        pod: str | OneObject,
        port: int | str,
        *,
        local_port: int = 0,
        namespace: str = "default",
    ) -> AbstractContextManager[PortForward]:
        """Forward a local port to a port of a pod during a block: `with cluster.port_forward("service/web", 80) as web:`.

        `web.url` and `web.port` are the local address. The port is a number, a name, or the port of a Service. An error in
        the block gets the errors of the connections as notes.
        """
        return self._open_port(lambda requests: requests.port_forward(pod, port, local_port, namespace))

    # --- the past

    def changes(self, kind: str = "", name: str = "", *, namespace: str = "", user: str = "") -> Objects:
        """Return the writes in the history as Changes, the oldest first: `spec` has the revision, the object, the author and the patch.

        They can be limited to a kind, an object of it, a namespace and a user.
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.changes(kind, name, namespace, user))

    def rewind(self, moment: str | int) -> Object:
        """Make the objects of a past moment the newest ones, and return what was done: the status of a Rewind.

        A moment is a revision, the name of a Mark, a time such as "2026-01-31T12:00:00Z", or a span before now such as "-5m".
        """
        __tracebackhide__ = True
        return self._do(lambda requests: requests.rewind(moment))
