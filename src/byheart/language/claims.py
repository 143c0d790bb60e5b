"""Read what a sentence claims: about which subject, with which values.

No grammar is needed to compare two claims, only a separation of the words that say what the claim
is about from the words that say what is claimed: numbers with their units, times, versions, names
after a predicate that has one value, states and negations.
"""

# ruff: noqa: SIM905 - word lists are easier to read and to extend as running text

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache

from byheart.language.moments import (
    MONTHS,
    NAMED_HOURS,
    ORDINALS,
    PERIODS,
    WEEKDAYS,
    Clock,
    Day,
)
from byheart.language.quantities import NUMBER_WORDS, UNITS, Quantity, read_number, scale_of
from byheart.language.terms import tokens
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

_TOKEN = late_pattern(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}|v?\d+(?:\.\d+){1,3}(?![\d%])|[€$£]?\d[\d,]*(?:\.\d+)?[%€°]?"
    r"|[^\W\d_][\w'’+#-]*|[?%€$£°]"
)
_QUESTION = late_pattern(
    r"\?\s*$|^\s*(?:should|is|are|do|does|did|can|could|what|who|when|how)\b.*\?"
)
_ROLE = late_pattern(r"^\s*(?:user|assistant|system|human|ai)\s*:\s*", re.IGNORECASE)
# A sentence with one of these claims nothing: it asks, plans or supposes.
_SUPPOSING = late_pattern(
    r"\b(?:if|unless|maybe|perhaps|might|would|could|should|suppose|consider(?:ing)?|thinking about"
    r"|planning to|wonder(?:ing)?|whether|example|e\.g|e\.g\.|hypothetical(?:ly)?)\b",
    re.IGNORECASE,
)
_NEGATIONS = frozenset("not no never cannot nor neither without".split())
# Words that carry no subject: function words, and words that tell of a change.
_EMPTY = frozenset(
    """
    a an the this that these those i me my mine you your yours he him his she her hers it its we us
    our ours they them their theirs who which what and or but so as at by for from in into of off on
    onto over to up with is are was were be been being am do does did done has have had having will
    shall can may must there here still now currently already just only anymore longer again
    recently new newly since until till then instead rather about around approximately roughly
    exactly at least most per each every than also too very set change changed changes update
    updated moved move moves raised raise raises lowered lower reduced reduce increased increase
    switched switch became become becomes remains stay stays make made end beginning start of
    number amount value total
    """.split()
)
_IRREGULAR = {
    **dict.fromkeys(("kept", "keeps"), "keep"),
    **dict.fromkeys(("led",), "lead"),
    **dict.fromkeys(("ran", "runs", "running"), "run"),
    **dict.fromkeys(("took", "taken"), "take"),
    **dict.fromkeys(("began", "begun"), "begin"),
    **dict.fromkeys(("held",), "hold"),
    **dict.fromkeys(("left",), "leave"),
    **dict.fromkeys(("met",), "meet"),
    **dict.fromkeys(("paid",), "pay"),
    **dict.fromkeys(("sent",), "send"),
    **dict.fromkeys(("written", "wrote"), "write"),
    **dict.fromkeys(("built",), "build"),
    **dict.fromkeys(("ate", "eaten"), "eat"),
    **dict.fromkeys(("taught",), "teach"),
    **dict.fromkeys(("owns", "owned", "owner"), "own"),
}
# Each line is one property; the values of a line exclude one another.
_STATES = """
enabled/disabled|on/off|up/down|open/closed|required/optional|public/private|before/after
allowed,permitted/forbidden,prohibited,banned|likes,loves,enjoys/dislikes,hates|works,working/broken
active/inactive|synchronously,synchronous/asynchronously,asynchronous|accepted,approved/rejected,declined
paid/unpaid|locked/unlocked|true/false|present/absent|available/unavailable|supported/unsupported
safe/unsafe,dangerous|possible/impossible|finished,done,complete/unfinished,incomplete,pending
empty/full|online/offline|valid/invalid|visible/hidden|mandatory/voluntary|free/occupied,busy
vegetarian,vegan/carnivore|married/single,divorced|alive/dead|employed/unemployed|legal/illegal
succeeded,passed/failed|stable/unstable|won/lost|increased,rose,grew/decreased,fell,shrank
low/medium/high|easy/hard,difficult|draft/final/published|daily/weekly/monthly/yearly
red/green/blue/yellow/white/black/grey,gray/brown/orange/purple/pink|left/right|early/late
"""
STATES = {
    word: (number, pole)
    for number, group in enumerate(_STATES.replace("\n", "|").strip("|").split("|"))
    for pole, words in enumerate(group.split("/"))
    for word in words.split(",")
}
# Nouns whose number tells one thing from another: "ticket 431" and "ticket 432" are two things.
_COUNTING = frozenset(
    """
    chapter step ticket issue page floor week section part item task phase day lesson unit figure
    table question team line stage level sprint episode season module building gate platform
    exercise bug pr mr request row column group class grade round volume day lot terminal zone
    """.split()
)
# "Worker 1 reports", "Invoice 2024-17 was paid": a noun with its number at the beginning. Letters
# that are units ("30s", "5k") are no part of it.
_NUMBERED = late_pattern(
    r"^\W*(?:(?:the|our|my|your|his|her|their)\s+)?(?P<noun>[^\W\d_]+)\s+"
    r"(?P<number>(?:number\s+|nr\.?\s+)?#?(?P<value>v?\d+(?:[./-]\d+)*[a-fn-r]?|[a-z]+(?:-[a-z]+)?))"
    r"(?:['’]s)?[,:]?\s+\(?(?P<next>\w+)",
    re.IGNORECASE,
)
# After one of these words at the beginning, a number is an amount: "Keep 30 backups".
_BEFORE_AMOUNT = frozenset(
    """
    keep use retry try allow wait take run make add send buy order bring store show need needs
    require requires limit max maximum min minimum nearly almost under above below between within
    during
    """.split()
)
# Before one of these words, a number is a value: "Port 8080 for the API", "Lunch 12 pm".
_AFTER_VALUE = frozenset(
    "am pm times for on in at since until till from by with as per or of".split()
)
# Predicates with one value, before the name that is this value.
_ONE_VALUE = late_pattern(
    r"\b(?:(?:is|are|was|were|be|been|being|'s|remains?|became)\b(?:\s+(?:now|currently|still))*"
    r"(?:\s+(?:called|named)|(?:\s+\w+(?:ed|en|un|ld|nt|rn|pt|de|ut))?"
    r"(?:\s+(?:in|at|with|by|on|to|from|for|as))?)"
    r"|(?:lives?|lived|works?|worked|resides?|stays?|studies|studied|sits?|runs?|ran|goes|moved)"
    r"\s+(?:now\s+)?(?:in|at|for|on|to|with)"
    r"|(?:deploys?|builds?|builds|works?)\s+with|called|named)"
    r"\s+(?:(?:the|a|an|our|my|their|mr\.?|mrs\.?|ms\.?|dr\.?|prof\.?)\s+)*$",
    re.IGNORECASE,
)
# Words of letters alone that tell a time or a number.
_VALUE_WORDS = frozenset((*WEEKDAYS, *MONTHS, *ORDINALS, *NAMED_HOURS, *NUMBER_WORDS))
_TITLES = frozenset("mr mrs ms dr prof".split())
_ARTICLES = frozenset("the a an our my their".split())
_LEADING = frozenset("in at with by on to from for as called named".split())
_FROM_TO = late_pattern(r"\bfrom\s+(\w[\w.'-]*)\s+to\s+(\w[\w.'-]*)", re.IGNORECASE)
_LED_BY = late_pattern(
    r"\b(?:led|owned|managed|run|headed|maintained|taught|written|cleaned)\s+by\s+(\w+)"
)
_LEADS = late_pattern(
    r"^(?:the\s+)?([A-Z]\w+)\s+(?:leads|owns|manages|runs|heads|maintains|teaches|writes|cleans)\b"
)


@dataclass(slots=True)
class Claim:
    """Hold the subject of a sentence as stems, and its values by kind."""

    text: str
    subject: set[str] = field(default_factory=set)
    quantities: list[Quantity] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    clocks: list[Clock] = field(default_factory=list)
    days: list[Day] = field(default_factory=list)
    periods: set[str] = field(default_factory=set)
    # Names by the word that leads to them, and states by their group, with the word itself.
    names: dict[str, set[str]] = field(default_factory=dict)
    states: dict[int, tuple[int, str]] = field(default_factory=dict)
    negations: int = 0
    replaced: set[tuple[str, str]] = field(default_factory=set)


def read_claim(sentence: str) -> Claim | None:
    """Read a sentence; None if it asks, plans or supposes instead of claiming."""
    if _QUESTION.search(sentence) or _SUPPOSING.search(sentence):
        return None
    claim = Claim(sentence)
    _Reader(_ROLE.sub("", sentence), claim).read()
    return claim


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return the stem of a word, as keyword search has it."""
    folded = word.casefold().replace("’", "'").removesuffix("'s")
    found = tokens(_IRREGULAR.get(folded, folded))
    return found[0] if found else folded


class _Reader:
    """Walk over the words of a sentence, and put each into its place in the claim."""

    def __init__(self, sentence: str, claim: Claim) -> None:
        self._sentence = sentence
        self._claim = claim
        self._matches = list(_TOKEN.finditer(sentence))
        self._words = [match[0] for match in self._matches]
        self._at = 0

    def read(self) -> None:
        """Read all words."""
        self._read_changes()
        self._read_numbered_subject()
        while self._at < len(self._words):
            is_value = self._may_be_value(self._words[self._at])
            taken = (self._day() or self._clock() or self._number()) if is_value else 0
            self._at += taken or self._word()

    @staticmethod
    def _may_be_value(word: str) -> bool:
        """Return whether a word can be part of a time or a number; most words cannot."""
        folded = word.casefold()
        return not word.isalpha() or folded in _VALUE_WORDS or folded.removesuffix("s") in WEEKDAYS

    def _read_changes(self) -> None:
        for old, new in _FROM_TO.findall(self._sentence):
            self._claim.replaced.add((stem(old), stem(new)))
        led = _LED_BY.search(self._sentence) or _LEADS.search(self._sentence)
        if led and led[1][0].isupper():
            self._claim.names.setdefault("by", set()).add(stem(led[1]))

    def _read_numbered_subject(self) -> None:
        """Add the number of a noun at the beginning to the subject, and drop it from the words."""
        found = _NUMBERED.match(self._sentence)
        value = _subject_number(found) if found else None
        if found is None or value is None:
            return
        self._claim.subject.add(f"{stem(found['noun'])} {value}")
        begin, end = found.span("number")
        self._matches = [each for each in self._matches if not begin <= each.start() < end]
        self._words = [match[0] for match in self._matches]

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at].casefold() if 0 <= at < len(self._words) else ""

    # --- Times ------------------------------------------------------------------------------------

    def _day(self) -> int:
        day, taken = self._one_day(self._at)
        while taken:
            skipped = 1 if self._peek(taken) in ("of", "the", "on") else 0
            more, further = self._one_day(self._at + taken + skipped)
            joined = day.joined(more) if further else None
            if joined is None:
                break
            day, taken = joined, taken + skipped + further
        if not taken or day == Day(day=day.day):  # a bare ordinal is no date
            return 0
        self._claim.days.append(day)
        return taken

    def _one_day(self, at: int) -> tuple[Day, int]:
        word = self._words[at].casefold() if at < len(self._words) else ""
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
            year, month, number = map(int, word.split("-"))
            return Day(year, month, number), 1
        folded = word.removesuffix("s")
        if folded in WEEKDAYS:
            return Day(weekday=WEEKDAYS[folded]), 1
        if word in MONTHS and (word != "may" or self._words[at][0].isupper()):
            return Day(month=MONTHS[word]), 1
        if word in ORDINALS and self._is_month_near(at):
            return Day(day=ORDINALS[word]), 1
        if re.fullmatch(r"(?:19|20)\d\d", word):
            return Day(year=int(word)), 1
        if re.fullmatch(r"\d{1,2}", word) and 1 <= int(word) <= 31 and self._is_month_near(at):
            return Day(day=int(word)), 1
        return Day(), 0

    def _is_month_near(self, at: int) -> bool:
        around = [*self._words[max(0, at - 1) : at], *self._words[at + 1 : at + 3]]
        before, after = around[:1] if at else [], around[1 if at else 0 :]
        following = [word.casefold() for word in after if word.casefold() not in ("of", "the")]
        return (
            any(word.casefold() in MONTHS for word in before)
            or (following[:1] or [""])[0] in MONTHS
        )

    def _clock(self) -> int:
        word, after = self._peek(), self._peek(1)
        if word in NAMED_HOURS:
            self._claim.clocks.append(Clock(NAMED_HOURS[word], True))
            return 1
        half = after if after in ("am", "pm") else ""
        if match := re.fullmatch(r"(\d{1,2}):(\d{2})", word):
            hours, minutes = int(match[1]), int(match[2])
        elif half and word.isdigit():
            hours, minutes = int(word), 0
        elif self._peek(-1) == "at" and (hour := read_number(word)) and not self._is_unit(after):
            hours, minutes = int(hour), 0
        else:
            return 0
        exact = bool(half) or hours >= 13
        if half:
            hours = hours % 12 + (12 if half == "pm" else 0)
        self._claim.clocks.append(Clock(60 * hours + minutes, exact))
        return 2 if half else 1

    # --- Numbers ----------------------------------------------------------------------------------

    def _number(self) -> int:
        word = self._words[self._at]
        if re.fullmatch(r"v?\d+(?:\.\d+){1,3}", word) and not self._is_unit(self._peek(1)):
            return self._label(word.removeprefix("v"))
        sign = re.fullmatch(r"([€$£]?)(\d[\d,]*(?:\.\d+)?)([%€°]?)", word)
        number = read_number(sign[2].rstrip(",")) if sign else read_number(word)
        if number is None:
            return 0
        if sign and (sign[1] or sign[3]):
            self._add_quantity(number, sign[1] or sign[3])
            return 1
        taken = 1
        if scale := scale_of(self._peek(taken)):
            number, taken = number * scale, taken + 1
        if [self._peek(taken + ahead) for ahead in range(3)] == ["and", "a", "half"]:
            number, taken = number + 0.5, taken + 3
        unit = self._peek(taken)
        if self._is_unit(unit):
            self._add_quantity(number, _unit(unit))
            return taken + 1
        if word[0].isdigit() and self._labelled():
            return self._label(word)
        if unit and unit not in _EMPTY and unit.isalpha() and unit not in STATES:
            self._add_quantity(number, stem(unit))
            self._claim.subject.add(stem(unit))
            return taken + 1
        self._add_quantity(number, "")
        return taken

    def _is_unit(self, word: str) -> bool:
        return _unit(word) in UNITS

    def _add_quantity(self, number: float, unit: str) -> None:
        dimension, size = UNITS.get(unit, (unit, 1.0))
        self._claim.quantities.append(Quantity(number * size, dimension, unit))

    def _labelled(self) -> bool:
        """Return whether the word before a number is a noun or name that the number belongs to."""
        before = self._peek(-1)
        return bool(before) and before.isalpha() and before not in _EMPTY and before not in STATES

    def _label(self, value: str) -> int:
        before = stem(self._peek(-1)) if self._labelled() else ""
        if before in _STEMMED_COUNTING:
            self._claim.subject.add(f"{before} {value}")
        else:
            self._claim.labels[before] = value
        return 1

    # --- Words ------------------------------------------------------------------------------------

    def _word(self) -> int:
        word, folded = self._words[self._at], self._peek()
        if folded.endswith(("n't", "n’t")) or folded in _NEGATIONS:
            self._claim.negations += 1
            return 1
        if folded in PERIODS or folded.removesuffix("s") in PERIODS:
            ahead = self._peek(-1)
            told = folded if ahead in _EMPTY else f"{ahead} {folded}"
            self._claim.periods.add(told)
            return 1
        if folded in ("last", "next", "this") and self._peek(1) in ("year", "month", "week"):
            self._claim.periods.add(f"{folded} {self._peek(1)}")
            return 2
        if folded in STATES and not self._is_preposition(folded):
            group, pole = STATES[folded]
            self._claim.states[group] = pole, stem(word)
            return 1
        is_single = len(word) == 1 and word.isupper() and word != "I" and self._at > 0
        if (folded in _EMPTY or folded in _TITLES) and not is_single:
            return 1
        leading = self._leading_word() if self._is_name() else None
        if leading is not None:
            self._claim.names.setdefault(leading, set()).add(stem(word))
            return 1
        self._claim.subject.add(stem(word))
        return 1

    def _is_preposition(self, folded: str) -> bool:
        """Return whether `on`, `off`, `up` or `down` goes with a following noun."""
        if folded not in ("on", "off", "up", "down"):
            return False
        return self._peek(-1) not in ("is", "are", "was", "were", "be", "not", "still", "now")

    def _is_name(self) -> bool:
        word = self._words[self._at]
        return (self._at > 0 and word[0].isupper()) or self._peek(-1) in ("called", "named")

    def _leading_word(self) -> str | None:
        """Return the word that leads to a name which is the value of a predicate, if it is one."""
        last = stem(self._words[self._at - 1]) if self._at else ""
        for leading, names in self._claim.names.items():
            if last in names:
                return leading  # the second word of a name
        before = _ONE_VALUE.search(self._sentence[: self._matches[self._at].start()])
        if before is None:
            return None
        words = [word.strip(".").casefold() for word in before[0].split()]
        last = [word for word in words if word not in _ARTICLES and word not in _TITLES][-1]
        return last if last in _LEADING else ""


_STEMMED_COUNTING = frozenset(map(stem, _COUNTING))
# Words that no number belongs to as its name.
_NO_NOUNS = frozenset((*_EMPTY, *_NEGATIONS, *_BEFORE_AMOUNT, *STATES, *_VALUE_WORDS, *PERIODS))


def _subject_number(found: re.Match[str]) -> str | None:
    """Return the number that names the subject of a sentence; None if it is an amount or a date."""
    noun, value, following = (found[part].casefold() for part in ("noun", "value", "next"))
    is_unit = _unit(following) in UNITS or scale_of(following) is not None
    if noun in _NO_NOUNS or following in _AFTER_VALUE or following in MONTHS or is_unit:
        return None
    if value[0].isdigit() or value[-1].isdigit():
        return value.removeprefix("v")
    number = read_number(value)
    return None if number is None else f"{number:g}"


def _unit(word: str) -> str:
    return word if word in UNITS else word.removesuffix("s")
