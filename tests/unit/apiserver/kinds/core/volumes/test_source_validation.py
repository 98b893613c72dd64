"""Validation of the volumes of pods: each type of source."""

import pytest

from tests.support.field_rules import changed, create_errors
from tests.support.valid_pods import POD

IQN = "iqn.2015-02.example.com:test"
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def errors_of(*volumes):
    """Return the errors of a pod with other volumes, without the path of the volumes."""
    texts = create_errors("v1", "Pod", changed(POD, {"spec.volumes": [*volumes]}))
    return [text.removeprefix("spec.volumes") for text in texts]


def source_errors(source):
    return [text.removeprefix("[0].") for text in errors_of({"name": "v", **source})]


def iscsi(**fields):
    return {"iscsi": {"targetPortal": "a", "iqn": IQN, **fields}}


def of(source, /, **values):
    return {source: values}


def ephemeral(**spec):
    return {"ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM["spec"], **spec}}}}


VOLUMES = [
    pytest.param([], [], id="no volumes"),
    pytest.param([{"emptyDir": {}}], ["[0].name: Required value"], id="no name"),
    pytest.param([{"name": "A", "emptyDir": {}}],
        [('[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="invalid name"),
    pytest.param([{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}],
        ['[1].name: Duplicate value: "a"'], id="name twice"),
    pytest.param([{"name": "a"}, {"name": "a", "emptyDir": {}}],
        ["[0]: Required value: must specify a volume type"], id="name of an invalid volume twice"),
    pytest.param([{"name": "a"}], ["[0]: Required value: must specify a volume type"], id="no source"),
    pytest.param([{"name": "a", "emptyDir": {}, "hostPath": {"path": "/a"}}],
        ["[0].hostPath: Forbidden: may not specify more than 1 volume type"], id="two sources"),
    pytest.param([{"name": "a", "emptyDir": {}, "cephfs": {}, "downwardAPI": {}}],
        ["[0].cephFS: Forbidden: may not specify more than 1 volume type",
         "[0].downwarAPI: Forbidden: may not specify more than 1 volume type"],
        id="two sources with other names in errors"),
    pytest.param([{"name": "a" * 63, **ephemeral()}], [], id="long name of a claim"),
    pytest.param([{"name": "b", **ephemeral()}, {"name": "c", "persistentVolumeClaim": {"claimName": "a-b"}}],
        [('[1].persistentVolumeClaim.claimName: Invalid value: "a-b": must not reference a PVC that gets '
          "created for an ephemeral volume")], id="claim of an ephemeral volume"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), VOLUMES)
def test_volumes_are_validated(change, expected):
    assert errors_of(*change) == expected


SOURCES = [
    pytest.param({"emptyDir": {"sizeLimit": "0"}}, [], id="directory of no size"),
    pytest.param({"emptyDir": {"sizeLimit": "-1"}},
        ["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
        id="directory of negative size"),
    pytest.param({"emptyDir": {"medium": "Memory"}}, [], id="directory in memory"),
    pytest.param({"hostPath": {"path": "/a", "type": "Socket"}}, [], id="path of the host"),
    pytest.param({"hostPath": {"type": "Unknown"}}, ["hostPath.path: Required value"], id="no path of the host"),
    pytest.param({"hostPath": {"path": "/a/../b"}},
        ["hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"], id="path of the host above"),
    pytest.param({"hostPath": {"path": "/a", "type": "Pipe"}},
        [('hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", '
          '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"')], id="unknown type of path"),
    pytest.param({"gitRepo": {"repository": "r", "directory": "a/b"}}, [], id="git repository"),
    pytest.param({"gitRepo": {}}, ["gitRepo.repository: Required value"], id="git repository without URL"),
    pytest.param({"gitRepo": {"repository": "r", "directory": "/a"}},
        ['gitRepo.directory: Invalid value: "/a": must be a relative path'],
        id="git repository in an absolute directory"),
    pytest.param({"gitRepo": {"repository": "r", "directory": "a/../.."}},
        ["gitRepo.directory: Invalid value: \"a/../..\": must not contain '..'"],
        id="git repository in a directory above"),
    pytest.param({"gcePersistentDisk": {"pdName": "d", "partition": 255}}, [], id="disk of Google"),
    pytest.param({"gcePersistentDisk": {}},
        ["persistentDisk.pdName: Required value"], id="disk of Google without name"),
    pytest.param({"gcePersistentDisk": {"pdName": "d", "partition": 256}},
        ["persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"], id="partition too high"),
    pytest.param({"awsElasticBlockStore": {"partition": -1}},
        ["awsElasticBlockStore.volumeID: Required value",
         "awsElasticBlockStore.partition: Invalid value: -1: must be between 1 and 255, inclusive"],
        id="disk of Amazon with negative partition"),
    pytest.param({"secret": {"secretName": "s", "defaultMode": 511}}, [], id="Secret"),
    pytest.param({"secret": {}}, ["secret.secretName: Required value"], id="Secret without name"),
    pytest.param({"secret": {"secretName": "s", "defaultMode": 512}},
        ["secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"],
        id="mode too high"),
    pytest.param({"secret": {"secretName": "s", "defaultMode": -1}},
        ["secret.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"],
        id="negative mode"),
    pytest.param({"nfs": {"server": "s", "path": "/p"}}, [], id="NFS"),
    pytest.param({"nfs": {"path": "/p"}}, ["nfs.server: Required value"], id="NFS without server"),
    pytest.param({"nfs": {"server": "s"}},
        ["nfs.path: Required value",
         'nfs.path: Invalid value: "": must be an absolute path'], id="NFS without path"),
    pytest.param({"nfs": {"server": "s", "path": "p"}},
        ['nfs.path: Invalid value: "p": must be an absolute path'], id="NFS with relative path"),
    pytest.param({"glusterfs": {}},
        ["glusterfs.endpoints: Required value",
         "glusterfs.path: Required value"], id="Gluster without fields"),
    pytest.param({"persistentVolumeClaim": {}},
        ["persistentVolumeClaim.claimName: Required value"], id="claim without name"),
    pytest.param({"rbd": {}},
        ["rbd.monitors: Required value",
         "rbd.image: Required value"], id="RBD without fields"),
    pytest.param({"cinder": {"secretRef": {}}},
        ["cinder.volumeID: Required value",
         "cinder.secretRef.name: Required value"], id="Cinder without fields"),
    pytest.param({"cephfs": {"monitors": []}}, ["cephfs.monitors: Required value"], id="Ceph without monitors"),
    pytest.param({"azureFile": {}},
        ["azureFile.secretName: Required value",
         "azureFile.shareName: Required value"], id="Azure file without fields"),
    pytest.param({"vsphereVolume": {}}, ["vsphereVolume.volumePath: Required value"], id="vSphere without path"),
    pytest.param({"photonPersistentDisk": {}},
        ["photonPersistentDisk.pdID: Required value"], id="Photon without disk"),
    pytest.param({"portworxVolume": {}}, ["portworxVolume.volumeID: Required value"], id="Portworx without volume"),
    pytest.param({"scaleIO": {}},
        ["scaleIO.gateway: Required value",
         "scaleIO.system: Required value",
         "scaleIO.volumeName: Required value"], id="ScaleIO without fields"),
    pytest.param({"storageos": {"secretRef": {}}},
        ["storageos.volumeName: Required value",
         "storageos.secretRef.name: Required value"], id="StorageOS without fields"),
    pytest.param({"storageos": {"volumeName": "A", "volumeNamespace": "B"}},
        [('storageos.volumeName: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
         ('storageos.volumeNamespace: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="StorageOS with invalid names"),
    pytest.param({"csi": {"driver": "A.example", "nodePublishSecretRef": {"name": "s"}}}, [], id="CSI"),
    pytest.param({"csi": {}}, ["csi.driver: Required value"], id="CSI without driver"),
    pytest.param({"csi": {"driver": "a" * 64}},
        ["csi.driver: Too long: may not be more than 63 bytes"], id="CSI with long driver"),
    pytest.param({"csi": {"driver": "a_b"}},
        [('csi.driver: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="CSI with invalid driver"),
    pytest.param({"csi": {"driver": "a", "nodePublishSecretRef": {}}},
        ["csi.nodePublishSecretRef.name: Required value"], id="CSI with unnamed secret"),
    pytest.param({"csi": {"driver": "a", "nodePublishSecretRef": {"name": "A"}}},
        [('csi.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
          "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
          "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")],
        id="CSI with invalid secret"),
    pytest.param({"image": {"reference": "a", "pullPolicy": "Never"}}, [], id="image"),
    pytest.param({"image": {}},
        ["image.reference: Required value",
         "image.pullPolicy: Required value"], id="image without fields"),
    pytest.param({"image": {"reference": "a", "pullPolicy": "Sometimes"}},
        ['image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"'],
        id="image with unknown policy"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SOURCES)
def test_sources_are_validated(change, expected):
    assert source_errors(change) == expected


OLDER = [
    pytest.param(iscsi(lun=255, initiatorName="eui.0123456789abcdef"), [], id="iSCSI"),
    pytest.param(iscsi(iqn="naa." + "0" * 32), [], id="iSCSI with NAA"),
    pytest.param({"iscsi": {}},
        ["iscsi.targetPortal: Required value",
         "iscsi.iqn: Required value"], id="iSCSI without fields"),
    pytest.param(iscsi(iqn="abc"),
        ['iscsi.iqn: Invalid value: "abc": must be valid format starting with iqn, eui, or naa'],
        id="iSCSI with unknown name"),
    pytest.param(iscsi(iqn="iqn.2015-02.example.com"),
        ['iscsi.iqn: Invalid value: "iqn.2015-02.example.com": must be valid format'], id="iSCSI with incomplete IQN"),
    pytest.param(iscsi(iqn="eui.0123"),
        ['iscsi.iqn: Invalid value: "eui.0123": must be valid format'], id="iSCSI with short EUI"),
    pytest.param(iscsi(iqn="naa." + "0" * 33),
        ['iscsi.iqn: Invalid value: "naa.000000000000000000000000000000000": must be valid format'],
        id="iSCSI with long NAA"),
    pytest.param(iscsi(lun=256),
        ["iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"], id="iSCSI with LUN too high"),
    pytest.param(iscsi(lun=-1),
        ["iscsi.lun: Invalid value: -1: must be between 0 and 255, inclusive"], id="iSCSI with negative LUN"),
    pytest.param(iscsi(chapAuthSession=True),
        ["iscsi.secretRef: Required value"], id="iSCSI with CHAP but no secret"),
    pytest.param(iscsi(chapAuthDiscovery=True, secretRef={"name": "s"}), [], id="iSCSI with CHAP and secret"),
    pytest.param(iscsi(initiatorName="iqn.x"),
        ['iscsi.initiatorname: Invalid value: "iqn.x": must be valid format'], id="iSCSI with invalid initiator"),
    pytest.param(iscsi(targetPortal="a" * 63, initiatorName=IQN),
        [('name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 '
          "characters if iscsi.initiatorName is specified.")], id="iSCSI with long portal"),
    pytest.param(iscsi(targetPortal="a" * 62, initiatorName=IQN), [], id="iSCSI with longest portal"),
    pytest.param(of("fc", targetWWNs=["a"], lun=0), [], id="Fibre Channel by targets"),
    pytest.param(of("fc", wwids=["a"]), [], id="Fibre Channel by names"),
    pytest.param(of("fc"),
        ["fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"],
        id="Fibre Channel without either"),
    pytest.param(of("fc", targetWWNs=["a"], lun=0, wwids=["b"]),
        ['fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously'],
        id="Fibre Channel by both"),
    pytest.param(of("fc", targetWWNs=["a"]),
        ["fc.lun: Required value: lun is required if targetWWNs is specified"], id="Fibre Channel without LUN"),
    pytest.param(of("fc", targetWWNs=["a"], lun=256),
        ["fc.lun: Invalid value: 256: must be between 0 and 255, inclusive"], id="Fibre Channel with LUN too high"),
    pytest.param(of("quobyte", registry="a:1,[::1]:2", volume="v", tenant="t" * 64), [], id="Quobyte"),
    pytest.param(of("quobyte"),
        ["quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas",
         "quobyte.volume: Required value"], id="Quobyte without fields"),
    pytest.param(of("quobyte", registry="a", volume="v"),
        ['quobyte.registry: Invalid value: "a": must be a host:port pair or multiple pairs separated by commas'],
        id="Quobyte without port"),
    pytest.param(of("quobyte", registry="a,b", volume="v"),
        [('quobyte.registry: Invalid value: "a,b": must be a host:port pair or multiple pairs separated by '
          "commas")], id="Quobyte with two invalid registries"),
    pytest.param(of("quobyte", registry="a:1", volume="v", tenant="t" * 65),
        ["quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters"],
        id="Quobyte with long tenant"),
    pytest.param(of("flocker", datasetName="a"), [], id="Flocker by name"),
    pytest.param(of("flocker"),
        ["flocker: Required value: one of datasetName and datasetUUID is required"], id="Flocker without either"),
    pytest.param(of("flocker", datasetName="a", datasetUUID="b"),
        ['flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously'],
        id="Flocker by both"),
    pytest.param(of("flocker", datasetName="a/b"),
        ["flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"], id="Flocker with slash"),
    pytest.param(of("flexVolume", driver="d", options={"a": "b", "example.com/a": "b"}), [], id="Flex"),
    pytest.param(of("flexVolume"), ["flexVolume.driver: Required value"], id="Flex without driver"),
    pytest.param(of("flexVolume", driver="d", options={"kubernetes.io/a": "b", "A.K8S.IO/b": "c", "k8s.io": "d"}),
        [('flexVolume.options[kubernetes.io/a]: Invalid value: "kubernetes.io/a": kubernetes.io and k8s.io '
          "namespaces are reserved"),
         ('flexVolume.options[A.K8S.IO/b]: Invalid value: "A.K8S.IO/b": kubernetes.io and k8s.io namespaces are '
          "reserved"),
         'flexVolume.options[k8s.io]: Invalid value: "k8s.io": kubernetes.io and k8s.io namespaces are reserved'],
        id="Flex with reserved options"),
    pytest.param(of("azureDisk", diskName="d", diskURI="https://b", cachingMode="None", kind="Shared"),
        [], id="Azure disk"),
    pytest.param(of("azureDisk"),
        ["azureDisk.diskName: Required value",
         "azureDisk.diskURI: Required value"], id="Azure disk without fields"),
    pytest.param(of("azureDisk", diskName="d", diskURI="https://b", cachingMode="Write", kind="Own"),
        ['azureDisk.cachingMode: Unsupported value: "Write": supported values: "None", "ReadOnly", "ReadWrite"',
         'azureDisk.kind: Unsupported value: "Own": supported values: "Dedicated", "Managed", "Shared"'],
        id="Azure disk with unknown kinds"),
    pytest.param(of("azureDisk", diskName="d", diskURI="/subscriptions/b", kind="Managed"),
        [], id="managed Azure disk"),
    pytest.param(of("azureDisk", diskName="d", diskURI="https://b", kind="Managed"),
        [('azureDisk.diskURI: Unsupported value: "https://b": supported values: '
          '"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"')],
        id="managed Azure disk with URL"),
    pytest.param(of("azureDisk", diskName="d", diskURI="/subscriptions/b", kind="Dedicated"),
        [('azureDisk.diskURI: Unsupported value: "/subscriptions/b": supported values: '
          '"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"')],
        id="dedicated Azure disk without URL"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OLDER)
def test_older_sources_are_validated(change, expected):
    assert source_errors(change) == expected
