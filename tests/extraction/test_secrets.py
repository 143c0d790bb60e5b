"""Secrets: what looks like one goes, what only looks a little like one stays, in linear time.

The samples are made up, and put together from pieces so that no scanner takes them for real.
"""

from __future__ import annotations

import base64
import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.extraction import secret_blocks, secret_judges, secrets
from byheart.extraction.secret_blocks import FINDERS
from byheart.extraction.secret_judges import JUDGES
from byheart.extraction.secret_rules import Rule, fill_in, load_rules
from byheart.extraction.secrets import Redacted, redact
from tests.growth import grows_in_line

_RANDOM = random.Random(7)
# In an example, ⟦ ⟧ stand around the secret.
_MARKED = re.compile("⟦[^⟧]*⟧")


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_a_rule_is_tried_on_every_text_with_one_of_its_keywords(rule: Rule) -> None:
    for keyword in rule.keywords:
        text = f"some words, {keyword}{'x' * 15} and more"
        assert load_rules().index(rule) in secrets._Forms(text).rule_numbers(), keyword


def without_marks(example: str) -> str:
    return example.replace("⟦", "").replace("⟧", "")


def made_up(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(length))


HEX, UPPER = "0123456789abcdef", string.ascii_uppercase + string.digits
KEY_BODY = "\n".join(made_up(64) for _ in range(8))
# kind, what stands before it, the secret itself, what stands after it
SECRETS = [
    ("aws", "key ", "AKIA" + made_up(16, string.ascii_uppercase + string.digits), " used"),
    ("github", "", "gh" + "p_" + made_up(36), ""),
    ("github", "push with ", "github" + "_pat_" + made_up(60), "."),
    ("gitlab", "", "gl" + "pat-" + made_up(20), ""),
    ("slack", "bot=", "xox" + "b-" + made_up(12, string.digits) + "-" + made_up(24), ""),
    ("slack", "https://", "hooks.slack" + ".com/services/T0/B0/" + made_up(24), ""),
    ("stripe", "", "sk_" + "live_" + made_up(24), ""),
    ("google", "key=", "AI" + "za" + made_up(35), "&q=x"),
    ("anthropic", "", "sk-" + "ant-api03-" + made_up(80), ""),
    ("openai", "", "sk-" + "proj-" + made_up(48), ""),
    ("openai", "", "sk-" + made_up(48), ""),
    ("hugging face", "", "h" + "f_" + made_up(34), ""),
    ("npm", "//registry/:_authToken=", "np" + "m_" + made_up(36), ""),
    ("byheart", "", "b" + "h_" + made_up(43), ""),
    ("jwt", "cookie ", f"eyJ{made_up(30)}.eyJ{made_up(60)}.{made_up(43)}", ""),
    ("authorization", "Authorization: Bearer ", made_up(32), ""),
    ("authorization", "-H 'authorization: Basic ", made_up(20) + "==", "'"),
    ("password", "postgres://app:", "s3cr" + "et!", "@db.internal/app"),
    ("password", "DB_PASSWORD=", "correct" + "horse", "\nDB_HOST=db"),
    ("password", "password = '", "hunter" + "2", "'"),
    ("password", "the password is ", "hunter" + "2", ""),
    ("password", '{\\"passwd\\": \\"', "tr0ub" + "4dor", '\\"}'),
    ("password", "curl -u bob:", "pa55" + "word", " https://example.org"),
    ("key", "API_KEY=", made_up(32, HEX), ""),
    ("key", '"client_secret": "', made_up(40), '"'),
    ("key", "aws_secret_access_key = ", made_up(20) + "/" + made_up(19), ""),
    (
        "private key",
        "before\n",
        f"-----BEGIN RSA PRIVATE{' KEY-----'}\n{KEY_BODY}\n-----END RSA PRIVATE{' KEY-----'}",
        "\nafter",
    ),
    ("private key", "cut: ", f"-----BEGIN PRIVATE{' KEY-----'}\n{KEY_BODY}", ""),
    (
        "private key",
        "     1\u2192",
        f"-----BEGIN PRIVATE{' KEY-----'}\n"
        + "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(KEY_BODY.splitlines(), 2))
        + "\n",
        "and so on",
    ),
    (
        "private key",
        "",
        f"-----BEGIN RSA PRIVATE{' KEY-----'}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,A\n\n"
        f"{KEY_BODY}\n",
        "no end of it",
    ),
    ("password", 'password = "', "correct horse" + " battery staple", '"'),
    ("password", '"password": "', "ab,cdefgh" + "1x", '", "user": "bob"'),
    ("password", "password='", "it\\'s" + "4ever", "'"),
    ("password", 'os.environ["DB_PASSWORD"] = "', "hunter" + "2hunter2", '"'),
    ("key", "cfg['api_key']='", made_up(20), "'"),
    ("password", "PASSWORD_ADMIN=", "Tr0ub" + "4dor", ""),
    ("password", "DB_PASSWORD_MAIN=", "Hunter2" + "Hunter2", ""),
    ("password", "JENKINS_PASS=", "zzz" + "12345", ""),
    ("password", "  password: ", "correct" + "-horse", "\n  user: bob"),
    ("password", "<password>", "correct" + "-horse", "</password>"),
    ("password", "mysql --password ", "Hunter2" + "x99", " shop"),
    ("password", "mysql -u root -p", "Hunter2" + "x99", " shop"),
    ("password", "sshpass -p ", "Hunter2" + "x99", " ssh host"),
    ("password", "machine x.org login bob password ", "Hunter2" + "x99", ""),
    ("password", "postgres://app:", "847319" + "92", "@db/x"),
    ("password", "postgres://app:", "p@ss1" + "word", "@db/x"),
    ("key", "SECRET_TOKEN_AWS=", made_up(20), ""),
    ("key", "curl --token ", made_up(20), " https://example.org"),
    ("key", "X-Api-Key: ", "GqWmZtRbx7" + "KdPnLsHv2Y", ""),
    ("key", "AccountName=a;AccountKey=", made_up(86) + "==", ";EndpointSuffix=x"),
    ("key", "https://x.org/?access_token=", "abc123" + "def456ghi", "&x=1"),
    ("key", "A=1\0SECRET_KEY=", made_up(16), "\0B=2"),
    ("authorization", "Authorization: ApiKey ", made_up(20), ""),
    ("authorization", "Authorization: Basic ", "dXNlcj" + "pwYXNz", ""),
    ("cookie", "Cookie: ", f"sessionid={made_up(12)}; csrf={made_up(12)}", "\nHost: x"),
    ("signature", "https://x.org/c?sv=2020&sig=", made_up(40), "&se=2"),
    ("docker", "", "dckr" + "_pat_" + made_up(27), ""),
    ("shopify", "", "shp" + "at_" + made_up(32, HEX), ""),
    ("vault", "VAULT ", "hv" + "s." + made_up(90), ""),
    ("groq", "", "gs" + "k_" + made_up(52), ""),
    ("tailscale", "", "ts" + "key-auth-" + made_up(30), ""),
    ("1password", "", "ops" + "_eyJ" + made_up(260) + "==", ""),
    ("airtable", "", "pat" + made_up(14) + "." + made_up(64, HEX), ""),
    ("atlassian", "", "ATA" + "TT3" + made_up(186), ""),
    ("azure", "client ", made_up(3) + "8Q" + "~" + made_up(34), ""),
    ("buildkite", "", "bkua" + "_" + made_up(40, HEX), ""),
    ("cloudflare", "", "v1" + ".0-" + made_up(24, HEX) + "-" + made_up(146, HEX), ""),
    ("databricks", "", "da" + "pi" + made_up(32, HEX), ""),
    ("digitalocean", "", "do" + "p_v1_" + made_up(64, HEX), ""),
    ("discord", "bot ", "MTIzNDU2Nzg5MDEyMzQ1Njc4.G" + "abcde." + made_up(38), ""),
    (
        "discord",
        "https://",
        "discord" + ".com/api/webhooks/" + made_up(18, string.digits) + "/" + made_up(68),
        " is it",
    ),
    ("doppler", "", "dp" + ".st.prd." + made_up(40), ""),
    ("dynatrace", "", "dt0" + f"c01.{made_up(24, UPPER)}.{made_up(64, UPPER)}", ""),
    ("elevenlabs", "", "sk" + "_" + made_up(48, HEX), ""),
    ("figma", "", "fig" + "d_" + made_up(40), ""),
    ("google", "refresh ", "1/" + "/0" + made_up(50), ""),
    ("google", "", "GOC" + "SPX-" + made_up(28), ""),
    ("grafana", "", "gl" + f"sa_{made_up(32)}_{made_up(8, HEX)}", ""),
    ("heroku", "", "HRKU" + "-AA" + made_up(58), ""),
    ("hubspot", "", "pat-" + "na1-550e8400-e29b-41d4-a716-446655440000", ""),
    ("langsmith", "", "lsv2" + f"_pt_{made_up(32, HEX)}_{made_up(10, HEX)}", ""),
    ("linear", "", "lin" + "_api_" + made_up(40), ""),
    ("mailchimp", "", made_up(32, HEX) + "-us" + "14", ""),
    ("mailgun", "", "key" + "-" + made_up(32, HEX), ""),
    ("mailgun", "of Mailgun: ", f"{made_up(32, HEX)}-{made_up(8, HEX)}-{made_up(8, HEX)}", ""),
    ("mapbox", "", "sk" + f".eyJ{made_up(60)}.{made_up(22)}", ""),
    ("netlify", "", "nf" + "p_" + made_up(36), ""),
    ("new relic", "", "NR" + "AK-" + made_up(27, UPPER), ""),
    ("notion", "", "nt" + "n_" + made_up(46), ""),
    ("nvidia", "", "nv" + "api-" + made_up(64), ""),
    ("openshift", "--with ", "sha" + "256~" + made_up(43), ""),
    ("pinecone", "", "pc" + "sk_" + made_up(60), ""),
    ("planetscale", "", "pscale" + "_tkn_" + made_up(43), ""),
    ("postman", "", "PM" + f"AK-{made_up(24, HEX)}-{made_up(34, HEX)}", ""),
    ("pulumi", "", "pu" + "l-" + made_up(40, HEX), ""),
    ("pypi", "", "py" + "pi-" + made_up(150), ""),
    ("resend", "", "re" + f"_{made_up(8)}_{made_up(24)}", ""),
    ("rubygems", "", "ruby" + "gems_" + made_up(48, HEX), ""),
    ("sendgrid", "", "SG" + f".{made_up(22)}.{made_up(43)}", ""),
    ("sendinblue", "", "xkey" + f"sib-{made_up(64, HEX)}-{made_up(16)}", ""),
    ("sentry", "", "sntry" + "u_" + made_up(64, HEX), ""),
    ("slack", "https://", "hooks.slack" + ".com/workflows/T0/A0/1/" + made_up(24), ""),
    ("sonarqube", "", "sq" + "u_" + made_up(40, HEX), ""),
    ("stripe", "", "wh" + "sec_" + made_up(32), ""),
    ("supabase", "", "sb" + "p_" + made_up(40, HEX), ""),
    (
        "teams",
        "https://x.",
        "webhook" + f".office.com/webhookb2/{made_up(32, HEX)}@{made_up(32, HEX)}/Hook/1",
        "",
    ),
    ("telegram", "", made_up(9, string.digits[1:]) + ":A" + "A" + made_up(33), ""),
    ("terraform", "", made_up(14) + ".atlas" + "v1." + made_up(67), ""),
    ("twilio", "", "S" + "K" + made_up(32, HEX), ""),
    ("twilio", 'Client("AC' + made_up(32, HEX) + '", "', made_up(32, HEX), '")'),
    ("twilio", "curl -u AC" + made_up(32, HEX) + ":", made_up(32, HEX), " https://x.org"),
    ("key", "TWILIO_AUTH_TOKEN=", made_up(32, HEX), ""),
    ("key", "HEROKU_API_KEY=", "550e8400-e29b-41d4-a716-" + "446655440000", ""),
    ("vercel", "", "vc" + "p_" + made_up(40), ""),
    ("xai", "", "xa" + "i-" + made_up(80), ""),
    ("password", "  password: |\n    ", "correct horse" + " 7", "\n  user: bob"),
    ("password", "- db_password: >-\n    ", "one" + "-line\n    an" + "other", "\n- next: 1"),
    ("key", "stringData:\n  api_key: |2-  # of CI\n      ", made_up(30), "\n  x: y"),
    ("password", '"password":\n      "', "hunter" + "2", '",\n'),
    ("key", '"token": "', made_up(40) + "\n  " + made_up(40), '"'),
    (
        "private key",
        '{"private_key": "',
        f"-----BEGIN PRIVATE{' KEY-----'}\\n{made_up(64)}\\n-----END PRIVATE{' KEY-----'}",
        '\\n", "id": 1}',
    ),
]
HARMLESS = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "max_tokens=2000 and token_count: 12345",
    "def login(user: str, password: str) -> None:",
    "connect(password=password, token=token)",
    "password=settings.database.password",
    "token = get_token()",
    "private_key: Ed25519PrivateKey | None = None",
    "https://user:pass@host:port/path",
    "secret_key = os.environ['SECRET_KEY']",
    "the password is required, and the token is refreshed",
    "DB_PASSWORD=${DB_PASSWORD}",
    "API_KEY=YOUR_API_KEY_GOES_HERE",
    "password: ********",
    "Enter password:\nroot@host:~# 12345678",
    'placeholder for the "password": "Enter your new password here"',
    "token_format=Ab12Cd34Ef56Gh78 and refreshTokenName: Ab12Cd34Ef56Gh78",
    "use --token option or --max-tokens 4096",
    "the command takes --password $DB_PASS",
    "private_key: x509.RSAPrivateKeyWithSerialization",
    "the Authorization: Bearer authentication scheme",
    "a cookie: sweet and small",
    "docker run -u 1000:1000 image",
    "PWD=/home/someone/project-2",
    "https://example.org:8080/path?x=1",
    "git@example.org:team/project.git",
    "class sk-folding-cube-container-element",
    "a_very_long_identifier_with_many_words_v2_in_it",
    "The quick brown fox jumps over the lazy dog.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZV=="',
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "the image is registry.example.org/app@sha256:" + "ab12" * 16,
    "  password: |\n    Say your password here, and what it is for.\n  user: bob",
    "  token: |\n    how a text is cut into tokens\n    and counted",
    "  password: |\n  user: bob",
    "on:\n  workflow_call:\n    secrets: |\n      DEPLOY\n      RELEASE",
    "| password | meaning |\n|---|---|\n| token: | a word |",
    'tokens:\n    "a word is one, and a comma too"',
    "account AC0123456789abcdef0123456789abcdef has no token",
    "MyModuleForTheExampleCode.render.all_the_pages_of_the_handbook",
    "patience, patterns, sk_learn, re_match, pre_commit_hooks and fc-cache",
    "key-value stores, key-1 and the key-board of v1.0-beta",
    "glance, global, glc_x, glsa_y; SKU SK-100 and SKELETON",
    "vcs_root, vca_x, sbp_1, nfp_2, ntn_3, napi_4 and phx_5",
    "discord.com/api/webhooks is where webhooks live",
    "https://hooks.slack.com/services is their address",
]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), SECRETS)
def test_a_secret_is_replaced_by_its_kind_and_nothing_around_it_is(
    kind: str, before: str, secret: str, after: str
) -> None:
    redacted = redact(before + secret + after)
    assert redacted.text == f"{before}[redacted: {kind}]{after}"
    assert (redacted.count, dict(redacted.found)) == (1, {kind: 1})


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text).text == text
    assert redact(text).count == 0


def test_every_secret_of_a_text_is_counted_by_kind() -> None:
    text = "\n".join(before + secret + after for _, before, secret, after in SECRETS)
    redacted = redact(text)
    assert redacted.count == len(SECRETS)
    for _, _, secret, _ in SECRETS:
        assert secret not in redacted.text


@settings(max_examples=150)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([before + secret + after for _, before, secret, after in SECRETS]),
            st.sampled_from(HARMLESS),
            st.text(max_size=30),
        ),
        max_size=6,
    )
)
def test_what_was_redacted_once_is_not_redacted_again(parts: list[str]) -> None:
    once = redact("\n".join(parts))
    assert redact(once.text).text == once.text


@pytest.mark.parametrize("seed", range(3))
def test_a_picture_in_base64_is_no_secret(seed: int) -> None:
    data = base64.b64encode(random.Random(seed).randbytes(150_000)).decode()
    for text in (f"data:image/png;base64,{data}", "\n".join(wrap(data[:60_000], 76))):
        assert redact(text).count == 0


def test_hashes_and_ids_are_no_secrets() -> None:
    chance = random.Random(1)
    lines = [
        f"{chance.randbytes(20).hex()} {UUID(bytes=chance.randbytes(16))} "
        f"{chance.randbytes(32).hex()} {chance.randbytes(16).hex()}"
        for _ in range(500)
    ]
    assert redact("\n".join(lines)).count == 0


def test_the_code_of_this_project_holds_no_secrets() -> None:
    source = sorted(Path(byheart.__file__).parent.rglob("*.py"))
    found = {
        path.name: redacted.found
        for path in source
        if (redacted := redact(path.read_text(encoding="utf-8"))).count
    }
    assert found == {}


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_every_rule_finds_its_examples_and_nothing_around_them(rule: Rule) -> None:
    assert rule.examples
    for example in map(fill_in, rule.examples):
        redacted = redact(without_marks(example))
        assert redacted.text == _MARKED.sub(f"[redacted: {rule.kind}]", example)
        assert dict(redacted.found) == {rule.kind: 1}


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_no_rule_finds_anything_in_the_counter_examples_of_any(rule: Rule) -> None:
    assert rule.counter_examples
    for text in map(fill_in, rule.counter_examples):
        assert redact(text) == Redacted(text, {})


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_a_rule_is_needed_for_at_least_one_of_its_examples(rule: Rule) -> None:
    """Without this, an example could pass because of another rule, and the pattern be broken."""
    texts = [without_marks(fill_in(example)) for example in rule.examples]
    forms = [secrets._Forms(text) for text in texts]
    assert any(
        (keywords := form.keywords_of(rule)) and list(secrets._find(rule, form, keywords))
        for form in forms
    )


def test_every_rule_names_what_exists() -> None:
    rules = load_rules()
    assert len({rule.name for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.keywords, rule.name
        assert (rule.regex is None) == (rule.finder is not None), rule.name
        assert rule.judge is None or rule.judge in JUDGES, rule.name
        assert rule.finder is None or rule.finder in FINDERS, rule.name
        if rule.ignore_case:
            assert all(each == each.lower() for each in rule.keywords), rule.name
        if rule.regex is not None:
            assert set(rule.groups) <= set(rule.pattern.groupindex), rule.name
    assert set(JUDGES) == {rule.judge for rule in rules if rule.judge}


TOKENS = [rule for rule in load_rules() if rule.in_runs and rule.judge is None]


@settings(max_examples=300)
@given(st.data())
def test_all_that_a_token_pattern_matches_has_a_keyword_where_it_is_looked_for(
    data: st.DataObject,
) -> None:
    rule = data.draw(st.sampled_from(TOKENS))
    assert rule.regex is not None
    secret = data.draw(st.from_regex(re.compile(rule.regex, re.ASCII), fullmatch=True))
    runs = "\n".join(secrets._RUN.findall(f"a {secret} b"))
    if rule.pattern.search(secret) is not None:
        assert any(keyword in runs for keyword in rule.keywords)
        assert not rule.anchored or secret.startswith(rule.keywords)


def _repeats(parsed: Any, inside: bool = False) -> Iterator[str]:
    """Name what repeats without a bound inside of what repeats, unless it never goes back."""
    for kind, held in parsed:
        name = str(kind)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, body = held
            if inside and most > 1000:
                yield f"{name} of {body}"
            yield from _repeats(body, inside or most > 1000)
        elif name in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP"):
            continue
        elif name == "SUBPATTERN":
            yield from _repeats(held[-1], inside)
        elif name == "BRANCH":
            for branch in held[1]:
                yield from _repeats(branch, inside)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _repeats(held[1], inside)


def test_nothing_that_repeats_without_a_bound_repeats_inside_another() -> None:
    modules = (secrets, secret_judges, secret_blocks)
    patterns = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, re.Pattern)
    ]
    patterns += [rule.pattern for rule in load_rules() if rule.regex is not None]
    patterns.append(secret_blocks._block_pattern())
    assert len(patterns) > 120
    parser = sys.modules["re._parser"]
    for pattern in patterns:
        found = list(_repeats(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)))
        assert not found, (pattern.pattern, found)


HOSTILE = [
    *(
        "eyJ",
        "eyJaaaaaaaa.",
        "password",
        "password=",
        "password is ",
        "a://a:",
        "AKIA",
        "sk-",
        "-u a:",
    ),
    *('password="', "password='\\", "--token ", "mysql ", "cookie: a=", "?sig=", "1:A\n"),
    *("password: |\n", "password: |\n ", " - a", "password:\n ", "password='abcd\n", "|\n"),
    *("AC" + "0" * 32, "N" * 24 + ".", "sk.eyJ", "1//0", "Q~", ".atlasv1.", "key-", "A3-", "-us"),
    *("bearer ", "authorization: ", "a", " ", "a:", f"-----BEGIN PRIVATE{' KEY-----'}", "deadbeef"),
]


def test_the_end_of_a_long_hostile_text_is_reached() -> None:
    """Anything quadratic in one of these would take very long, and this test with it."""
    last = SECRETS[0][2]
    for piece in (*HOSTILE, "".join(HOSTILE)):
        size = 500_000 if len(piece) > 50 else 60_000
        text = piece * (size // len(piece)) + "\n. " + last
        assert redact(text).text.endswith(". [redacted: aws]"), piece


def hostile_texts(rule: Rule) -> Iterator[str]:
    """Make what a pattern begins with, or almost is, again and again."""
    yield rule.keywords[0]
    yield f"{rule.keywords[-1]}: "
    text = without_marks(fill_in(rule.examples[0]))
    yield text[: len(text) * 2 // 3]
    yield f"{text}\n"


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_the_time_of_a_rule_grows_in_line_with_a_hostile_text(rule: Rule) -> None:
    """At 100 kB, a quadratic pattern takes 64 times as long as at an eighth of it."""

    def prepare(piece: str, times: int) -> Callable[[], object]:
        form = secrets._Forms(piece * (times * 12_500 // len(piece) + 1))
        keywords = form.keywords_of(rule) or list(rule.keywords)
        return lambda: list(secrets._find(rule, form, keywords))

    for piece in dict.fromkeys(hostile_texts(rule)):
        assert grows_in_line(partial(prepare, piece)), piece


def test_a_secret_of_several_lines_can_leave_its_line_breaks_behind() -> None:
    key = f"-----BEGIN PRIVATE{' KEY-----'}\n{KEY_BODY}\n-----END PRIVATE{' KEY-----'}"
    block = "password: |\n  correct horse" + " 7\n  more\nuser: bob\n"
    text = f"first\n{key}\nlast\n{block}end"
    redacted = redact(text, keep_lines=True)
    lines = redacted.text.split("\n")
    assert redacted.count == 2
    assert len(lines) == len(text.split("\n"))
    for line in ("first", "last", "user: bob", "end"):
        assert lines.index(line) == text.split("\n").index(line)


def test_a_letter_that_grows_in_lower_case_moves_nothing() -> None:
    text = "İ" * 50 + " DB_PASSWORD=correcthorse " + "İ"
    assert redact(text).text == "İ" * 50 + " DB_PASSWORD=[redacted: password] " + "İ"
