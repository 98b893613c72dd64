"""ClusterTrustBundle: trust anchors in PEM, with or without a signer."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, pem
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.names import mask_trailing_dash
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.x509.certificate import parse_certificate
from mockube.apimachinery.x509.der import CertificateError
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.objectmeta import NameRule
from mockube.apiserver.kinds.common.signer_names import check_bundle_name, check_signer_name
from mockube.apiserver.kinds.common.validation import Validation, get_struct, immutable_fields
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import NAME, Column, Printer

_MAX_BYTES: Final = 1024 * 1024
_SIGNER, _BUNDLE = ROOT.child("spec", "signerName"), ROOT.child("spec", "trustBundle")
_OMITTED: Final = "<value omitted>"
_SIGNER_IS_IMMUTABLE: Final = immutable_fields("spec", "signerName", absent="")


def _check_metadata(bundle: ReadOnlyTree, signer: str) -> list[FieldError]:
    rule = NameRule(
        lambda name: check_bundle_name(name, signer),
        lambda beginning: check_bundle_name(mask_trailing_dash(beginning), signer),
    )
    return objectmeta.check(bundle, rule, namespaced=False)


def _check(bundle: ReadOnlyTree, *, parses_bundle: bool = True) -> Iterator[FieldError]:
    spec = get_struct(bundle, "spec")
    signer = spec.get("signerName") or ""
    yield from _check_metadata(bundle, signer)
    if signer:
        yield from check_signer_name(signer, _SIGNER)
    if parses_bundle:
        yield from _bundle_problems(spec.get("trustBundle") or "")


def _bundle_problems(bundle: str) -> Sequence[FieldError]:
    encoded = bundle.encode()
    if len(encoded) > _MAX_BYTES:
        return (errors.too_long(_BUNDLE, _MAX_BYTES),)
    anchors: dict[bytes, list[int]] = {}
    problems = []
    for index, block in enumerate(pem.blocks(encoded)):
        if problem := _block_problem(block):
            problems.append(f"entry {index} {problem}")
        else:
            anchors.setdefault(block.data, []).append(index)
    if not problems:
        problems = [
            f"duplicate trust anchor (indices [{' '.join(map(str, indexes))}])"
            for indexes in anchors.values()
            if len(indexes) > 1
        ]
        problems += [] if anchors else ["at least one trust anchor must be provided"]
    return [errors.invalid(_BUNDLE, _OMITTED, problem) for problem in problems]


def _block_problem(block: pem.Block) -> str:
    """Return why a block is no trust anchor; "" if it is one."""
    if block.type != "CERTIFICATE":
        return f"has bad block type: {block.type}"
    if block.headers:
        return "has PEM block headers"
    try:
        extensions = parse_certificate(block.data).extensions
    except CertificateError:
        return "does not parse as X.509"
    if not extensions.is_authority:
        return "does not have the CA bit set"
    return "" if extensions.has_basic_constraints else "has invalid basic constraints"


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    bundles = [get_struct(tree, "spec").get("trustBundle") or "" for tree in (new, old)]
    # An unchanged bundle is not parsed: a later parser may be stricter.
    yield from _check(new, parses_bundle=bundles[0] != bundles[1])
    yield from objectmeta.check_update(new, old)
    yield from _SIGNER_IS_IMMUTABLE(new, old)


def _cells(bundle: Tree, _now: datetime) -> list[Any]:
    return [meta.name(bundle), text(bundle, "spec", "signerName") or "<none>"]


KIND: Final = Kind(
    resource=Resource(
        group="certificates.k8s.io",
        version="v1",
        name="clustertrustbundles",
        kind="ClusterTrustBundle",
        namespaced=False,
        hashed_version="v1beta1",
        selectable=(selectable("spec.signerName"),),
    ),
    strategy=Strategy(cleared=(), resets={}, unconditional_update=False),
    validation=Validation(metadata_first=False, create=_check, update=_update),
    printer=Printer(columns=(NAME, Column(name="SignerName")), cells=_cells),
)
