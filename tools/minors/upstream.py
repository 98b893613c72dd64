"""The files of upstream whose rules mockube has by hand, by their paths in the repository kubernetes/kubernetes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.minors.gomodules import Release, module_folder

STAGING: Final = "staging/src/k8s.io/"

COMPARED: Final[Mapping[str, str]] = {
    "": r"pkg/(api|controller|fieldpath|kubeapiserver|kubelet|printers/internalversion|probe|quota|registry|scheduler|securitycontext"
    r"|serviceaccount)/"
    r"|pkg/controlplane/(controller|reconcilers)/|plugin/pkg/"
    r"|pkg/apis/(.*/)?(validation/|helper/|pods/|util/|defaults|conversion|helpers?\.|evaluation_helpers)"
    r"|pkg/apis/.*/zz_generated\.validations\.go",
    "apimachinery": r"pkg/(api/validat|util/validation/|apis/meta/v1/validation/)",
    "apiserver": r"pkg/(admission|audit|authentication|authorization|cel|endpoints|quota|registry)/|plugin/|pkg/server/filters/|pkg/apis/(.*/)?(validation|bootstrap)/",
    "apiextensions-apiserver": r"pkg/(apiserver|controller|registry)/|pkg/apis/.*/?(validation/|defaults|conversion|helpers)",
    "cloud-provider": r"controllers/service/",
    "component-helpers": r"(apps|auth|node|nodedeclaredfeatures|resource|scheduling|storage)/",
    "dynamic-resource-allocation": r"(cel|deviceclass|resourceclaim|resourceslice|structured)/",
    "endpointslice": r"",
    "kube-aggregator": r"pkg/(apiserver|controllers|registry)/|pkg/apis/.*(validation/|defaults|helpers)",
    "pod-security-admission": r"(admission|policy)/",
}
"""By module, which paths are compared; "" is k8s.io/kubernetes itself."""

_OMITTED: Final = re.compile(
    r"_test\.go$|/zz_generated\.(?!validations)|generated\.pb\.go$|_(windows|darwin|freebsd|others|stub|unsupported)\.go$"
    r"|/(doc|register|metrics|import_known_versions)\.go$"
    r"|/install/install\.go$|/(testing|testdata|testutil|test|fake|fuzzer|registrytest|resttest|testapigroup|testcerts|samples)/"
    r"|/fake\.go$|/tokentest/|/(fake|test)_\w+\.go$|/testing\.go$|allocatortesting|/example2?/"
)
"""Tests, generated code other than rules, other systems' variants, and registrations."""


def upstream_files(release: Release) -> Mapping[str, Path]:
    """The compared files of a release by path; modules are downloaded if they are missing."""
    return {
        prefix + path: folder / path
        for module, pattern in COMPARED.items()
        for prefix, folder in [_location(release, module)]
        for path in _go_files(folder)
        if re.match(pattern, path) and not _OMITTED.search("/" + path)
    }


def _location(release: Release, module: str) -> tuple[str, Path]:
    if not module:
        return "", release.source
    return f"{STAGING}{module}/", module_folder(release, module)


def _go_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.go"))
