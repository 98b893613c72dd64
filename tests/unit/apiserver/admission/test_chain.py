"""Which admission plugins are called for a write, and in which order."""

from types import SimpleNamespace

import pytest

from mockube.apiserver.admission.chain import DEFAULT_PLUGINS, PLUGINS, Admission
from mockube.apiserver.admission.limit_ranger import LIMIT_RANGES, RESIZE, LimitRanger
from mockube.apiserver.admission.plugin import CLAIM, POD, UPDATE, WRITE, Plugin, name_of
from mockube.apiserver.config import admission_plugins
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.server.rows import catalog

ROWS = catalog()

ON_BY_DEFAULT = {
    "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "ClusterTrustBundleAttest",
    "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger",
    "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeDeclaredFeatureValidator",
    "PersistentVolumeClaimResize", "PodGroupProtection", "PodResizeValidator", "PodSecurity",
    "PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
    "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}  # fmt: skip
"""Upstream's, in 1.37: `defaultOnPlugins` of `DefaultOffAdmissionPlugins` in pkg/kubeapiserver/options/plugins.go."""


class RecordingPlugin(Plugin):
    def __init__(self, name, called):
        self.name = name
        self.asked = called

    async def validate(self, _backend, _attributes):
        self.asked.append(self.name)


class PodPlugin(RecordingPlugin):
    operations = WRITE
    targets = frozenset({POD})


class UpdatePlugin(RecordingPlugin):
    operations = UPDATE


def write_attributes(resource, operation, subresource=""):
    row = ROWS["", "v1", resource]
    context = RequestContext(
        verb="update", resource=row, subresource=row.subresource(subresource), user=User(name="somebody")
    )
    return AdmissionAttributes(operation=operation, context=context, name="one", object={})


@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        (write_attributes("pods", Operation.CREATE), ["pods"]),
        (write_attributes("pods", Operation.UPDATE), ["changes", "pods"]),
        (write_attributes("pods", Operation.UPDATE, "status"), ["changes"]),
        (write_attributes("configmaps", Operation.UPDATE), ["changes"]),
        (write_attributes("configmaps", Operation.CREATE), []),
    ],
)
async def test_only_matching_plugins_are_called_in_order(attributes, names):
    called = []
    admission = Admission([UpdatePlugin("changes", called), PodPlugin("pods", called)])
    await admission.validate(SimpleNamespace(clock=SteppedClock()), attributes)
    assert called == names


class LimitRangePlugin(RecordingPlugin):
    operations = WRITE
    needs = LIMIT_RANGES


async def test_plugin_that_needs_objects_is_called_once_objects_exist():
    present, called = {}, []
    backend = SimpleNamespace(
        clock=SteppedClock(),
        resource_cache=lambda resource: present.setdefault(resource, ResourceCache(b"/")),
    )
    admission = Admission([LimitRangePlugin("limits", called), PodPlugin("pods", called)])
    await admission.validate(backend, write_attributes("pods", Operation.CREATE))
    assert called == ["pods"]
    present[LIMIT_RANGES].objects[b"/one"] = StoredObject(b"/one", b"{}", 1)
    await admission.validate(backend, write_attributes("pods", Operation.CREATE))
    assert called == ["pods", "limits", "pods"]


@pytest.mark.parametrize(
    ("operation", "target", "handled"),
    [
        (Operation.CREATE, POD, True),
        (Operation.UPDATE, POD, False),
        (Operation.UPDATE, RESIZE, True),
        (Operation.CREATE, CLAIM, True),
        (Operation.UPDATE, CLAIM, True),
        (Operation.DELETE, CLAIM, False),
        (Operation.CREATE, ("", "configmaps", ""), False),
    ],
)
def test_limit_ranger_handles_writes_that_can_raise_requests(operation, target, handled):
    assert LimitRanger().handles(operation, target) is handled


def test_plugins_have_upstreams_names_and_order():
    plugin_names = [name_of(plugin) for plugin in PLUGINS]
    assert plugin_names == [name for name in admission_plugins.UPSTREAM if name in plugin_names]


def test_plugins_on_by_default_are_upstreams():
    plugin_names = {name_of(plugin) for plugin in PLUGINS}
    assert {name for name in plugin_names if DEFAULT_PLUGINS.is_on(name)} == plugin_names & ON_BY_DEFAULT
