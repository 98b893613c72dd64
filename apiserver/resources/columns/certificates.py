"""The columns of certificates.k8s.io."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from apimachinery import conditions, meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _certificate_signing_request(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        ages.age(tree, now),
        text(tree, "spec", "signerName") or "<none>",
        text(tree, "spec", "username"),
        _requested_duration(tree),
        _condition(tree),
    ]


def _requested_duration(tree: Tree) -> str:
    seconds = part(tree, "spec", "expirationSeconds")
    return "<none>" if seconds is None else ages.human(timedelta(seconds=seconds))


def _condition(tree: Tree) -> str:
    """What was decided, and how it went on. That a condition is there is enough: these are never false."""
    said = {text(condition, "type") for condition in conditions.of(tree)}
    decision = next((verdict for verdict in ("Denied", "Approved") if verdict in said), "Pending")
    failed = ("Failed",) if "Failed" in said else ()
    issued = ("Issued",) if text(tree, "status", "certificate") else ()
    return ",".join((decision, *failed, *issued))


PRINTERS: Final[Mapping[str, Printer]] = {
    "CertificateSigningRequest": Printer(
        columns=(
            NAME,
            AGE,
            Column(name="SignerName"),
            Column(name="Requestor"),
            Column(name="RequestedDuration"),
            Column(name="Condition"),
        ),
        cells=_certificate_signing_request,
    ),
}
