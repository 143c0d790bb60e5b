"""Check BCP 47 language tags, and detect the language of a text.

The script decides where one language uses it, as with Greek or Thai. Letters that only one language
of a script has decide if several words have them. Otherwise frequent words decide: articles,
pronouns, prepositions. The answer is `und` (undetermined) for short texts, code, and texts in which
two languages fit about as well: no answer is better than a wrong one.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from byheart.errors import InvalidInput
from byheart.startup.late_patterns import late_pattern

UNDETERMINED = "und"
LONGEST_TAG = 35

# RFC 5646, section 2.1, without grandfathered tags and the reserved longer language subtags.
_TAG = late_pattern(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*"
    r"(?:-x(?:-[a-z0-9]{1,8})+)?|x(?:-[a-z0-9]{1,8})+)"
)


def check_language(name: str, value: object) -> str | None:
    """Accept a BCP 47 tag in any case, or none; give it in the usual case."""
    if value is None:
        return None
    tag = value.strip().lower() if isinstance(value, str) else ""
    if len(tag) > LONGEST_TAG or not _TAG.fullmatch(tag):
        shown = repr(value[:60]) if isinstance(value, str) else type(value).__name__
        raise InvalidInput(
            f"{name} is not a BCP 47 language tag: {shown}",
            f"give a tag such as de, pt-BR or zh-Hant, of at most {LONGEST_TAG} characters",
        )
    return _usual_case(tag)


def _usual_case(tag: str) -> str:
    """Write scripts as `Hant` and regions as `BR`, except behind a single letter as in `x-`."""
    parts, plain = tag.split("-"), True
    for at, part in enumerate(parts):
        plain &= len(part) > 1
        if at and plain and part.isalpha() and len(part) in (2, 4):
            parts[at] = part.upper() if len(part) == 2 else part.title()
    return "-".join(parts)


# --- Detection ------------------------------------------------------------------------------------

# A long text is judged by three parts of it, so that the cost is bounded.
_LONGEST, _PART = 2400, 800
# A text with a larger share of these signs is code or data.
_SIGNS = "{}()[]=;<>_\\/$&|#*+"
_MOST_SIGNS = 0.06
# The first letters behind the Latin ones. Vietnamese has Latin letters in the second range.
_NOT_LATIN = late_pattern("[\u0370-\u1cff\u1f00-\u1fff\u2e80-\uabff\uac00-\ud7af\uf900-\ufaff]")
# The script is looked for in so many characters; so many letters of it are needed. A character of
# Chinese says about as much as three letters.
_PROBED, _FEWEST_LETTERS, _HAN, _HAN_WEIGHT = 150, 6, ("Hani", "Kana"), 3
_SHORT, _PUNCTUATION = 400, late_pattern(r"[.,:;!?\"“”„«»()…–—،؟।*]+")
# So many different frequent words of a language are needed, and this share of all words.
_FEWEST_WORDS, _LEAST_SHARE = 3, 0.07

# The first code points of scripts, in order, and the language that a script belongs to. The other
# scripts are shared by languages, or rare.
_SCRIPTS: tuple[tuple[int, str], ...] = (
    *((0x0000, "Latn"), (0x0370, "el"), (0x0400, "Cyrl"), (0x0530, "hy"), (0x0590, "he")),
    *((0x0600, "Arab"), (0x0700, ""), (0x0750, "Arab"), (0x0780, ""), (0x08A0, "Arab")),
    *((0x0900, "Deva"), (0x0980, "bn"), (0x0A00, "pa"), (0x0A80, "gu"), (0x0B00, "or")),
    *((0x0B80, "ta"), (0x0C00, "te"), (0x0C80, "kn"), (0x0D00, "ml"), (0x0D80, "si")),
    *((0x0E00, "th"), (0x0E80, "lo"), (0x0F00, "bo"), (0x1000, "my"), (0x10A0, "ka")),
    *((0x1100, "ko"), (0x1200, ""), (0x1780, "km"), (0x1800, ""), (0x1E00, "Latn")),
    *((0x1F00, "el"), (0x2000, ""), (0x2E80, "Hani"), (0x3000, ""), (0x3005, "Hani")),
    *((0x3008, ""), (0x3040, "Kana"), (0x3100, ""), (0x3130, "ko"), (0x3190, "")),
    *((0x31F0, "Kana"), (0x3200, ""), (0x3400, "Hani"), (0xA000, ""), (0xAC00, "ko")),
    *((0xD7B0, ""), (0xF900, "Hani"), (0xFB00, "")),
)
_STARTS = [start for start, _ in _SCRIPTS]

# The scripts whose languages are told apart by their words.
_SHARED = ("Cyrl", "Arab", "Deva")
# Letters that only these languages of a script have, the surest first, and the least share of words
# with such a letter, which nearly all longer texts of these languages have. `und` stands for
# languages without a list of words; nothing stands for languages that only words tell apart.
_LETTERS: Mapping[str, tuple[tuple[str, frozenset[str], float], ...]] = {
    "Cyrl": (
        ("und", frozenset("әғқңөұүһҳҷӣӯ"), 0.03),
        ("be", frozenset("ў"), 0.02),
        ("sr", frozenset("ђћ"), 0.02),
        ("mk", frozenset("ѓќѕ"), 0.02),
        ("", frozenset("јљњџ"), 0.05),
        ("uk", frozenset("їєґ"), 0.03),
        ("", frozenset("і"), 0.04),
        ("ru", frozenset("ыэё"), 0.05),
    ),
    "he": (("yi", frozenset("װױײ"), 0.06),),
    "Arab": (
        ("und", frozenset("ښځڅېۍێۆڵڕڭۇۈۋ"), 0.03),
        ("ur", frozenset("ٹڈڑںے"), 0.1),
        ("fa", frozenset("پچژگی"), 0.15),
        ("ar", frozenset("ةىأإي"), 0.15),
    ),
}
# A quotation or a name must not decide: so many different words must have letters of a language,
# and so many times as many words as those with letters of the languages before it.
_FEWEST_LETTERED, _LEAST_TIMES = 2, 8

# Frequent words of each language. Some languages are here only to be told from their neighbours.
_WORDS: Mapping[str, str] = {
    "en": "the of and to in is that for was on with as it by are this be from or have not an which "
    "were you but they his her has their what when who how does did can will would should there "
    "been we if our your about into than them my i do at all these because until it's i'm i've "
    "don't",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch "
    "es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so "
    "zum war haben nur oder aber vor zur bis mehr durch man ich wir welche wer wurde mein kein "
    "unter",
    "fr": "le la les de des et en un une du que est pour qui dans a par plus pas au sur ne se ce "
    "il sont avec son ou elle nous vous je mais être cette aux ont leur quel quelle été comme tout "
    "était ses sa mon ils fait c'est d'un d'une qu'il n'est j'ai quand où",
    "es": "el la los las de que y en un una por con no para es al lo se del como más pero sus le "
    "ya o fue este ha sí porque esta entre cuando muy sin sobre también me hasta hay donde quien "
    "desde todo nos durante qué cuál cuándo dónde quién son está su era ser tiene",
    "it": "il la le di che e un una in per non del con si da dei sono della come più anche nel "
    "alla ma gli lo al ha è questo questa delle o su nella degli dal essere era ho io mi cosa "
    "quando chi dalla loro suo sua stato perché c'è molto ci se quale quali",
    "pt": "o a os as de que e em um uma para com não por mais dos das como mas foi ao ele ela da "
    "do se na no nas nos seu sua ou quando muito já está também só pelo pela até isso são ser tem "
    "foram você eu qual quem onde entre depois sem mesmo aos seus",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om ook als bij door maar "
    "naar hij ze uit wordt heeft werd nog over deze tot dan kan was meer worden wat wie hoe welke "
    "ik je wij hun geen waar hebben of die zich wel jij mijn moet toen",
    "af": "die van en het in is nie dat vir met op te hy aan sy wat was ook om word as deur hulle "
    "ek ons jy baie maar kan sal moet haar nog hierdie een uit oor daar so na hoe waar",
    "sv": "och i att en det som på är av för med den till inte om ett har de från var så men kan "
    "vid jag sig eller när efter ut under mot också han hon vi bara skulle vad hur detta mycket "
    "där alla år blev vara sina mellan vilken vilka dess",
    "da": "og i at en det som på er af for med den til ikke om et har de fra var så men kan ved "
    "jeg sig eller når efter ud under mod også han hun vi kun skulle hvad hvordan dette meget der "
    "alle år blev være sine mellem hvilken hvilke blevet nogle mig",
    "nb": "og i at en det som på er av for med den til ikke om et har de fra var så men kan ved "
    "jeg seg eller når etter ut under mot også han hun vi bare skulle hva hvordan dette mye der "
    "alle år ble være sine mellom hvilken hvilke blitt noen meg",
    "nn": "og i at ein det som på er av for med den til ikkje om eit har dei frå var så men kan "
    "ved eg seg eller når etter ut under mot også han ho vi berre skulle kva korleis dette mykje "
    "der alle år vart vere sine mellom noko meg",
    "is": "og að í á er sem við um til en var það með af fyrir ekki hann ég þú hún þeir eru frá "
    "þar þetta hafa hefur eða eins verið úr yfir svo þegar hvað",
    "fi": "ja on ei että se oli hän mutta kun ovat myös tai joka jonka niin kuin vain sekä sen ole "
    "mitä mikä kuka missä miten voi olivat jossa hänen tämä tämän minä sinä me he ne jos nyt "
    "kanssa jälkeen mukaan vuonna sitä eivät ollut olla siitä kuinka monta",
    "et": "ja on ei et see oli ta aga kui ka või mis kes ning oma nii siis välja selle seda mida "
    "nad ma sa me te ole olid olnud pärast aastal kuid veel juba",
    "pl": "i w na z do nie się jest to że o jak po co ale za od przez dla jego są być był było "
    "która który które jako może tylko tym jej oraz przy ze tego też czy już kiedy gdzie kto ile "
    "jaki jakie jaka ich ma mnie ja pod lub bardzo została został",
    "cs": "a v na se je z do že s o k ve i pro za by to jako jeho ale po od jsou byl bylo byla "
    "které který která při až není také když co kde kdo jak jaké jaký jsem než nebo u aby tak jen "
    "více ze tento kolik své být má už pouze mezi kdy ještě",
    "sk": "a v na sa je z do že s o k vo i pre za by to ako jeho ale po od sú bol bolo bola ktoré "
    "ktorý ktorá pri až nie tiež keď čo kde kto aké aký som než alebo u aby tak len viac zo tento "
    "koľko svoje byť má už medzi kedy ešte",
    "hr": "i je u na se da za su s od kao ne o što koji koja koje bio bila bilo ali do iz ili sa "
    "po to nije kako te biti već samo može prema kada gdje tko godine jer sam zbog nakon između "
    "još",
    "sl": "in je v na se da za so s od kot ne o ki bil bila bilo ali do iz pa po to ni kako tudi "
    "biti že samo lahko proti kdaj kje kdo leta ker sem zaradi med še pri kaj ga",
    "lt": "ir yra į kad iš su ne apie bet kaip jis ji tai buvo per už ar dėl po nuo savo metų "
    "kuris kuri taip tik prie jau iki",
    "lv": "un ir no ar par uz ka kā bet tas tika viņš viņa gada kas vai pēc arī nav lai bija pie "
    "kur savu līdz tikai to",
    "tr": "ve bir bu da de için ile ne o çok gibi daha olarak en kadar olan ama değil var sonra ki "
    "mi her ben sen biz veya göre tarafından oldu olduğu ya şey hangi nasıl kim kaç nedir nerede "
    "ise hem ancak bunu onun büyük ilk iki yılında arasında üzerinde içinde kendi vardır olduğunu",
    "vi": "và của là có được trong cho các một không những với người này đã để khi từ đến cũng như "
    "ra về nhiều đó vào trên năm ở bị theo tại hay sẽ phải nào gì bao nhiêu thì mà lại hơn rất "
    "hoặc ai đâu sau trước ông tôi anh bởi nó",
    "id": "yang dan di untuk dengan dari pada ini tidak dalam itu adalah akan ke juga oleh sebagai "
    "karena telah bisa atau dapat saya mereka kami anda lebih ada sudah bahwa tersebut para "
    "seperti saat apa siapa bagaimana kapan berapa mana antara setelah menjadi ia kita tetapi "
    "hanya",
    "hu": "a az és hogy nem is egy ez volt de van meg csak el már ki mint még be azt ha vagy sem "
    "le fel mert kell minden lehet aki amely ami majd így ezt ezek hány mikor hol milyen között "
    "után által volna lett szerint én ő voltak ahol amikor több",
    "ro": "și de în la a o cu pe nu un din care este mai că se pentru au al ale ca sunt fost lui "
    "fi dar prin sau ce am ei lor după această acest cel cea când unde cum cine avea era foarte "
    "doar între până către ului decât iar dintre într să îi ți",
    "ca": "el la els les de que i en un una per amb no és al del com més però seu són va ser "
    "aquest aquesta entre quan molt sense també fins hi on des tot què qui havia dels pel",
    "gl": "o a os as de que e en un unha para con non por máis dos das como pero foi ao el ela da "
    "do se na no súa ou cando moi xa está tamén só pola ata isto son ser ten foron onde",
    "sw": "ya na wa kwa ni za katika la cha kuwa hii huo yake watu hiyo au pia kama baada mimi "
    "yeye sana lakini",
    "tl": "ang ng sa na mga ay at ni para si ito hindi ako ko siya may kung niya isang nang din "
    "mula pero lang",
    "la": "et in est non ad cum ut sed qui quod ex per esse sunt de si quae aut hoc eius ab enim "
    "atque autem etiam quam",
    "ru": "и в не на я что он с как это по но они к у из за то все она так его от о же для мы бы "
    "был была были быть или если только при уже где кто когда какой сколько который которые также "
    "есть чтобы до нет",
    "bg": "и на в да за се от не с е че по са като но до това или при към който която които ще "
    "беше след така си му има той тя те също както колко какво кога къде кой само със във може бил "
    "между една един ги",
    "uk": "і в на не що з до як це за та й у від але для про він вона вони є був була було були "
    "або так його її також який яка які коли де хто скільки тільки при після під бути ще",
    "be": "і ў на не што з да як гэта за у ад але для пра ён яна яны быў была было были або так "
    "яго таксама які якая якія калі дзе хто толькі пры пасля",
    "mk": "и на во да за се од не со е дека по како но до тоа или при кој која кои ќе беше исто",
    "sr": "и у је на да се за су од не са као о што који која које био била али до из или по то",
    "hi": "के में की है का और से को पर ने एक हैं यह था कि इस लिए भी जो थे नहीं तो थी कर हो या "
    "द्वारा साथ वह अपने क्या किस कितने किया गया कौन कब कहाँ हुआ बाद सकता होता",
    "mr": "आहे आणि या च्या मध्ये होते होता ही हा व नाही आहेत केले काय ते की तो एक असे करण्यात त्या",
    "ne": "छ र को मा हो ले गर्न पनि यो थियो भएको हुन् गरेको एक छन् गर्ने लागि तथा भने",
    "ar": "في من على إلى أن عن التي الذي هذا هذه مع ما كان لا هو هي كانت بين بعد ذلك كل قد أو لم "
    "كما ثم متى أين كيف",
    "fa": "در به از که و را این با است برای آن یک بود شد خود تا کرد می بر هم نیز اند ها بین چه کجا",
    "ur": "کے میں کی ہے کا اور سے کو پر نے ایک ہیں یہ تھا کہ اس بھی جو تھے نہیں تھی کر ہو یا وہ",
}


@cache  # made when the first text is saved: a search does not wait for it
def _languages_by_word() -> Mapping[str, frozenset[str]]:
    languages: dict[str, set[str]] = {}
    for language, words in _WORDS.items():
        for word in words.split():
            languages.setdefault(word, set()).add(language)
    return {word: frozenset(names) for word, names in languages.items()}


def detect_language(text: str) -> str:
    """Give the language of a text as a BCP 47 tag, `und` if that is unclear."""
    sample = _sample(text)
    if sum(map(sample.count, _SIGNS)) > _MOST_SIGNS * len(sample):
        return UNDETERMINED
    sample = sample.lower()
    if not sample.isascii():
        if not unicodedata.is_normalized("NFC", sample):
            sample = unicodedata.normalize("NFC", sample)
        probe = sample[:: 1 + len(sample) // _PROBED]
        others = _NOT_LATIN.findall(probe)
        if others:
            script, scripts = _main_script(others)
            weight = len(others) * (_HAN_WEIGHT if script in _HAN else 1)
            latin = sum(map(str.isalpha, probe)) - sum(map(str.isalpha, others))
            if weight > latin:
                return _of_script(script, scripts, sample)
            if weight > 0.1 * latin:
                return UNDETERMINED  # the text mixes scripts
    return _of_words(sample)


def _sample(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    middle = (len(text) - _PART) // 2
    return " ".join((text[:_PART], text[middle : middle + _PART], text[-_PART:]))


def _script_of(letter: str) -> str:
    return _SCRIPTS[bisect_right(_STARTS, ord(letter)) - 1][1]


def _main_script(letters: Iterable[str]) -> tuple[str, Counter[str]]:
    """Name the script of most letters, and count the letters of each."""
    scripts = Counter(map(_script_of, letters))
    return scripts.most_common(1)[0][0], scripts


def _of_script(script: str, scripts: Counter[str], sample: str) -> str:
    """Name the language of a text that is written in a script other than Latin."""
    used = sum(scripts[each] for each in _HAN) if script in _HAN else scripts[script]
    if used < max(_FEWEST_LETTERS, 0.9 * scripts.total()):
        return UNDETERMINED
    if script in _HAN:
        kana = scripts["Kana"] / used
        return "ja" if kana > 0.15 else "zh" if kana < 0.02 else UNDETERMINED
    language = _of_letters(script, sample)
    if language is None and script not in _SHARED:
        return script or UNDETERMINED
    return language or _of_words(sample)


def _of_letters(script: str, sample: str) -> str | None:
    """Name the language whose own letters many words have; `""` if that is in doubt.

    `None` means that a text has hardly any such letters.
    """
    if script not in _LETTERS:
        return None
    words = Counter(filter(_NOT_LATIN.search, _PUNCTUATION.sub(" ", sample).split()))
    others = 0
    for language, letters, least in _LETTERS[script]:
        own = [word for word in words if not letters.isdisjoint(word)]
        count = sum(map(words.__getitem__, own))
        if count and count >= least * words.total():
            is_sure = len(own) >= _FEWEST_LETTERED and count >= _LEAST_TIMES * others
            return language if is_sure else ""
        others += count
    return None


def _of_words(sample: str) -> str:
    """Name the language whose frequent words a text has, if no other fits nearly as well."""
    # In a longer text, enough frequent words do not touch punctuation.
    if len(sample) < _SHORT:
        sample = _PUNCTUATION.sub(" ", sample)
    counts = Counter(sample.split())
    languages_of = _languages_by_word()
    known = counts.keys() & languages_of.keys()
    # Words that are frequent in the same languages count together.
    found: dict[frozenset[str], int] = {}
    for word in known:
        languages = languages_of[word]
        found[languages] = found.get(languages, 0) + counts[word]
    hits: dict[str, int] = {}
    for languages, count in found.items():
        for language in languages:
            hits[language] = hits.get(language, 0) + count
    best, *others = sorted(hits, key=hits.__getitem__, reverse=True)[:4] or [UNDETERMINED]
    different = sum(best in languages_of[word] for word in known)
    if different < _FEWEST_WORDS or hits[best] < _LEAST_SHARE * counts.total():
        return UNDETERMINED
    for other in others:
        own = sum(count for names, count in found.items() if best in names and other not in names)
        against = hits[other] - hits[best] + own
        if own < max(2, 3 * against):
            return UNDETERMINED
    return best
