"""The regular expressions of nginx' configuration. Pure."""

from mockube.apimachinery.regexp.perl import PerlPatternError
from mockube.extras.servers.patterns import ConfiguredPattern, compile_text

from .parser import Directive


def compile_pattern(directive: Directive, text: str, *, ignores_case: bool = False) -> ConfiguredPattern:
    """Compile a pattern of a directive; raise `ConfigurationError` for one that nginx does not accept either."""
    try:
        return compile_text(text, ignores_case=ignores_case)
    except PerlPatternError as error:
        place = f' at "{text[error.offset :]}"' if error.offset < len(text) else ""
        raise directive.error(f'pcre2_compile() failed: {error} in "{text}"{place}') from error
