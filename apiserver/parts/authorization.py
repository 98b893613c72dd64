"""The authorizers, by the modes or the file that the flags name."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mockube.apimachinery.schema import minors
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.bootstrap.rbac import rules_of_nodes
from mockube.apiserver.config.authorization import authorization_settings
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog

from .context import ApiServerContext
from .outgoing import Outgoing

if TYPE_CHECKING:
    from mockube.apiserver.authz.configured_authorizers import ConfiguredAuthorizers


def make_rights(config: Config, catalog: Catalog) -> Rights:
    minor = config.features.kubernetes_version
    rights = Rights(config.authorization.types, rules_of_nodes(minor), catalog.stored_rows)
    rights.authorization.names_authorizers = not minors.is_before(minor, "1.37")
    return rights


class Authorizers(Struct, frozen=True, kw_only=True):
    rights: Rights
    configured: "ConfiguredAuthorizers | None"
    """Those of a file, a webhook or policies, which replace those of the modes; None if the modes are sufficient."""


def make_authorizers(context: ApiServerContext, catalog: Catalog, outgoing: Outgoing) -> Authorizers:
    rights, settings = (
        make_rights(context.config, catalog),
        authorization_settings(context.config.authorization),
    )
    configured = None if settings is None else rights.configure(settings, outgoing.remote.authorization)
    return Authorizers(rights=rights, configured=configured)
