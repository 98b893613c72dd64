r"""Names of Unicode classes in patterns: `\p{Greek}`, `\pL`, `\p{Letter}`.

The names are those of Go's package unicode (Unicode 15.0); others are refused. Go ignores case, spaces, underscores and
hyphens in a name, and does not find scripts whose own name has an underscore.
"""

from collections.abc import Mapping
from typing import Final


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CATEGORIES: Final = words(
    """
    C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
    """
)
_SCRIPTS: Final = words(
    """
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille
    Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati
    Gurmukhi Han Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi
    Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam
    Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa
    Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada
    Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut
    Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi
    """
)
_ALIASES: Final[Mapping[str, str]] = dict(
    entry.split("=")
    for entry in words(
        """
    Casedletter=LC Closepunctuation=Pe Cntrl=Cc Combiningmark=M Connectorpunctuation=Pc Control=Cc
    Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Digit=Nd Enclosingmark=Me Finalpunctuation=Pf
    Format=Cf Initialpunctuation=Pi Letter=L Letternumber=Nl Lineseparator=Zl Lowercaseletter=Ll Mark=M
    Mathsymbol=Sm Modifierletter=Lm Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C
    Otherletter=Lo Othernumber=No Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co
    Punct=P Punctuation=P Separator=Z Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S
    Titlecaseletter=Lt Unassigned=Cn Uppercaseletter=Lu
    """
    )
)
_IGNORED: Final = str.maketrans("", "", "_- ")

ASCII, ASSIGNED, UNASSIGNED, CASED = "Ascii", "Assigned", "Cn", "LC"


def class_name(text: str) -> str | None:
    """Return the canonical name of a class, or None if the name is unknown."""
    stripped = text.translate(_IGNORED)
    if not stripped.isascii():
        return None
    name = stripped[:1].upper() + stripped[1:].lower()
    if name == "Lc":
        return CASED
    if name in _CATEGORIES or name in _SCRIPTS or name in ("Any", ASCII, ASSIGNED, UNASSIGNED):
        return name
    return _ALIASES.get(name)
