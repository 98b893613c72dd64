"""Validation of security contexts, sysctls and the fields of one operating system."""

import pytest

from tests.support.field_rules import changed, create_errors
from tests.support.valid_pods import CONTAINER, POD

HOST_PROCESS = {"windowsOptions": {"hostProcess": True}}
OWN_PROCESS = {"windowsOptions": {"hostProcess": False}}


def errors_of(change):
    return create_errors("v1", "Pod", changed(POD, {f"spec.{path}": value for path, value in change.items()}))


def container_errors(context):
    texts = errors_of({"containers.0.securityContext": context})
    return [text.removeprefix("spec.containers[0].securityContext.") for text in texts]


def user(name):
    return {"windowsOptions": {"runAsUserName": name}}


OF_CONTAINERS = [
    pytest.param({}, [], id="empty context"),
    pytest.param({"runAsUser": 0, "runAsGroup": 0}, [], id="lowest user and group"),
    pytest.param({"runAsUser": -1, "runAsGroup": -1},
        ["runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
         "runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive"], id="negative user and group"),
    pytest.param({"runAsUser": 2147483647, "runAsGroup": 2147483647}, [], id="highest user and group"),
    pytest.param({"runAsUser": 2147483648, "runAsGroup": 2147483648},
        ["runAsUser: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
         "runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"],
        id="user and group too high"),
    pytest.param({"procMount": "Default"}, [], id="masked processes"),
    pytest.param({"procMount": "None"},
        ['procMount: Unsupported value: "None": supported values: "Default", "Unmasked"'],
        id="unknown mount of processes"),
    pytest.param({"procMount": ""},
        ['procMount: Unsupported value: "": supported values: "Default", "Unmasked"'], id="empty mount of processes"),
    pytest.param({"procMount": "Unmasked"},
        ['procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
        id="unmasked processes of the host's users"),
    pytest.param({"allowPrivilegeEscalation": True, "privileged": True},
        [], id="escalation of a privileged container"),
    pytest.param({"allowPrivilegeEscalation": False, "privileged": True},
        [("spec.containers[0].securityContext: Invalid value: "
          '{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: '
          "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")],
        id="no escalation of a privileged container"),
    pytest.param({"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
        [("spec.containers[0].securityContext: Invalid value: "
          '{"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: '
          "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")],
        id="no escalation of an administrator"),
    pytest.param({"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}},
        [], id="no escalation with another capability"),
    pytest.param({"seccompProfile": {"type": "RuntimeDefault"}}, [], id="seccomp of the runtime"),
    pytest.param({"seccompProfile": {}},
        ["seccompProfile.type: Required value: type is required when seccompProfile is set"], id="seccomp without type"),
    pytest.param({"seccompProfile": {"type": "Default"}},
        [('seccompProfile.type: Unsupported value: "Default": supported values: "Localhost", "RuntimeDefault", '
          '"Unconfined"')], id="seccomp of unknown type"),
    pytest.param({"seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"}},
        [], id="seccomp from a file"),
    pytest.param({"seccompProfile": {"type": "Localhost"}},
        ["seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"],
        id="seccomp from no file"),
    pytest.param({"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}},
        ['seccompProfile.localhostProfile: Invalid value: "/a": must be a relative path'],
        id="seccomp from an absolute file"),
    pytest.param({"seccompProfile": {"type": "Localhost", "localhostProfile": "../a"}},
        ["seccompProfile.localhostProfile: Invalid value: \"../a\": must not contain '..'"],
        id="seccomp from a file above"),
    pytest.param({"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}},
        [('seccompProfile.localhostProfile: Invalid value: {"Type":"RuntimeDefault","LocalhostProfile":"a"}: '
          "can only be set when seccomp type is Localhost")], id="seccomp of the runtime with a file"),
    pytest.param({"appArmorProfile": {"type": "RuntimeDefault"}}, [], id="AppArmor of the runtime"),
    pytest.param({"appArmorProfile": {}},
        ["appArmorProfile.type: Required value: type is required when appArmorProfile is set"],
        id="AppArmor without type"),
    pytest.param({"appArmorProfile": {"type": "Default"}},
        [('appArmorProfile.type: Unsupported value: "Default": supported values: "Localhost", "RuntimeDefault", '
          '"Unconfined"')], id="AppArmor of unknown type"),
    pytest.param({"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}},
        [], id="AppArmor from a profile"),
    pytest.param({"appArmorProfile": {"type": "Localhost"}},
        ["appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"],
        id="AppArmor from no profile"),
    pytest.param({"appArmorProfile": {"type": "Localhost", "localhostProfile": ""}},
        ["appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"],
        id="AppArmor from an empty profile"),
    pytest.param({"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}},
        ['appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace'],
        id="AppArmor from a padded profile"),
    pytest.param({"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4095}},
        [], id="AppArmor from a long profile"),
    pytest.param({"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4096}},
        ["appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes"],
        id="AppArmor from a profile too long"),
    pytest.param({"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}},
        ['appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost'],
        id="unconfined AppArmor with a profile"),
    pytest.param({"windowsOptions": {"gmsaCredentialSpecName": "a.example"}}, [], id="credentials by name"),
    pytest.param({"windowsOptions": {"gmsaCredentialSpecName": "A"}},
        [('windowsOptions.gmsaCredentialSpecName: Invalid value: "A": a lowercase RFC 1123 subdomain must '
          "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="credentials by invalid name"),
    pytest.param({"windowsOptions": {"gmsaCredentialSpec": ""}},
        ['windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string'],
        id="empty credentials"),
    pytest.param({"windowsOptions": {"gmsaCredentialSpec": "a" * 65536}}, [], id="large credentials"),
    pytest.param({"windowsOptions": {"gmsaCredentialSpec": "a" * 65537}},
        ['windowsOptions.gmsaCredentialSpec: Invalid value: "' + "a" * 65536 + '"... (1 more characters): gmsaCredentialSpec size must be under 64 KiB'],
        id="credentials too large"),
    pytest.param(user("a"), [], id="Windows user"),
    pytest.param(user("NT AUTHORITY\\System"), [], id="Windows user of a domain"),
    pytest.param(user("a.example-1.com\\b"), [], id="Windows user of a DNS domain"),
    pytest.param(user(""),
        ['windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string'],
        id="no Windows user"),
    pytest.param(user("a\tb"),
        ['windowsOptions.runAsUserName: Invalid value: "a\\tb": runAsUserName cannot contain control characters'],
        id="Windows user with a tabulator"),
    pytest.param(user("a\\b\\c"),
        [('windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than '
          "one backslash")], id="Windows user with two backslashes"),
    pytest.param(user("a\\"),
        ["windowsOptions.runAsUserName: Invalid value: \"a\\\\\": runAsUserName's User cannot be empty"],
        id="Windows domain without user"),
    pytest.param(user("\\a"),
        [("windowsOptions.runAsUserName: Invalid value: \"\\\\a\": runAsUserName's Domain doesn't match the "
          "NetBios nor the DNS format")], id="empty Windows domain"),
    pytest.param(user(".a\\b"),
        [("windowsOptions.runAsUserName: Invalid value: \".a\\\\b\": runAsUserName's Domain doesn't match the "
          "NetBios nor the DNS format")], id="Windows domain that begins with a dot"),
    pytest.param(user("a." * 127 + "a\\b"), [], id="Windows domain of 255 characters"),
    pytest.param(user("a" * 256 + "\\b"),
        ['windowsOptions.runAsUserName: Invalid value: "' + "a" * 256 + "\\\\b\": runAsUserName's Domain length must be under 256 characters",
         'windowsOptions.runAsUserName: Invalid value: "' + "a" * 256 + "\\\\b\": runAsUserName's Domain doesn't match the NetBios nor the DNS format"],
        id="Windows domain of 256 characters"),
    pytest.param(user("a" * 104), [], id="Windows user of 104 characters"),
    pytest.param(user("a" * 105),
        ['windowsOptions.runAsUserName: Invalid value: "' + "a" * 105 + "\": runAsUserName's User length must not be longer than 104 characters"],
        id="Windows user of 105 characters"),
    pytest.param(user(". ."),
        [("windowsOptions.runAsUserName: Invalid value: \". .\": runAsUserName's User cannot contain only "
          "periods or spaces")], id="Windows user of dots and spaces"),
    pytest.param(user("a:b"),
        [("windowsOptions.runAsUserName: Invalid value: \"a:b\": runAsUserName's User cannot contain the "
          'following characters: "/\\:;|=,+*?<>@[]')], id="Windows user with a colon"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OF_CONTAINERS)
def test_security_contexts_of_containers_are_validated(change, expected):
    assert container_errors(change) == expected


OF_PODS = [
    pytest.param({"fsGroup": 0, "runAsUser": 0, "runAsGroup": 0, "supplementalGroups": [0, 2147483647]},
        [], id="lowest groups"),
    pytest.param({"fsGroup": -1, "runAsUser": -1, "runAsGroup": -1, "supplementalGroups": [1, -1]},
        ["spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
         "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
         "spec.securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
         ("spec.securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, "
          "inclusive")], id="negative groups"),
    pytest.param({"fsGroup": 2147483648, "supplementalGroups": [2147483648]},
        ["spec.securityContext.fsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
         ("spec.securityContext.supplementalGroups[0]: Invalid value: 2147483648: must be between 0 and "
          "2147483647, inclusive")], id="groups too high"),
    pytest.param({"fsGroupChangePolicy": "OnRootMismatch"}, [], id="policy of the group of files"),
    pytest.param({"fsGroupChangePolicy": "Sometimes"},
        [('spec.securityContext.fsGroupChangePolicy: Unsupported value: "Sometimes": supported values: '
          '"Always", "OnRootMismatch"')], id="unknown policy of the group of files"),
    pytest.param({"supplementalGroupsPolicy": "Strict"}, [], id="policy of further groups"),
    pytest.param({"supplementalGroupsPolicy": "Loose"},
        [('spec.securityContext.supplementalGroupsPolicy: Unsupported value: "Loose": supported values: '
          '"Merge", "Strict"')], id="unknown policy of further groups"),
    pytest.param({"seLinuxChangePolicy": "Recursive"}, [], id="SELinux labels recursively"),
    pytest.param({"seLinuxChangePolicy": "None"},
        ['spec.securityContext.seLinuxChangePolicy: Unsupported value: "None": supported values: "MountOption", "Recursive"'],
        id="unknown policy of SELinux"),
    pytest.param({"seccompProfile": {"type": "Localhost"}, "appArmorProfile": {"type": "Localhost"}},
        [("spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type "
          "is Localhost"),
         ("spec.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor "
          "type is Localhost")], id="invalid profiles"),
    pytest.param({"windowsOptions": {"runAsUserName": ""}},
        [('spec.securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an '
          "empty string")], id="invalid Windows options"),
    pytest.param({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}, {"name": "net/ipv4/tcp_syncookies"}]},
        [], id="sysctl"),
    pytest.param({"sysctls": [{"value": "1"}]},
        ["spec.securityContext.sysctls[0].name: Required value"], id="sysctl without name"),
    pytest.param({"sysctls": [{"name": "Net.a"}]},
        [('spec.securityContext.sysctls[0].name: Invalid value: "Net.a": must have at most 253 characters and '
          "match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")],
        id="sysctl with capitals"),
    pytest.param({"sysctls": [{"name": "a" * 253}]}, [], id="sysctl of 253 characters"),
    pytest.param({"sysctls": [{"name": "a" * 254}]},
        ['spec.securityContext.sysctls[0].name: Invalid value: "' + "a" * 254 + ('": must have at most 253 characters and match regex '
                    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")],
        id="sysctl of 254 characters"),
    pytest.param({"sysctls": [{"name": "net.a"}, {"name": "net.a"}]},
        ['spec.securityContext.sysctls[1].name: Duplicate value: "net.a"'], id="sysctl twice"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OF_PODS)
def test_security_contexts_of_pods_are_validated(change, expected):
    assert errors_of({"securityContext": change}) == expected


OF_SPECS = [
    pytest.param({"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.a"}, {"name": "net/b"}, {"name": "kernel.sem"}]}},
        [('spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be specified when '
          "'hostNetwork' is true"),
         ('spec.securityContext.sysctls[1].name: Invalid value: "net/b": may not be specified when '
          "'hostNetwork' is true")], id="sysctl of the host's network"),
    pytest.param({"hostIPC": True, "securityContext": {"sysctls": [{"name": "kernel.sem"}, {"name": "fs.mqueue.a"}, {"name": "net.a"}]}},
        [('spec.securityContext.sysctls[0].name: Invalid value: "kernel.sem": may not be specified when '
          "'hostIPC' is true"),
         ('spec.securityContext.sysctls[1].name: Invalid value: "fs.mqueue.a": may not be specified when '
          "'hostIPC' is true")], id="sysctl of the host's IPC"),
    pytest.param({"shareProcessNamespace": True}, [], id="shared processes"),
    pytest.param({"shareProcessNamespace": True, "hostPID": True},
        [("spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be "
          "enabled")], id="shared processes of the host"),
    pytest.param({"hostUsers": False, "containers.0.securityContext": {"procMount": "Unmasked"}},
        [], id="unmasked processes of own users"),
    pytest.param({"hostUsers": False, "hostNetwork": True, "hostPID": True, "hostIPC": True},
        ["spec.hostNetwork: Forbidden: when `hostUsers` is false",
         "spec.HostPID: Forbidden: when `hostUsers` is false",
         "spec.HostIPC: Forbidden: when `hostUsers` is false"], id="own users in the host's namespaces"),
    pytest.param({"hostUsers": True, "hostNetwork": True, "hostPID": True, "hostIPC": True},
        [], id="host's users in the host's namespaces"),
    pytest.param({"hostUsers": False, "containers.0.volumeDevices": [{"name": "claim", "devicePath": "/a"}]},
        ["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"], id="own users with a device"),
    pytest.param({"os": {}}, ["spec.os.name: Required value"], id="system without name"),
    pytest.param({"os": {"name": "plan9"}},
        ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'], id="unknown system"),
    pytest.param({"os": {"name": "linux"}, "securityContext": {"runAsUser": 1}}, [], id="Linux"),
    pytest.param({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}, "containers.0.securityContext": {"windowsOptions": {}}},
        ["spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
         ("spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a "
          "linux pod")], id="Linux with Windows options"),
    pytest.param({"os": {"name": "windows"}, "securityContext": {"windowsOptions": {}, "runAsNonRoot": True}, "hostPID": False, "hostIPC": False},
        [], id="Windows"),
    pytest.param({"os": {"name": "windows"}, "hostUsers": True, "hostPID": True, "hostIPC": True, "shareProcessNamespace": False, "securityContext": {"appArmorProfile": {"type": "Unconfined"}, "seLinuxOptions": {}, "seccompProfile": {"type": "Unconfined"}, "fsGroup": 1, "fsGroupChangePolicy": "Always", "sysctls": [{"name": "a"}], "runAsUser": 1, "runAsGroup": 1, "supplementalGroups": [1], "supplementalGroupsPolicy": "Merge", "seLinuxChangePolicy": "Recursive"}},
        ["spec.securityContext.appArmorProfile: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.seLinuxOptions: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.seccompProfile: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.fsGroupChangePolicy: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.sysctls: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.runAsGroup: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.supplementalGroupsPolicy: Forbidden: cannot be set for a windows pod",
         "spec.securityContext.seLinuxChangePolicy: Forbidden: cannot be set for a windows pod",
         "spec.hostUsers: Forbidden: cannot be set for a windows pod",
         "spec.hostPID: Forbidden: cannot be set for a windows pod",
         "spec.hostIPC: Forbidden: cannot be set for a windows pod",
         "spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod"],
        id="Windows with fields of Linux pods"),
    pytest.param({"os": {"name": "windows"}, "containers.0.securityContext": {"appArmorProfile": {"type": "Unconfined"}, "seLinuxOptions": {}, "seccompProfile": {"type": "Unconfined"}, "capabilities": {}, "readOnlyRootFilesystem": False, "privileged": False, "allowPrivilegeEscalation": True, "procMount": "Default", "runAsUser": 1, "runAsGroup": 1}},
        ["spec.containers[0].securityContext.appArmorProfile: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.seLinuxOptions: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.seccompProfile: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.readOnlyRootFilesystem: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
         ("spec.containers[0].securityContext.allowPrivilegeEscalation: Forbidden: cannot be set for a windows "
          "pod"),
         "spec.containers[0].securityContext.procMount: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
         "spec.containers[0].securityContext.runAsGroup: Forbidden: cannot be set for a windows pod"],
        id="Windows with fields of Linux containers"),
    pytest.param({"hostNetwork": True, "securityContext": HOST_PROCESS}, [], id="process of the host"),
    pytest.param({"securityContext": HOST_PROCESS},
        [("spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess "
          "containers")], id="process of the host in its own network"),
    pytest.param({"hostNetwork": True, "containers": [{**CONTAINER, "securityContext": HOST_PROCESS}, {**CONTAINER, "name": "d"}]},
        [('spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be '
          "HostProcess containers")], id="one of two is a process of the host"),
    pytest.param({"hostNetwork": True, "securityContext": HOST_PROCESS, "containers.0.securityContext": OWN_PROCESS},
        [("spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess "
          "value must be identical if both are specified, was true")], id="process of the host differs from the pod"),
    pytest.param({"securityContext": OWN_PROCESS, "containers.0.securityContext": OWN_PROCESS},
        [], id="no process of the host in the host's pod"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OF_SPECS)
def test_security_fields_of_specs_are_validated(change, expected):
    assert errors_of(change) == expected
