"""How others can check tokens of service accounts: OpenID Connect's discovery document, and the public keys."""

from collections.abc import Mapping

import orjson
from aiohttp import web

from apiserver.authn.serviceaccount.accounts import ServiceAccounts
from apiserver.http.pages import Page

CONFIGURATION, JWKS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


def openid_pages(accounts: ServiceAccounts, *, address: str) -> Mapping[str, Page]:
    configuration = {
        "issuer": accounts.issuer,
        "jwks_uri": f"https://{address}{JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": accounts.keys.algorithms(),
    }
    return {
        CONFIGURATION: _page(orjson.dumps(configuration), "application/json"),
        JWKS: _page(orjson.dumps(accounts.keys.jwks()), "application/jwk-set+json"),
    }


def _page(body: bytes, content_type: str) -> Page:
    async def page(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type=content_type, headers=_HEADERS)

    return page
