"""Recognize turns that ask for nothing, such as "Thanks!" or "ok, go on"."""

from __future__ import annotations

from byheart.startup.late_patterns import late_pattern

_WORD = late_pattern(r"[^\W_]+")
_LONGEST_CHARS = 80
_SAY_NOTHING = frozenset(
    _WORD.findall("""
    thanks thank thx ty you very much so a lot many cheers ok okay k kk great good perfect
    nice cool fine right alright all well awesome excellent wonderful lovely amazing sounds
    looks that s is it works to for me now this yes yeah yep yup sure please no nope not
    really absolutely go ahead on continue proceed next done got understood do hi hello hey
    bye goodbye morning evening again lol haha why how what and then come hm hmm oh ah wow
    danke bitte gut ja nein merci gracias vale oui si sí
    """)
)


def says_nothing(text: str) -> bool:
    """Return whether a turn consists only of words that ask for nothing."""
    if len(text) > _LONGEST_CHARS:
        return False
    return all(word.casefold() in _SAY_NOTHING for word in _WORD.findall(text))
