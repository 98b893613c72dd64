"""The publisher of the root CA, with the certificates that this process itself trusts the server by."""

from controller_manager.config.access import access_of
from controller_manager.config.command_line import Config
from controller_manager.controllers.rootca.controller import root_ca
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.planning import Planning


def _bundle(options: Config) -> str:
    file = options.controllers.root_ca_file
    return file.read_text() if file is not None else access_of(options.server).authority.decode()


def _build(context: Context) -> Planning:
    return Planning(root_ca(_bundle(context.options)), context)


ROOT_CA: Engine = Engine(
    name="root-ca-certificate-publisher-controller", service_account="root-ca-cert-publisher", build=_build
)
