"""The regular expressions of nginx' configuration. Pure."""

from mockube.container_runtime.simulated.configured.patterns import ConfiguredPattern, compile_text

from .parser import Directive


def compile_pattern(directive: Directive, text: str, *, ignores_case: bool = False) -> ConfiguredPattern:
    """Compile a pattern of a directive; raise `ConfigurationError` for one that nginx does not accept either."""
    try:
        return compile_text(text, ignores_case=ignores_case)
    except ValueError as error:
        raise directive.error(f'pcre2_compile() failed: missing closing parenthesis in "{text}"') from error
