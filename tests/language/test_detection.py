"""Language tags are checked and put in their usual case; the language of a text is detected."""

from __future__ import annotations

import time
import unicodedata

import pytest

from byheart.errors import InvalidInput
from byheart.language.detection import (
    _WORDS,
    _languages_by_word,
    check_language,
    detect_language,
)


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        (None, None),
        ("de", "de"),
        (" DE ", "de"),
        ("PT-br", "pt-BR"),
        ("zh-hant", "zh-Hant"),
        ("ZH-HANT-TW", "zh-Hant-TW"),
        ("zh-cmn-hans-cn", "zh-cmn-Hans-CN"),
        ("es-419", "es-419"),
        ("sl-rozaj-biske-1994", "sl-rozaj-biske-1994"),
        ("de-1996", "de-1996"),
        ("en-u-ca-gregory", "en-u-ca-gregory"),
        ("de-ch-x-PHONEBK", "de-CH-x-phonebk"),
        ("x-whatever", "x-whatever"),
        ("und", "und"),
    ],
)
def test_a_tag_is_put_in_its_usual_case(given: str | None, tag: str | None) -> None:
    assert check_language("language", given) == tag


@pytest.mark.parametrize(
    "given",
    [
        *("", "d", "english", "German", "de_DE", "de-", "-de", "de--AT", "de-a", "de-x", "de at"),
        *("de-AT-CH", "dé", "日本", 5, True, ["de"], "de-abcdefghi", "en-" + "x" * 60),
        "en-x-" + "-".join(["abcdefgh"] * 4),
    ],
)
def test_anything_else_is_refused_with_a_hint(given: object) -> None:
    with pytest.raises(InvalidInput, match="language is not a BCP 47 language tag") as refusal:
        check_language("language", given)
    assert "pt-BR" in refusal.value.hint
    assert len(refusal.value.message) < 150


SENTENCES = {
    "en": "We decided to ship the release on Friday, because the tests were green and nobody had "
    "found a reason to wait.",
    "de": "Wir haben beschlossen, die neue Version am Freitag auszuliefern, weil alle Tests grün "
    "waren und niemand einen Grund zum Warten hatte.",
    "fr": "Nous avons décidé de livrer la nouvelle version vendredi, parce que les tests étaient "
    "verts et que personne n'avait une raison d'attendre.",
    "es": "Decidimos publicar la nueva versión el viernes porque las pruebas ya estaban bien y no "
    "había ninguna razón para esperar más tiempo.",
    "it": "Abbiamo deciso di pubblicare la nuova versione venerdì, perché i test erano verdi e non "
    "c'era nessun motivo per aspettare, anche se il gruppo è piccolo.",
    "pt": "Decidimos publicar a nova versão na sexta-feira, porque os testes já passavam e não "
    "havia uma razão para esperar mais tempo do que isso.",
    "nl": "We hebben besloten om de nieuwe versie op vrijdag uit te brengen, omdat het team er "
    "klaar voor was en niemand een reden zag om te wachten.",
    "sv": "Vi bestämde oss för att släppa den nya versionen på fredag, eftersom det inte fanns "
    "någon anledning att vänta och alla tester var gröna.",
    "da": "Vi besluttede at udgive den nye version på fredag efter mødet, og det blev sagt af "
    "alle, at der ikke var nogen grund til at vente på mig eller nogle andre.",
    "nb": "Vi bestemte oss for å gi ut den nye versjonen på fredag etter møtet, og det ble sagt av "
    "alle at det ikke var noen grunn til å vente på meg.",
    "fi": "Päätimme julkaista uuden version perjantaina, koska testit menivät läpi ja se oli "
    "valmis, mutta hän ei ole vielä nähnyt sitä, kun he ovat lomalla.",
    "pl": "Postanowiliśmy wydać nową wersję w piątek, ponieważ testy przeszły i nie było powodu, "
    "żeby czekać, ale to jest tylko pierwsza część tego, co się dzieje.",
    "cs": "Rozhodli jsme se vydat novou verzi v pátek, protože testy prošly a nebyl žádný důvod "
    "čekat, ale je to také první část toho, co jsme chtěli, když není čas.",
    "tr": "Yeni sürümü cuma günü yayınlamaya karar verdik, çünkü testler geçti ve beklemek için "
    "bir neden yoktu, ama bu daha çok ilk adım gibi.",
    "vi": "Chúng tôi quyết định phát hành phiên bản mới vào thứ sáu vì các bài kiểm tra đã được "
    "thông qua và không có lý do gì để chờ.",
    "id": "Kami memutuskan untuk merilis versi baru pada hari Jumat karena semua pengujian telah "
    "berhasil dan tidak ada alasan untuk menunggu.",
    "hu": "Úgy döntöttünk, hogy pénteken kiadjuk az új verziót, mert a tesztek sikeresek voltak, "
    "és nem volt ok arra, hogy még várjunk, ha már minden kész van.",
    "ro": "Am decis să lansăm noua versiune vineri, pentru că testele au trecut și nu era niciun "
    "motiv să mai așteptăm, dar este doar o parte din ce a fost spus.",
    "ru": "Мы решили выпустить новую версию в пятницу, потому что все тесты прошли.",
    "uk": "Ми вирішили випустити нову версію в п'ятницю, бо всі тести пройшли, і її вже чекають.",
    "bg": "Решихме да пуснем новата версия в петък, защото тестовете минаха и не беше нужно да се "
    "чака, а това е само една от частите, които са готови.",
    "ar": "قررنا إصدار النسخة الجديدة يوم الجمعة لأن جميع الاختبارات نجحت.",
    "fa": "تصمیم گرفتیم نسخه جدید را روز جمعه منتشر کنیم چون همه آزمایش‌ها موفق بود.",
    "ur": "ہم نے جمعہ کو نیا ورژن جاری کرنے کا فیصلہ کیا کیونکہ تمام ٹیسٹ کامیاب رہے۔",
    "hi": "हमने शुक्रवार को नया संस्करण जारी करने का फैसला किया क्योंकि सभी परीक्षण सफल रहे और यह तैयार है।",
    "he": "החלטנו לשחרר את הגרסה החדשה ביום שישי כי כל הבדיקות עברו.",
    "el": "Αποφασίσαμε να κυκλοφορήσουμε τη νέα έκδοση την Παρασκευή.",
    "th": "เราตัดสินใจปล่อยเวอร์ชันใหม่ในวันศุกร์",
    "ko": "우리는 금요일에 새 버전을 출시하기로 결정했습니다.",
    "ja": "すべてのテストが成功したので、金曜日に新しいバージョンを公開することにしました。",
    "zh": "因为所有测试都通过了，我们决定在星期五发布新版本。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_enough(language: str) -> None:
    sentence = SENTENCES[language]
    assert detect_language(sentence) == language
    assert detect_language(unicodedata.normalize("NFD", sentence)) == language
    assert detect_language(sentence * 200) == language


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "ok", "Byheart 1.2", "12:30 2026-11-17", "🧠🧠🧠", "東京", "α = β"),
        "Anna, Bob, Kestrel, PostgreSQL",
        "for (const x of xs) { if (x.is_a && !x.was_b) { return the[x]; } }",
        '{"the": 1, "of": 2, "and": [3, 4], "to": {"in": 5, "is": 6}}',
        # Two languages at once.
        f"{SENTENCES['en']} {SENTENCES['de']}",
        f"{SENTENCES['ru']} {SENTENCES['el']}",
        # The same words in Danish and Norwegian.
        "Det er ikke en god dag for oss, men vi har det fint og alle er med",
        # Mongolian and Kurdish are not told apart from their neighbours.
        "Бид баасан гаригт шинэ хувилбар гаргахаар шийдсэн бөгөөд бүх тест амжилттай",
    ],
)
def test_in_doubt_the_language_is_undetermined(text: str) -> None:
    assert detect_language(text) == "und"


def test_names_in_another_script_change_nothing() -> None:
    assert detect_language(f"{SENTENCES['zh']} (PostgreSQL)") == "zh"
    assert detect_language(f"{SENTENCES['en']} 東京") == "en"


RUSSIAN = (
    "Мы решили выпустить новую версию в пятницу, потому что все тесты прошли.\n\n"
    "Документы лежат в архиве, и каждый участник может их прочитать, если он этого хочет. Мы "
    "ждём ответа от заказчика, но пока его нет.\n\n"
    "Это была длинная неделя: сначала мы искали ошибку в базе данных, а потом писали отчёт."
)
ARABIC = (
    "قررنا إصدار النسخة الجديدة يوم الجمعة لأن جميع الاختبارات نجحت. كتب التقرير {} الذي يعمل في "
    "المدينة القديمة منذ سنوات، وقد أرسله إلى جميع الزملاء في الشركة بعد الاجتماع الأخير."
)
BULGARIAN = (
    "Решихме да пуснем новата версия в петък, защото тестовете минаха и не беше нужно да се чака. "
    "В писмото имаше една дума, {}, която никой от нас не разбра, и затова попитахме една колежка, "
    "а тя ни каза, че това е просто цитат от стара книга."
)
UKRAINIAN = (
    "Ми вирішили випустити нову версію в п'ятницю, бо всі тести пройшли, і її вже чекають. Звіт "
    "написав наш колега {}, який є автором цієї ідеї, а його відділ перевірив усі приклади. Коли "
    "він повернеться з відпустки, ми обговоримо її ще раз."
)
HEBREW = (
    "החלטנו לשחרר את הגרסה החדשה ביום שישי כי כל הבדיקות עברו. סבתא שלי הייתה אומרת {} בכל פעם "
    "שמשהו הצליח, ואנחנו צחקנו יחד איתה."
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (RUSSIAN.replace("в базе данных", "в базе «Їжак»"), "ru"),
        (ARABIC.format("پیمان"), "ar"),
        (BULGARIAN.format("«рыба»"), "bg"),
        (UKRAINIAN.format("Быкаў"), "uk"),
        (HEBREW.format("אַזױ"), "he"),
    ],
    ids=["Russian", "Arabic", "Bulgarian", "Ukrainian", "Hebrew"],
)
def test_a_word_with_a_letter_of_another_language_does_not_decide(text: str, language: str) -> None:
    assert detect_language(text) == language
    # The same word again, with other punctuation, is still one word.
    assert detect_language(f"{text} {text}") == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Мы вырашылі выпусціць новую версію ў пятніцу, таму што ўсе тэсты прайшлі.", "be"),
        (
            "Одлучили смо да нову верзију објавимо у петак, већ су сви тестови прошли, а ђаци "
            "ће је добити касније.",
            "sr",
        ),
        (
            "Решивме новата верзија да ја објавиме во петок, ќе ја добијат сите, бидејќи "
            "тестовите поминаа.",
            "mk",
        ),
        ("מיר האָבן באַשלאָסן אַרױסצוגעבן די נײַע װערסיע פֿרײַטיק, װײַל אַלע טעסטן זײַנען געראָטן.", "yi"),
    ],
    ids=["Belarusian", "Serbian", "Macedonian", "Yiddish"],
)
def test_letters_in_several_words_decide(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["Софийска улица и рыба", "Анна едет в Київ", "שלום אַזױ"])
def test_one_word_of_a_short_text_decides_nothing(text: str) -> None:
    assert detect_language(text) == "und"


def test_words_are_written_as_texts_are_compared() -> None:
    for word in _languages_by_word():
        assert word == unicodedata.normalize("NFC", word.lower()), word
    assert all(len(set(words.split())) == len(words.split()) for words in _WORDS.values())


def test_the_cost_of_a_long_text_is_bounded() -> None:
    text = SENTENCES["de"] * 20_000
    started = time.process_time()
    for _ in range(20):
        detect_language(text)
    assert (time.process_time() - started) / 20 < 0.05
