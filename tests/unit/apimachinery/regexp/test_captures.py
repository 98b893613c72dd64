import pytest

from mockube.apimachinery.regexp import captures
from mockube.apimachinery.regexp.captures import capturing_pattern
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.perl import PerlPatternError, perl_pattern


def test_match_has_its_groups():
    found = capturing_pattern("(é)(?P<rest>x)?(?P<last>[a-z]+)").search("aébc")
    assert found == (("ébc", "é", "", "bc"), {"rest": "", "last": "bc"})


def test_match_is_at_the_beginning_or_of_all():
    pattern = capturing_pattern("a|ab")
    assert pattern.match("ba") is None
    assert pattern.match("ab").texts == ("a",)
    assert pattern.fullmatch("ab").texts == ("ab",)
    assert capturing_pattern("A", ignores_case=True).fullmatch("a") is not None


def test_search_that_takes_too_long_finds_nothing():
    pattern = capturing_pattern("(?:a{0,100}){10}b")
    length = captures.MAX_STEPS // pattern.cost
    assert pattern.search("b" * (length + 1)) is None
    assert pattern.search("ab") is not None


def test_pattern_of_a_large_program_is_refused():
    with pytest.raises(RegexpError, match="expression too large"):
        capturing_pattern(r"\pL{100}")
    with pytest.raises(RegexpError, match="expression too large: `aaa"):
        capturing_pattern("aaa" + "a{0}" * (captures.MAX_LENGTH // 4))


def test_name_of_two_groups_is_that_of_the_first():
    found = capturing_pattern(r"(?P<n>a)\pL(?<n>b)").search("axb")
    assert found == (("axb", "a", "b"), {"n": "a"})


def test_other_bytes_are_kept():
    assert capturing_pattern("a").search("\udcffa").texts == ("a",)
    assert capturing_pattern("a").search("\ud800a") is not None


@pytest.mark.parametrize(
    ("pattern", "message", "offset"),
    [
        ("(a", "missing closing parenthesis", 2),
        ("abc)", "unmatched closing parenthesis", 3),
        ("a[b", "missing terminating ] for character class", 3),
        ("a[b-a]", "range out of order in character class", 4),
        ("a[[:foo:]]", "unknown POSIX class name", 2),
        ("a\\", "\\ at end of pattern", 2),
        ("a(+)", "quantifier does not follow a repeatable item", 2),
        ("a{70000}", "number too big in {} quantifier", 8),
        ("a{3,2}", "numbers out of order in {} quantifier", 6),
        ("\\pL{100}", "regular expression is too large", 8),
    ],
)
def test_mistake_gets_the_words_of_pcre(pattern, message, offset):
    with pytest.raises(PerlPatternError) as error:
        perl_pattern(pattern)
    assert (str(error.value), error.value.offset) == (message, offset)


@pytest.mark.parametrize(
    "pattern", ["(?=a)", r"(a)\1", "a++", "(?>a)", "(*UTF)a", r"\p{Xan}", "a{2000}", r"\K", "(?#a)b"]
)
def test_syntax_of_pcre_alone_is_no_mistake(pattern):
    assert perl_pattern(pattern) is None
