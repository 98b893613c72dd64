"""The addresses of Services in the variables and arguments of containers: `http://db:5432`, `db.shop.svc:80`. Pure."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mockube.lint.objects import LintObject

from .fields import ServiceFields
from .object_set import SERVICE, ContainerAt, ObjectSet, PodTemplate
from .problem import Problem

_SEPARATORS: Final = re.compile(r"[\s,;=\"'()\[\]{}<>|&?#]")
_HOST_AND_PORT: Final = re.compile(r"([a-z](?:[-a-z0-9]*[a-z0-9])?)((?:\.[a-z0-9][-a-z0-9]*)*):(\d{2,5})")
_IN_CLUSTER: Final = re.compile(r"\.([a-z0-9][-a-z0-9]*)(?:\.svc(?:\.[-a-z0-9.]+)?)?")
_MIN_PORT: Final = 80
"""A smaller number may be a tag of an image: `postgres:17`."""


class Address(NamedTuple):
    """A Service of the files to which pods send requests, and the port."""

    pod: PodTemplate
    field: str
    service: LintObject
    fields: ServiceFields
    port: int


def addresses(objects: ObjectSet) -> Iterator[Address]:
    """Yield the addresses of Services of the files, each once for a pod."""
    if not objects.names(SERVICE):
        return
    for pod in objects.all_pods():
        seen = set()
        for at in pod.containers:
            for field, text in _texts(at):
                for name, domain, port in _hosts_and_ports(text):
                    place = _IN_CLUSTER.fullmatch(domain)
                    if (domain and not place) or int(port) < _MIN_PORT:
                        continue
                    namespace = place[1] if place else pod.namespace
                    for item in objects.find(SERVICE, namespace, name):
                        fields = objects.decode(item, ServiceFields)
                        if fields is not None and (name, namespace, port) not in seen:
                            seen.add((name, namespace, port))
                            yield Address(pod, field, item, fields, int(port))


def _hosts_and_ports(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the domain and the port of each address in a text, such as `http://user@web.shop.svc:8080/path`."""
    for word in _SEPARATORS.split(text) if ":" in text else ():
        authority = word.rpartition("://")[2].partition("/")[0]
        if found := _HOST_AND_PORT.fullmatch(authority.rpartition("@")[2]):
            yield found[1], found[2], found[3]


def _texts(at: ContainerAt) -> Iterator[tuple[str, str]]:
    for index, variable in enumerate(at.fields.env):
        yield f"{at.path}.env[{index}].value", variable.value
    for name, texts in (("command", at.fields.command), ("args", at.fields.args)):
        for index, text in enumerate(texts):
            yield f"{at.path}.{name}[{index}]", text


def address_ports(objects: ObjectSet) -> Iterator[Problem]:
    """Find addresses with a port that the Service does not have."""
    for address in addresses(objects):
        spec = address.fields.spec
        if spec.type == "ExternalName" or spec.cluster_ip == "None" or not spec.ports:
            continue  # names of headless Services are addresses of pods, which may listen at other ports
        ports = [each.port for each in spec.ports]
        if address.port not in ports:
            message = (
                f"{address.service.title} has no port {address.port}: it has {', '.join(map(str, ports))}"
            )
            yield Problem(item=address.pod.item, field=address.field, message=message)
