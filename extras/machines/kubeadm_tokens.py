"""kubeadm token: lists, creates and deletes bootstrap tokens. What it has and this does not do is refused by name."""

import csv
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.container_runtime.simulated.node.services import ask
from mockube.container_runtime.simulated.shell.network_programs.kubectl.connection import KubectlError
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import expand_template, to_yaml
from mockube.container_runtime.simulated.shell.options import (
    MissingValue,
    ProgramOptions,
    UnknownOption,
    parse_command_line,
)
from mockube.container_runtime.simulated.shell.process import Effect, Process, write_text
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .tables import table

Work = Generator[Effect, bytes | None, Any]
ADMIN: Final = "/etc/kubernetes/admin.conf"
_ADMINS: Final = (ADMIN, "/etc/kubernetes/super-admin.conf")
_TOKEN: Final = r"\A([a-z0-9]{6})\.([a-z0-9]{16})\z"  # noqa: S105 - the form of tokens
_IDENTIFIER: Final = r"\A([a-z0-9]{6})\z"
_GROUP: Final = r"\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z"
_FORMS: Final = f"{gotext.quote(_TOKEN)} or {gotext.quote(_IDENTIFIER)}"
_GROUPS: Final = ("system:bootstrappers:kubeadm:default-node-token",)
_USAGES: Final = ("signing", "authentication")
_DAY: Final = "24h"
_FORMATS: Final = (
    "go-template", "go-template-file", "json", "jsonpath", "jsonpath-as-json", "jsonpath-file", "kyaml", "template", "templatefile",
    "text", "yaml",
)  # fmt: skip
_NANO: Final = 10**9
_QUOTED_TIME: Final = re.compile(r"(?m)^(expires: )'(.*)'$")
_INDENT: Final = re.compile(r"(?m)^ +")
_MIN_WIDTH: Final = 10
_COLUMNS: Final = ("TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS")
_UNITS: Final = ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h"), (365 * 86_400, 86_400, "d"))
"""The units of a duration: below how many seconds each is used, its seconds, and its letter."""
_BASE_OPTIONS: Final = {
    "--kubeconfig": "kubeconfig=", "--dry-run": "dry-run", "--rootfs": "rootfs=", "--v": "v=", "-v": "v=", "--vmodule": "vmodule=",
    "--help": "help", "-h": "help",
}  # fmt: skip
"""The flags of all subcommands."""
_OF_CREATE: Final = {
    "--config": "config=", "--print-join-command": "print-join-command", "--certificate-key": "certificate-key=", "--ttl": "ttl=",
    "--usages": "usages=", "--groups": "groups=", "--description": "description=",
}  # fmt: skip
_OF_LIST: Final = {
    "--output": "output=", "-o": "output=", "--allow-missing-template-keys": "allow-missing-template-keys",
    "--show-managed-fields": "show-managed-fields",
}  # fmt: skip
_SWITCHES: Final = (
    "dry-run",
    "print-join-command",
    "allow-missing-template-keys",
    "show-managed-fields",
    "help",
)
_REFUSED: Final = ("dry-run", "config", "rootfs", "vmodule")
"""Flags that kubeadm has and that are not simulated."""
_USAGE: Final = """\
Usage:
  kubeadm token [flags]
  kubeadm token [command]

Available Commands:
  create      Create bootstrap tokens on the server
  delete      Delete bootstrap tokens on the server
  generate    Generate and print a bootstrap token, but do not create it on the server
  list        List bootstrap tokens on the server
"""


class KubeadmError(Exception):
    """kubeadm ends with a message."""


def require_admin(process: Process, path: str = "") -> None:
    """Raise `KubeadmError` without the kubeconfig of the administrator, or if a flag names another one."""
    files = process.host.files
    if not path or path == ADMIN:
        if not files.exists(ADMIN):
            raise KubeadmError(
                "failed to load admin kubeconfig: open /root/.kube/config: no such file or directory"
            )
        return
    try:
        data = files.read(process.path(path))
    except FileError as error:
        raise KubeadmError(f"failed to load admin kubeconfig: open {path}: {str(error).lower()}") from None
    if not any(files.exists(admin) and files.read(admin) == data for admin in _ADMINS):
        raise KubeadmError(
            f"kubeadm token --kubeconfig={path} is not simulated: only {' and '.join(_ADMINS)} are"
        )


def run(process: Process, arguments: Sequence[str]) -> Work:
    """Run `kubeadm token` with the arguments after it; raise `KubeadmError`, or `ServiceError` if the service refuses."""
    name, arguments = split_command(arguments)
    if not name:
        options = _parse(arguments, _BASE_OPTIONS)
        yield write_text(_USAGE)
        if "help" not in options:
            raise KubeadmError("\nerror: subcommand is required")
        return
    if name not in _COMMANDS:
        raise KubeadmError(f'unknown command "{name}" for "kubeadm token"')
    command, table_of_options = _COMMANDS[name]
    options = _parse(arguments, {**_BASE_OPTIONS, **table_of_options})
    if "help" in options:
        yield write_text(_help(name, table_of_options))
        return
    for refused in _REFUSED:
        if refused in options and options.get(refused) not in ("false", "0"):
            raise KubeadmError(f"kubeadm token {name} --{refused} is not simulated")
    yield from command(process, options)


def split_command(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the first argument that is no flag, "" if there is none, and the others."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not word.startswith("-"):
            return word, [*arguments[:index], *arguments[index + 1 :]]
        index += 2 if _BASE_OPTIONS.get(word, "").endswith("=") else 1
    return "", arguments


def _help(name: str, options: Mapping[str, str]) -> str:
    suffix = {"create": "create [token]", "delete": "delete [token-value] ..."}.get(name, f"{name} [flags]")
    flags = sorted(option for option in {**_BASE_OPTIONS, **options} if option.startswith("--"))
    return f"Usage:\n  kubeadm token {suffix}\n\nFlags:\n" + "".join(f"      {flag}\n" for flag in flags)


def _parse(arguments: Sequence[str], options_of: Mapping[str, str]) -> ProgramOptions:
    try:
        options = parse_command_line(arguments, options_of, strips_equals=True)
    except MissingValue as error:
        raise KubeadmError(f"flag needs an argument: {_flag(str(error), '')}") from None
    except UnknownOption as error:
        is_long = str(error).startswith("--")
        kind = "flag: " if is_long else "shorthand flag: "
        raise KubeadmError(f"unknown {kind}{_flag(str(error), _word_with(str(error), arguments))}") from None
    for value in options.all("v"):
        _check_level(value)
    for name in _SWITCHES:
        for value in options.all(name):
            _check_switch(name, value)
    return options


def _flag(option: str, word: str) -> str:
    return option if option.startswith("--") else f"{option[1:]!r} in {word or option}"


def _word_with(option: str, arguments: Sequence[str]) -> str:
    """Return the argument that has an option of one letter, from there on."""
    letter = option[1:]
    words = (word for word in arguments if word[:1] == "-" and word[1:2] != "-" and letter in word)
    return next((f"-{word[word.index(letter) :]}" for word in words), option)


def _check_level(value: str) -> None:
    try:
        gotext.parse_int(value, bits=32)
    except ValueError as error:
        raise KubeadmError(f'invalid argument {gotext.quote(value)} for "-v, --v" flag: {error}') from None


def _check_switch(name: str, value: str) -> None:
    if value:
        try:
            gotext.parse_bool(value)
        except ValueError as error:
            raise KubeadmError(
                f'invalid argument {gotext.quote(value)} for "--{name}" flag: {error}'
            ) from None


def _is_on(options: ProgramOptions, name: str, *, default: bool = False) -> bool:
    return default if name not in options else gotext.parse_bool(options.get(name) or "true")


# --- list


def _list(process: Process, options: ProgramOptions) -> Work:
    _refuse_arguments(options, "list")
    require_admin(process, options.get("kubeconfig"))
    show = _printer(options)
    tokens = yield from ask(process, "tokens")
    now = process.host.now_running(is_shown=True)
    yield write_text("".join(show(tokens, now)))


def _refuse_arguments(options: ProgramOptions, name: str) -> None:
    if options.arguments:
        raise KubeadmError(f'unknown command "{options.arguments[0]}" for "kubeadm token {name}"')


Printer = Callable[[Sequence[Mapping[str, Any]], datetime], Iterator[str]]


def _printer(options: ProgramOptions) -> Printer:
    """Return what prints tokens in the format of the options; raise `KubeadmError`."""
    text = options.get("output", "text")
    name, equals, template = text.partition("=")
    if name == "jsonpath" and template and _is_on(options, "allow-missing-template-keys", default=True):
        return lambda tokens, _: _expanded(template, tokens)
    if not equals and text in _PRINTERS:
        return _PRINTERS[text]
    if name not in _FORMATS or (equals and name in _PRINTERS):
        raise KubeadmError(
            f"could not construct output printer: unable to match a printer suitable for the output format {gotext.quote(text)}, "
            f"allowed formats are: {','.join(_FORMATS)}"
        )
    if not template and name != "kyaml":
        raise KubeadmError(
            "could not construct output printer: template format specified but no template given"
        )
    if name == "jsonpath":
        raise KubeadmError("kubeadm token list --allow-missing-template-keys=false is not simulated")
    raise KubeadmError(
        f"kubeadm token list --output={name} is not simulated: text, json, yaml and jsonpath are"
    )


def _object(token: Mapping[str, Any]) -> dict[str, Any]:
    """Return a token as kubeadm prints it, in the order of its fields."""
    tree = {"kind": "BootstrapToken", "apiVersion": "output.kubeadm.k8s.io/v1alpha3", "token": token["token"]}
    fields = ("description", "expires", "usages", "groups")
    return {**tree, **{name: token[name] for name in fields if token[name]}}


def _as_json(tokens: Sequence[Mapping[str, Any]], _: datetime) -> Iterator[str]:
    for each in tokens:
        text = "\n".join(gotext.marshal_indent(_object(each)))
        yield _INDENT.sub(lambda match: match[0] * 4, text) + "\n"


def _as_yaml(tokens: Sequence[Mapping[str, Any]], _: datetime) -> Iterator[str]:
    text = "---\n".join(to_yaml(_object(each)) for each in tokens)
    yield _QUOTED_TIME.sub(r'\1"\2"', text)


def _as_text(tokens: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[str]:
    """Yield the rows; each but the first has columns of its own."""
    rows = [_row(each, now) for each in tokens]
    if rows:
        yield table([_COLUMNS, rows[0]], width=_MIN_WIDTH)
        yield from (table([row], width=_MIN_WIDTH) for row in rows[1:])


def _row(token: Mapping[str, Any], now: datetime) -> Sequence[str]:
    left = "<forever>"
    if token["expires"]:
        left = _short_duration((datetime.fromisoformat(token["expires"]) - now).total_seconds())
    usages, groups = (",".join(token[name]) or "<none>" for name in ("usages", "groups"))
    description = token["description"] or "<none>"
    return (
        token["token"],
        f"{left:<9}",
        token["expires"] or "<never>",
        f"{usages:<22}",
        f"{description:<56}",
        groups,
    )


def _short_duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    return next((f"{whole // size}{unit}" for limit, size, unit in _UNITS if whole < limit), "") or (
        f"{whole // _UNITS[-1][0]}y"
    )


def _expanded(template: str, tokens: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in tokens:
        try:
            yield expand_template(template, _object(each))
        except KubectlError as error:
            raise KubeadmError(
                f"could not construct output printer: {str(error).removeprefix('error: ')}"
            ) from None


_PRINTERS: Final[Mapping[str, Printer]] = {"text": _as_text, "json": _as_json, "yaml": _as_yaml}


# --- create


def _create(process: Process, options: ProgramOptions) -> Work:
    text = options.get("ttl", _DAY)
    try:
        nanoseconds = parse_duration(text)
    except DurationError as error:
        raise KubeadmError(f'invalid argument {gotext.quote(text)} for "--ttl" flag: {error}') from None
    token = next(iter(options.arguments), "")
    if token and not _matches(_TOKEN, token):
        raise KubeadmError(
            f"the bootstrap token {gotext.quote(token)} was not of the form {gotext.quote(_TOKEN)}"
        )
    require_admin(process, options.get("kubeconfig"))
    usages, groups = _words(options, "usages") or _USAGES, _words(options, "groups") or _GROUPS
    problems = [*_problems_of_usages(usages), *_problems_of_groups(usages, groups)]
    if problems:
        raise KubeadmError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    request = {
        "token": token, "ttl": max(nanoseconds, 0) / _NANO, "description": options.get("description"), "usages": usages, "groups": groups,
    }  # fmt: skip
    created = yield from ask(process, "token.create", request)
    key = options.get("certificate-key")
    if _is_on(options, "print-join-command"):
        end = f"--control-plane --certificate-key {key}" if key else ""
        yield write_text(
            f"kubeadm join {created['server']} --token {created['token']} --discovery-token-ca-cert-hash {created['hash']} {end}\n"
        )
    elif key:
        raise KubeadmError("cannot use --certificate-key without --print-join-command")
    else:
        yield write_text(f"{created['token']}\n")


def _words(options: ProgramOptions, name: str) -> Sequence[str]:
    """Return the words of all values of a flag, which commas separate."""
    return [word for value in options.all(name) for word in _split(name, value)]


def _split(name: str, value: str) -> Sequence[str]:
    try:
        return next(csv.reader([value], strict=True), [])
    except csv.Error:
        problem = f'parse error on line 1, column {len(value) + 1}: extraneous or missing " in quoted-field'
        raise KubeadmError(f'invalid argument {gotext.quote(value)} for "--{name}" flag: {problem}') from None


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.removeprefix(r"\A").removesuffix(r"\z"), text) is not None


def _invalid(field: str, value: Sequence[str], problem: str) -> str:
    return f"bootstrapTokens.0.{field}: Invalid value: {gotext.marshal(value)}: {problem}"


def _problems_of_usages(usages: Sequence[str]) -> Iterator[str]:
    unknown = sorted({*usages} - {*_USAGES})
    if unknown:
        problem = f"invalid bootstrap token usage string: {','.join(unknown)}, valid usage options: {','.join(_USAGES)}"
        yield _invalid("usages", usages, problem)


def _problems_of_groups(usages: Sequence[str], groups: Sequence[str]) -> Iterator[str]:
    if "authentication" not in usages:
        problem = 'token groups cannot be specified unless --usages includes "authentication"'
        yield _invalid("groups", groups, problem)
    for group in groups:
        if not _matches(_GROUP, group):
            problem = f"bootstrap group {gotext.quote(group)} is invalid (must match {_GROUP})"
            yield _invalid("groups", groups, problem)


# --- delete and generate


def _delete(process: Process, options: ProgramOptions) -> Work:
    if not options.arguments:
        raise KubeadmError(f"missing argument; 'token delete' is missing token of form {_FORMS}")
    require_admin(process, options.get("kubeconfig"))
    for word in options.arguments:
        if not (_matches(_IDENTIFIER, word) or _matches(_TOKEN, word)):
            raise KubeadmError(f"given token didn't match pattern {_FORMS}")
        yield from ask(process, "token.delete", {"token": word})
        yield write_text(f'bootstrap token "{word.partition(".")[0]}" deleted\n')


def _generate(process: Process, options: ProgramOptions) -> Work:
    _refuse_arguments(options, "generate")
    token = yield from ask(process, "token.generate")
    yield write_text(f"{token}\n")


_COMMANDS: Final[Mapping[str, tuple[Callable[[Process, ProgramOptions], Work], Mapping[str, str]]]] = {
    "list": (_list, _OF_LIST),
    "create": (_create, _OF_CREATE),
    "delete": (_delete, {}),
    "generate": (_generate, {}),
}
