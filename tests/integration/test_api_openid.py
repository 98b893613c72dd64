"""OpenID Connect authentication over sockets, with keys that the server fetches over TLS."""

import contextlib

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from mockube.apiserver.config.authentication_configuration import NO_FILE, OpenIDConnect, jwt_settings
from tests.support.server import apiserver
from tests.support.server.openid import key_set, sign
from tests.support.server.webhook_server import credentials

LATER = 4102444800
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@contextlib.asynccontextmanager
async def issuer(folder, key):
    """Yield the URL of an issuer, whose CA is `ca.pem` in the folder."""
    context, authority = credentials(folder)
    (folder / "ca.pem").write_bytes(authority)
    app, asked = web.Application(), []
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)

    async def page(request):
        asked.append(request.path)
        url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        pages = {
            "/.well-known/openid-configuration": {"issuer": url, "jwks_uri": f"{url}/keys"},
            "/keys": key_set(k=key),
        }
        return web.json_response(pages[request.path])

    app.router.add_get("/{path:.*}", page)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_oidc_user_is_authenticated_and_invalid_token_refused(tmp_path, caplog):
    key, other = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    async with issuer(tmp_path, key) as url:
        flags = OpenIDConnect(
            oidc_issuer_url=url,
            oidc_client_id="mine",
            oidc_ca_file=tmp_path / "ca.pem",
            oidc_groups_claim="groups",
        )
        settings = jwt_settings(NO_FILE, flags, ())
        async with apiserver.running(jwt=settings) as client:
            await client.server._authentication.issuers.initialize()
            claims = {"iss": url, "aud": "mine", "sub": "ann", "exp": LATER, "groups": "g"}
            bearer = f"Bearer {sign(key, claims)}"
            answer = await client.post(SELF, {}, Authorization=bearer)
            assert answer.body["status"]["userInfo"] == {
                "username": f"{url}#ann",
                "groups": ["g", "system:authenticated"],
            }
            refused = await client.post(SELF, {}, Authorization=f"Bearer {sign(other, claims)}")
            assert (refused.status, refused.body["message"]) == (401, "Unauthorized")
            assert "failed to verify id token signature" in caplog.text
            metrics = (await client.get("/metrics")).data.decode()
            assert "apiserver_authentication_jwt_authenticator_latency_seconds_count" in metrics
            assert 'jwks_fetch_last_timestamp_seconds{apiserver_id_hash="",' in metrics
