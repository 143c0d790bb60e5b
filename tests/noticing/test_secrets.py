"""Secrets: what looks like one goes, what only looks a little like one stays, in linear time.

The samples are made up, and put together from pieces so that no scanner takes them for real.
"""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.noticing.secrets import redact

_RANDOM = random.Random(7)


def made_up(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(length))


HEX = "0123456789abcdef"
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
    *("bearer ", "authorization: ", "a", " ", "a:", f"-----BEGIN PRIVATE{' KEY-----'}", "deadbeef"),
]


def test_the_end_of_a_hostile_megabyte_is_reached() -> None:
    """Anything quadratic in one of these would take hours, and this test with it."""
    last = SECRETS[0][2]
    for piece in (*HOSTILE, "".join(HOSTILE)):
        size = 1_000_000 if len(piece) > 50 else 150_000
        text = piece * (size // len(piece)) + "\n. " + last
        assert redact(text).text.endswith(". [redacted: aws]"), piece
