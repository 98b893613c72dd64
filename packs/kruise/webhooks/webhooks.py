"""The list of OpenKruise's webhooks."""

from collections.abc import Callable, Iterable
from typing import Final

from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.plugin import Plugin
from mockube.apiserver.packs.webhook import KindWebhook
from mockube.apiserver.registry.registry import Registry
from mockube.packs.kruise.definitions import alpha, beta

from . import clone_set, go_form, stateful_set, united_deployment
from .launch_priority import LaunchPriority

_Validate = Callable[[Registry, ReadOnlyTree, ReadOnlyTree | None], Iterable[FieldError]]


def _in_go(validate: _Validate) -> _Validate:
    """Return a validation whose errors show values as Go prints them."""
    return lambda registry, new, old: go_form.with_go_values(validate(registry, new, old))


WEBHOOKS: Final[tuple[KindWebhook | Plugin, ...]] = (
    LaunchPriority(),
    KindWebhook(
        group=beta.GROUP,
        resource="clonesets",
        decode=go_form.decode_clone_set,
        set_defaults=clone_set.set_defaults,
        validate=_in_go(clone_set.validate),
        convert=beta.convert_clone_set,
    ),
    KindWebhook(
        group=beta.GROUP,
        resource="statefulsets",
        decode=go_form.decode_stateful_set,
        set_defaults=stateful_set.set_defaults,
        validate=_in_go(stateful_set.validate),
        convert=alpha.convert_stateful_set,
    ),
    KindWebhook(
        group=beta.GROUP,
        resource="uniteddeployments",
        decode=go_form.decode_united_deployment,
        set_defaults=united_deployment.set_defaults,
        validate=_in_go(united_deployment.validate),
        convert=beta.convert_united_deployment,
    ),
)
