"""The authorizers, by the modes or the file that the flags name."""

from typing import TYPE_CHECKING

from mockube.apimachinery.schema import minors
from mockube.apiserver.authz.chain import RemoteAuthorization
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.bootstrap.rbac import rules_of_nodes
from mockube.apiserver.config.authorization import authorization_settings
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.customresources.catalog import Catalog

if TYPE_CHECKING:
    from mockube.apiserver.authz.configured_authorizers import ConfiguredAuthorizers


def make_rights(config: Config, catalog: Catalog) -> Rights:
    minor = config.features.kubernetes_version
    rights = Rights(config.authorization.types, rules_of_nodes(minor), catalog.stored_rows)
    rights.authorization.names_authorizers = not minors.is_before(minor, "1.37")
    return rights


def make_authorizers(
    config: Config, rights: Rights, remote: RemoteAuthorization
) -> "ConfiguredAuthorizers | None":
    """Replace the authorizers by those of a file, a webhook or policies; return None if the modes are sufficient."""
    settings = authorization_settings(config.authorization)
    return None if settings is None else rights.configure(settings, remote)
