import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.extraction import extract_entities
from byheart.extraction.entities import SCANNED_CHARS

FOUND = {
    # the seed's own examples
    "User prefers TypeScript over JavaScript for type safety": "User|TypeScript|JavaScript",
    "The API rate limit is 100 requests per minute": "API",
    "Alice reports to Bob in Engineering": "Alice|Bob|Engineering",
    # proper names
    "Yesterday Alice Johnson met the Bank of England": "Alice Johnson|Bank of England",
    "Ask Ludwig van Beethoven, O'Brien and Jean-Luc": "Ludwig van Beethoven|O'Brien|Jean-Luc",
    "Alice's Redis is down": "Alice|Redis",
    "Los Angeles is big. La casa es de Juan.": "Los Angeles|Juan",
    "Élodie aime Paris": "Élodie|Paris",
    "Привет от Иван Петров": "Привет|Иван Петров",
    # what opens a sentence is no name by that alone
    "When it rains, stay. Please wait. However, go. Running helps.": "",
    "## Overview\n\n- Use Docker\n- Remember: ask": "Docker",
    "Don't panic. It's fine. We're done. I think so.": "",
    # quoted names
    'the "dark mode" and “Visual Studio Code”': "dark mode|Visual Studio Code",
    "the 'night shift' of the users' guild": "night shift",
    "读《红楼梦》和「東京」": "红楼梦|東京",
    'he said "I will do it. Later, maybe."': "",
    'a 5" pipe and a 3" pipe, "ab"': "",
    # identifiers
    "call getUserName in user_service, then my-service": "getUserName|user_service|my-service",
    "use all-MiniLM-L6-v2 and MAX_SIZE": "all-MiniLM-L6-v2|MAX_SIZE",
    "a well-known, up-to-date, read-only thing": "",
    "a long-term, state-of-the-art, high-quality, docker-based, non-trivial, pre-trained one": "",
    "use bge-small, pre-commit and a cross-encoder": "bge-small|pre-commit|cross-encoder",
    "the self-hosted-runner, the time-series-db": "self-hosted-runner|time-series-db",
    "_emphasis_ and __bold__": "",
    # acronyms
    "the HTTP and REST APIs": "HTTP|REST API",
    # mentions and tags
    "ping @alice about #roadmap, not bob@example.com or #1": "alice|roadmap",
    # names with versions
    "on Python 3.11, GPT-4, Byheart v2 and Windows 11": "Python 3.11|GPT-4|Byheart v2|Windows 11",
    "the old ones were in numpy v1.2 and then all ran on redis 7.2.1": "numpy v1.2|redis 7.2.1",
    "we went with most of them to the Bank of England again": "Bank of England",
    "numpy 2.0, redis 7.2 and node v20": "numpy 2.0|redis 7.2|node v20",
    "iOS 17.4, kubernetes v1.29, K8s 1.29": "iOS 17.4|kubernetes v1.29|K8s 1.29",
    "a mean 2.5, section 3.1, up 4.2, averaged 3.5 and 0.05 of redis 10%": "",
    "it took 3.5 seconds, weighs 2.5 kg, cost 3.99, vom 12.03.2024": "",
    "foobar 1.18.8 and widget v3.2": "foobar 1.18.8|widget v3.2",
    "use C++ or C# or Node.js": "C++|C#|Node.js",
    "on Monday 10:30 with Revenue 15% in March 2024": "Monday|Revenue|March",
    # noise
    "see https://Example.com/Foo_Bar and <Div class='X'>": "",
    "```py\nclass Garbage: pass\n```\nthen Redis": "Redis",
    "使用Python开发": "Python",
}


@pytest.mark.parametrize(("content", "names"), FOUND.items())
def test_names_are_found_by_how_they_are_written(content: str, names: str) -> None:
    assert "|".join(extract_entities(content)) == names


def test_a_name_is_listed_once_whatever_its_case() -> None:
    assert extract_entities("with Redis, REDIS and @redis") == ("Redis",)


def test_the_longest_form_of_a_name_wins() -> None:
    assert extract_entities('watch Matrix, "The Matrix" again') == ("The Matrix",)


def test_an_article_is_no_part_of_a_name() -> None:
    assert extract_entities("The Beatles, and the Beatles") == ("Beatles",)


def test_names_come_in_order_of_first_appearance() -> None:
    assert extract_entities('meet Zoe, "a plan", Bob') == ("Zoe", "a plan", "Bob")


def test_at_most_64_names_are_kept_and_the_first_ones() -> None:
    found = extract_entities(", ".join(f"Name{number}" for number in range(100)))
    assert found == tuple(f"Name{number}" for number in range(64))


def test_a_run_of_capitalised_words_is_cut_into_names_of_bounded_length() -> None:
    assert all(len(name) <= 64 for name in extract_entities("Capitalised " * 50))


@given(st.text(alphabet=st.sampled_from("Aa -_'\"@#.1v\n中É`<"), max_size=200) | st.text())
def test_any_text_gives_bounded_distinct_names(content: str) -> None:
    found = extract_entities(content)
    assert len(found) <= 64
    assert len({name.casefold() for name in found}) == len(found)
    assert all(1 < len(name) <= 64 for name in found)


@pytest.mark.parametrize(
    "unit",
    [
        "A",
        "Aa ",
        '"',
        "'a ",
        "@",
        "_",
        "a-",
        "A.",
        "1.",
        "<a ",
        "`",
        "\n",
        "aB cD_e ",
        "http://",
        "“a",
    ],
)
def test_of_a_megabyte_of_anything_the_beginning_is_read(unit: str) -> None:
    content = unit * (1_000_000 // len(unit))
    assert extract_entities(content) == extract_entities(content[:SCANNED_CHARS])
