"""Webhooks that do not answer for a while: their configurations lead to a port on which nothing listens."""

from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.packs import LABEL
from mockube.objects.errors import KindNotServed

from .operator_run import ObjectMissing, OperatorRun
from .plans import Disturbance

_KINDS: Final = (
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "customresourcedefinitions",
)
_CLOSED: Final = "https://127.0.0.1:1/closed"


def has_webhook(tree: ReadOnlyTree) -> bool:
    return next(_client_configs(tree), None) is not None


async def stop_webhooks(run: OperatorRun, _: Disturbance) -> None:
    """Let no webhook answer during the next step; if one refuses the step, it is done again when all answer."""
    originals = [
        (kind, meta.name(tree), path, config)
        for kind in _KINDS
        for tree in await run.requests.list(kind, "", "", "")
        for path, config in _client_configs(tree)
    ]
    if not originals:
        raise ObjectMissing("there is no webhook")
    for kind, name, path, config in originals:
        closed = {"url": _CLOSED, **({"caBundle": config["caBundle"]} if config.get("caBundle") else {})}
        await _replace(run, kind, name, path, closed)

    async def start_webhooks() -> None:
        run.trace.note("the webhooks answer again")
        for kind, name, path, config in originals:
            await _restore(run, kind, name, path, config)

    run.hold_back(start_webhooks, steps=2)


def _client_configs(tree: ReadOnlyTree) -> Iterator[tuple[str, ReadOnlyTree]]:
    """Yield each `clientConfig` of an object, with its path as a JSON pointer; none of a pack, whose objects functions convert."""
    if LABEL in meta.labels(tree):
        return
    for number, webhook in enumerate(tree.get("webhooks") or ()):
        yield f"/webhooks/{number}/clientConfig", webhook["clientConfig"]
    conversion = ((tree.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    if "clientConfig" in conversion:
        yield "/spec/conversion/webhook/clientConfig", conversion["clientConfig"]


async def _restore(run: OperatorRun, kind: str, name: str, path: str, config: ReadOnlyTree) -> None:
    """Let a webhook answer again, with the certificate that it has now, unless somebody has changed where it is."""
    try:
        tree = await run.requests.get(kind, name, "default")
        present = dict(_client_configs(tree)).get(path) or {}
        if present.get("url") == _CLOSED:
            bundle = {"caBundle": present["caBundle"]} if present.get("caBundle") else {}
            await _replace(run, kind, name, path, {**config, **bundle})
    except (ApiError, KindNotServed) as error:  # somebody has deleted it
        run.trace.note(f"{kind} {name}: {error}")


async def _replace(run: OperatorRun, kind: str, name: str, path: str, config: Any) -> None:
    patch = [{"op": "replace", "path": path, "value": config}]
    await run.requests.patch((kind, name, patch), "default", "json", "")
