"""Find keys, tokens and passwords in a text, by well-known patterns, and take them out.

Whoever saves a text by hand means all of it; what is captured without being asked must not keep
what nobody would have written down. A hash of a commit, a UUID or a picture is no secret.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from typing import NamedTuple


class _Token(NamedTuple):
    """What a kind of token looks like, and letters of which some are in every one of it."""

    marks: tuple[str, ...]
    pattern: str


def _prefixed(pattern: str, *marks: str) -> _Token:
    return _Token(marks, pattern)


_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Tokens that say themselves what they are. A pattern can only begin where no word goes on, and what
# may be long in it is one run of characters: a text is looked at once, whatever it holds.
_TOKENS: Mapping[str, _Token] = {
    "1password": _prefixed(
        r"ops_eyJ[A-Za-z0-9+/]{100,4000}={0,3}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,5}[A-Z0-9]{5}",
        *("ops_eyJ", "A3-"),
    ),
    "age": _prefixed(r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "AGE-SECRET"),
    "airtable": _prefixed(r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", "pat"),
    "alibaba": _prefixed(r"LTAI[A-Za-z0-9]{16,24}(?![A-Za-z0-9+/=])", "LTAI"),
    "anthropic": _prefixed(r"sk-ant-[A-Za-z0-9_-]{20,250}", "sk-ant-"),
    "artifactory": _prefixed(
        r"AKCp[A-Za-z0-9]{60,80}(?![A-Za-z0-9+/=])|cmVmdGtuO[A-Za-z0-9]{50,70}", "AKCp", "cmVmdGtuO"
    ),
    "atlassian": _prefixed(
        r"AT[AC]TT3[A-Za-z0-9_=-]{100,300}|ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9+/=])",
        *("ATATT3", "ATCTT3", "ATBB"),
    ),
    "aws": _prefixed(
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])|ABSK[A-Za-z0-9+/]{109,269}={0,2}",
        *("AKIA", "ASIA", "ABIA", "ACCA", "ABSK"),
    ),
    "azure": _prefixed(
        r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])"
        r"|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])",
        *("Q~", "AZDO"),
    ),
    "buildkite": _prefixed(r"bkua_[a-f0-9]{40}", "bkua_"),
    "byheart": _prefixed(r"bh_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "bh_"),
    "cerebras": _prefixed(r"csk-[a-z0-9]{40,60}(?![A-Za-z0-9_-])", "csk-"),
    "circleci": _prefixed(r"CCIP(?:AT|RJ)_[A-Za-z0-9]{10,40}_[a-f0-9]{40}", "CCIPAT_", "CCIPRJ_"),
    "cloudflare": _prefixed(r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}", "v1.0-"),
    "contentful": _prefixed(r"CFPAT-[A-Za-z0-9_-]{43}", "CFPAT-"),
    "databricks": _prefixed(r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])", "dapi"),
    "digitalocean": _prefixed(r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    "discord": _prefixed(
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{17,20}/[A-Za-z0-9_-]{60,80}",
        *("discord.com/api", "discordapp.com/api"),
    ),
    "docker": _prefixed(r"dckr_[po]at_[A-Za-z0-9_-]{20,100}", "dckr_"),
    "doppler": _prefixed(r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,100}", "dp."),
    "dropbox": _prefixed(r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,1500}", "sl."),
    "dynatrace": _prefixed(r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    "elevenlabs": _prefixed(r"sk_[a-f0-9]{48}(?![A-Za-z0-9])", "sk_"),
    "figma": _prefixed(r"fig[dour]h?_[A-Za-z0-9_-]{36,60}", "fig"),
    "firecrawl": _prefixed(r"fc-[a-f0-9]{32}(?![A-Za-z0-9])", "fc-"),
    "fly": _prefixed(r"f[mo][12]_[A-Za-z0-9+/=_-]{40,2000}", "fm1_", "fm2_", "fo1_", "fo2_"),
    "github": _prefixed(
        r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    "gitlab": _prefixed(
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_.-]{20,300}",
        *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-"),
        "glsoat-",
    ),
    "google": _prefixed(
        r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{28}"
        r"|ya29\.[A-Za-z0-9_-]{20,1000}|1//0[A-Za-z0-9_-]{40,200}",
        *("AIza", "GOCSPX-", "ya29.", "1//0"),
    ),
    "grafana": _prefixed(
        r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3}", "glsa_", "glc_"
    ),
    "groq": _prefixed(r"gsk_[A-Za-z0-9]{40,100}", "gsk_"),
    "heroku": _prefixed(r"HRKU-[A-Za-z0-9_-]{36,70}", "HRKU-"),
    "hubspot": _prefixed(rf"pat-[a-z]{{2}}\d-{_UUID}", "pat-"),
    "hugging face": _prefixed(
        r"hf_[A-Za-z0-9]{30,100}|api_org_[A-Za-z]{34}(?![A-Za-z0-9])", "hf_", "api_org_"
    ),
    "jina": _prefixed(r"jina_[A-Za-z0-9_-]{50,80}", "jina_"),
    "langfuse": _prefixed(rf"sk-lf-{_UUID}", "sk-lf-"),
    "langsmith": _prefixed(r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_"),
    "linear": _prefixed(r"lin_(?:api|oauth)_[A-Za-z0-9]{32,100}", "lin_"),
    "mailchimp": _prefixed(r"[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9-])", "-us"),
    "mailgun": _prefixed(r"key-[a-f0-9]{32}(?![A-Za-z0-9])", "key-"),
    "mapbox": _prefixed(r"sk\.eyJ[A-Za-z0-9_-]{20,300}\.[A-Za-z0-9_-]{20,40}", "sk.eyJ"),
    "neon": _prefixed(r"napi_[a-z0-9]{50,80}", "napi_"),
    "netlify": _prefixed(r"nfp_[A-Za-z0-9_]{36,40}", "nfp_"),
    "new relic": _prefixed(
        r"NR(?:AK-[A-Z0-9]{27}|I[IQ]-[A-Za-z0-9_-]{32}|JS-[a-f0-9]{19}|RA-[a-f0-9]{42})",
        *("NRAK-", "NRII-", "NRIQ-", "NRJS-", "NRRA-"),
    ),
    "notion": _prefixed(
        r"ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])", "ntn_", "secret_"
    ),
    "npm": _prefixed(r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", "npm_"),
    "nvidia": _prefixed(r"nvapi-[A-Za-z0-9_-]{60,80}", "nvapi-"),
    "openai": _prefixed(
        r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,250}"
        r"|sk-[A-Za-z0-9]{32,250}(?![A-Za-z0-9_-])",
        "sk-",
    ),
    "openshift": _prefixed(r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "sha256~"),
    "perplexity": _prefixed(r"pplx-[A-Za-z0-9]{32,100}", "pplx-"),
    "pinecone": _prefixed(r"pcsk_[A-Za-z0-9_]{40,90}", "pcsk_"),
    "planetscale": _prefixed(r"pscale_(?:tkn|pw|oauth|app)_[A-Za-z0-9=._-]{32,64}", "pscale_"),
    "posthog": _prefixed(r"phx_[A-Za-z0-9]{40,50}", "phx_"),
    "postman": _prefixed(r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    # One that was put into base64, as Kubernetes keeps them.
    "private key": _prefixed(
        r"LS0tLS1CRUdJTiB(?:SU0EgUFJJVkFUR|QUklWQVRF|FQyBQUklWQVRF|PUEVOU1NIIFBSSVZBVE)"
        r"[A-Za-z0-9+/=]{20,20000}",
        "LS0tLS1CRUdJTi",
    ),
    "pulumi": _prefixed(r"pul-[a-f0-9]{40}(?![A-Za-z0-9])", "pul-"),
    "pypi": _prefixed(r"pypi-[A-Za-z0-9_-]{50,400}", "pypi-"),
    "replicate": _prefixed(r"r8_[A-Za-z0-9]{30,60}", "r8_"),
    "resend": _prefixed(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_])", "re_"),
    "rubygems": _prefixed(r"rubygems_[a-f0-9]{48}", "rubygems_"),
    "sendgrid": _prefixed(r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}", "SG."),
    "sendinblue": _prefixed(
        r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}", "xkeysib-", "xsmtpsib-"
    ),
    "sentry": _prefixed(
        r"sntrys_[A-Za-z0-9+/=_-]{60,500}|sntryu_[a-f0-9]{64}", "sntrys_", "sntryu_"
    ),
    "shippo": _prefixed(r"shippo_(?:live|test)_[a-f0-9]{40}", "shippo_"),
    "shopify": _prefixed(
        r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,64}", "shpat_", "shpca_", "shppa_", "shpss_"
    ),
    "slack": _prefixed(
        r"xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{10,250}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,100}",
        *("xox", "xapp-", "hooks.slack.com"),
    ),
    "sonarqube": _prefixed(r"sq[upa]_[a-f0-9]{40}(?![A-Za-z0-9])", "squ_", "sqp_", "sqa_"),
    "sourcegraph": _prefixed(r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}", "sgp_"),
    "square": _prefixed(r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}", "sq0"),
    "stripe": _prefixed(
        r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9+/=]{24,100}",
        *("k_live_", "k_test_", "k_prod_", "whsec_"),
    ),
    "supabase": _prefixed(
        r"sbp_[a-f0-9]{40,60}|sb_secret_[A-Za-z0-9_-]{20,60}", "sbp_", "sb_secret_"
    ),
    "tailscale": _prefixed(r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,100}", "tskey-"),
    "tavily": _prefixed(r"tvly-[A-Za-z0-9-]{20,60}", "tvly-"),
    "teams": _prefixed(
        r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{40,300}", "webhook.office.com"
    ),
    "telegram": _prefixed(r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", ":AA"),
    "terraform": _prefixed(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", ".atlasv1."),
    "twilio": _prefixed(r"SK[a-f0-9]{32}(?![A-Za-z0-9])", "SK"),
    "typeform": _prefixed(r"tfp_[A-Za-z0-9_.=-]{40,70}", "tfp_"),
    "vault": _prefixed(r"hv[sbr]\.[A-Za-z0-9_-]{24,300}", "hvs.", "hvb.", "hvr."),
    "vercel": _prefixed(r"vc[apirk]_[A-Za-z0-9]{24,80}", *("vca_", "vcp_", "vci_", "vcr_", "vck_")),
    "xai": _prefixed(r"xai-[A-Za-z0-9]{40,150}", "xai-"),
    "zapier": _prefixed(r"hooks\.zapier\.com/hooks/catch/[A-Za-z0-9/]{10,60}", "hooks.zapier.com"),
    "jwt": _prefixed(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyJ"),
}
# A token is one run of such characters. Few texts have any, and it is in these that letters of
# tokens are looked for, which is far faster than looking for patterns.
_RUN = re.compile(r"[A-Za-z0-9_~./:@+=-]{15,}")
# A bot's token begins with its number: any other text in this form is none.
_BOT = re.compile(
    r"(?<![\w.-])(?P<number>[MNO][A-Za-z0-9_-]{22,29})\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"
    r"(?![\w.-])"
)
_SHORTEST_BOT = 57
# What is a secret only beside what tells whose it is.
_BESIDE_ACCOUNT = re.compile(
    r"(?<![A-Za-z0-9])(AC[a-f0-9]{32}[\"']?[ \t]{0,3}[,;|:]?\s{0,3}[\"']?)([a-f0-9]{32})"
    r"(?![a-f0-9])"
)
_MAILGUN = re.compile(r"(?<![A-Za-z0-9_-])[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![A-Za-z0-9-])")
# What is said to be a secret: by a header, an address, an option or a name.
_HEADER = re.compile(
    r"(?i)(?<![a-z])((?:proxy-)?authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
    r"(?:bearer|basic|token|api-?key|key|digest|negotiate)\s{1,3}"
    r"|bearer\s{1,3}(?=[a-z._~+/=-]{0,300}\d)(?=\S{16}))([A-Za-z0-9._~+/=-]{8,4000})"
)
_COOKIE = re.compile(
    r"(?i)(?<![\w-])((?:set-)?cookie\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?)"
    r"([\w.%-]{1,100}=[^\r\n\"'\\]{4,4000})"
)
_SIGNATURE = re.compile(r"(?i)([?&](?:x-(?:amz|goog|ms)-)?sig(?:nature)?=)([^\s&\"'<>]{16,2000})")
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@\"'`<>]{0,100}):"
    r"([^\s/\"'`<>]{1,200})(?=@)"  # up to the last: an address has no other
)
_OPTION = re.compile(r"(?<![\w-])((?:-u|--user)[ =][\"']?[^\s:\"']{1,100}):([^\s\"']{1,200})")
_NAMES = (
    r"pass(?:word|wort|wd|phrase)|(?<=_)pass(?![a-z])|pwd|secret|token|credential"
    r"|(?:api|access|private|auth|account|encryption|signing|master)[_-]?key"
)
# A value in quotes goes to the end of them, whatever stands in it, over several lines if each is
# one run, and may begin on the line after its name; another one is a run of characters of which
# none separates things in any program.
_ASSIGNMENT = re.compile(
    rf"(?i)({_NAMES})([a-z0-9_]{{0,30}})"
    r"(\\?[\"']?\]?[ \t]{0,3}(?:=>|:=|[:=\uff1a]|[ \t]is[ \t])[ \t]{0,3}(?:\x1b\[[0-9;]{0,9}m)?"
    r"(?:\r?\n[ \t]{1,40}(?=\\?[\"']))?|>(?=[^<>\s]{4,200}</))"
    r"(?:(?P<escaped>\\[\"'`])(?P<a>(?:(?!(?P=escaped))[^\r\n]){4,500})(?=(?P=escaped))"
    r"|(?P<quote>[\"'`])(?P<b>(?:\\.|(?!(?P=quote))[^\r\n\\]){4,500}"
    r"|[^\s\"'`\\]{4,200}(?:\\?\r?\n[ \t]{0,40}[^\s\"'`\\]{1,200}){1,40})(?=(?P=quote))"
    r"|(?P<opened>\\?[\"'`]?)(?P<c>[^\s\x00-\x1f\"'`,;()<>{}\[\]&|\\]{4,500}))"
)
# A value that stands below its name, as YAML has it: each of its lines is indented further.
_BLOCK = re.compile(
    rf"(?im)^(?P<indent>[ \t]{{0,40}}(?:-[ \t])?)[\"']?[\w.-]{{0,60}}?(?P<name>{_NAMES})"
    r"(?P<rest>[a-z0-9_]{0,30})[\"']?[ \t]{0,3}:[ \t]{1,3}[|>][+\d-]{0,2}[ \t]{0,3}"
    r"(?:\#[^\n]{0,200})?\r?\n"
)
_BLOCK_SIGNS = (": |", ": >", ":  |", ":  >", ":\t|", ":\t>")
# A value that follows its name on a command line, or in a file such as .netrc.
_GIVEN = re.compile(
    rf"(?i)(?<![\w-])(?P<name>--[\w-]{{0,30}}?(?:{_NAMES})[ \t]{{1,3}}"
    r"|sshpass[ \t]{1,3}-p[ \t]{0,3}"
    r"|-pass(?:in|out)?[ \t]{1,3}pass:|login[ \t]{1,3}\S{1,100}[ \t]{1,3}password[ \t]{1,3}"
    r"|(?:mysql|mariadb)\w{0,10}[ \t][^\n|;&]{0,200}?(?<=[ \t])-p)"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"'`;&|<>\[]{4,500})"
)
_SOUNDS = ("pass", "pwd", "secret", "token", "credential", "key")
_GIVERS = ("--", "sshpass", "-pass", "login", "mysql", "mariadb")
_KEY_MARK = "PRIVATE KEY"
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Lines of a key of which the end is missing: numbered by whoever showed them, headers first.
_KEY_BODY = re.compile(
    r"(?:(?>[ \t]{0,10}(?:\d{1,7}(?:\u2192|[:|-][ \t]?|[ \t]{1,4}))?)"
    r"(?>[A-Z][A-Za-z-]{2,20}:[ ][^\n]{0,200}|[A-Za-z0-9+/=\\]*+)[ \t\r]*+(?:\n|\Z))*+"
    r"(?:[ \t]{0,10}[A-Za-z0-9+/=\\]{40,})?"
)
_LONGEST_KEY = 20_000

_PASSWORDS = ("pass", "pwd")
_PATHS = ("/", "~", "./", "../")
# A name that goes on like this is about a secret: it is not its value that follows.
_ABOUTS = (
    "id|ids|name|path|file|dir|url|uri|type|hash|count|len|length|size|limit|field|env|var|label"
    "|prefix|format|policy|rounds|expires?|expiry|ttl|in|at|s"
)
_ABOUT = re.compile(
    rf"(?i:(?:^|_)(?:{_ABOUTS})$)"
    rf"|[a-z0-9](?:{'|'.join(each.title() for each in _ABOUTS.split('|'))})$"
)
_PLACEHOLDER = re.compile(
    r"(?i)(?:[*x.•#-]+|none|null|nil|true|false|undefined|str|string|bytes|secret|required|optional"
    r"|pass(?:word|wd)?|redacted|example\w*|placeholder|change[-_]?me\w*|dummy\w*|your[-_].*|my[-_].*"
    r"|number|boolean|any|unknown|[$%<].*)"
)
_LEAST_KEY_CHARS, _LEAST_BITS_PER_CHAR = 12, 3.0
# A name in a program has no more numbers in it; letters and digits by chance have many.
_NUMBER, _MOST_NUMBERS = re.compile(r"\d+"), 2
# And its words are words.
_WORD, _LEAST_CHARS_OF_WORDS = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|\d+"), 3.5
_MARK = "[redacted: "

Mark = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of each kind it had."""

    text: str
    found: Mapping[str, int]

    @property
    def count(self) -> int:
        """Count the secrets that were taken out."""
        return sum(self.found.values())


def redact(text: str) -> Redacted:
    """Put `[redacted: kind]` in the place of each secret."""
    found: Counter[str] = Counter()

    def mark(kind: str) -> str:
        found[kind] += 1
        return f"{_MARK}{kind}]"

    def named(match: re.Match[str]) -> str:
        name, rest, sign = match.groups()[:3]
        quote = match["escaped"] or match["quote"] or match["opened"] or ""
        value = match["a"] or match["b"] or match["c"]
        value = "".join(value.split()) if "\n" in value else value
        if not _is_secret(name, rest, sign, quote, value):
            return match[0]
        return f"{name}{rest}{sign}{quote}{mark(_kind_of(name))}"

    def given(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        is_option = name.startswith("--")
        told = is_option and not match["quote"] and not _is_mixed(value)
        if told or _PLACEHOLDER.fullmatch(value):
            return match[0]
        return f"{name}{match['quote']}{mark(_kind_of(name) if is_option else 'password')}"

    def bot(match: re.Match[str]) -> str:
        return mark("discord") if _is_number_in_base64(match["number"]) else match[0]

    def header(match: re.Match[str]) -> str:
        is_told = match[2].islower() and _is_word(match[2])
        return match[0] if is_told else match[1] + mark("authorization")

    def beside(kind: str, match: re.Match[str]) -> str:
        value = match[2]
        # A user and a group are numbers.
        told = value.isdigit() and "://" not in match[1]
        if told or _PLACEHOLDER.fullmatch(value) or value.startswith(("{", "[")):
            return match[0]
        return f"{match[1]}:{mark(kind)}"

    text = _without_private_keys(text, mark) if _KEY_MARK in text else text
    runs = "\n".join(_RUN.findall(text))
    for kind, token in _TOKENS.items() if runs else ():
        if any(each in runs for each in token.marks):
            text = _pattern_of(kind).sub(partial(_taken_out, mark, kind), text)
    if len(runs) > _SHORTEST_BOT:
        text = _BOT.sub(bot, text)
    plain = text.lower()
    if "mailgun" in plain:
        text = _MAILGUN.sub(partial(_taken_out, mark, "mailgun"), text)
    if "AC" in text:
        text = _BESIDE_ACCOUNT.sub(lambda match: match[1] + mark("twilio"), text)
    if "bearer" in plain or "authorization" in plain:
        text = _HEADER.sub(header, text)
    if "cookie" in plain:
        text = _COOKIE.sub(lambda match: match[1] + mark("cookie"), text)
    if "sig" in plain:
        text = _SIGNATURE.sub(lambda match: match[1] + mark("signature"), text)
    if "://" in plain:
        text = _ADDRESS.sub(lambda match: beside("password", match), text)
    if "-u" in plain:
        text = _OPTION.sub(lambda match: beside("password", match), text)
    if any(each in plain for each in _SOUNDS):
        text = _ASSIGNMENT.sub(named, "".join(_without_blocks(text, mark)))
    if any(each in plain for each in _GIVERS):
        text = _GIVEN.sub(given, text)
    return Redacted(text, dict(found))


@cache
def _pattern_of(kind: str) -> re.Pattern[str]:
    """Compile the pattern of a kind; of most kinds nobody ever needs it."""
    return re.compile(rf"(?<![A-Za-z0-9_-])(?:{_TOKENS[kind].pattern})")


def _taken_out(mark: Mark, kind: str, _: re.Match[str]) -> str:
    return mark(kind)


def _is_number_in_base64(text: str) -> bool:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).isdigit()
    except (binascii.Error, ValueError):
        return False


def _is_secret(name: str, rest: str, sign: str, quote: str, value: str) -> bool:
    """Judge the value of a name that sounds like a secret's."""
    if _PLACEHOLDER.fullmatch(value) or (rest and _ABOUT.search(rest)) or _MARK in value:
        return False
    if name.lower().startswith(_PASSWORDS):
        # `password=password` hands a variable on, `DB_PASSWORD=correcthorse` sets one.
        is_set = bool(quote) or sign == ">" or (name.isupper() and "=" in sign)
        told = " " in value and "pass" in value.lower()  # a label: "enter your password"
        return not told and not value.startswith(_PATHS) and (is_set or not _is_name(value))
    if len(value) < _LEAST_KEY_CHARS or value.startswith(_PATHS) or _is_word(value):
        return False
    if not quote and sign.endswith(" ") and _is_expression(value):
        return False
    return _is_mixed(value) and " " not in value and _bits_per_char(value) >= _LEAST_BITS_PER_CHAR


def _without_blocks(text: str, mark: Mark) -> Iterator[str]:
    """Take out secrets that stand in lines of their own, below their names."""
    at = 0
    for begins in _BLOCK.finditer(text) if any(each in text for each in _BLOCK_SIGNS) else ():
        if begins.start() < at:
            continue
        end = _end_of_block(text, begins.end(), len(begins["indent"]))
        lines = text[begins.end() : end].splitlines()
        value = "\n".join(filter(None, map(str.strip, lines)))
        if value and _is_secret(begins["name"], begins["rest"], "|", "|", value):
            indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
            yield f"{text[at : begins.end()]}{indent}{mark(_kind_of(begins['name']))}\n"
            at = end
    yield text[at:]


def _end_of_block(text: str, start: int, indent: int) -> int:
    """Find the first line that is not indented further, or that ends a longest secret."""
    at = start
    while at < len(text) and at - start < _LONGEST_KEY:
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        at = end
    return at


def _kind_of(name: str) -> str:
    return "password" if any(each in name.lower() for each in _PASSWORDS) else "key"


def _is_mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _is_name(value: str) -> bool:
    """Say whether something is a word, but not several: nobody names a variable `one-two`."""
    return _is_word(value) and "-" not in value.strip("-")


def _is_word(value: str) -> bool:
    """Say whether something is a word, or a name in a program such as `settings.password`."""
    return all(char.isalpha() or char in "_.-:!?" for char in value)


def _is_expression(value: str) -> bool:
    """Say whether something is a name in a program that has a number in it: `x509.PrivateKey`."""
    if not all(part.isidentifier() for part in value.split(".")):
        return False
    words = _WORD.findall(value)
    chars = sum(map(len, words)) / max(1, len(words))
    return len(_NUMBER.findall(value)) <= _MOST_NUMBERS and chars >= _LEAST_CHARS_OF_WORDS


def _bits_per_char(value: str) -> float:
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _without_private_keys(text: str, mark: Mark) -> str:
    """Take out private keys, and what there is of one that was cut off."""
    return "".join(_between_private_keys(text, mark))


def _between_private_keys(text: str, mark: Mark) -> Iterator[str]:
    at = 0
    ends = (match.end() for match in _KEY_ENDS.finditer(text))
    end: int | None = next(ends, None)
    beginnings = list(_KEY_BEGINS.finditer(text))
    for begins, following in zip_longest(beginnings, beginnings[1:]):
        if begins.start() < at:
            continue
        # Ends are gone through once, however many keys begin.
        while end is not None and end < begins.end():
            end = next(ends, None)
        # An end behind where another one begins is of that one.
        last = len(text) if following is None else following.start()
        whole = end is not None and end <= min(last, begins.start() + _LONGEST_KEY)
        body = _KEY_BODY.match(text, begins.end(), begins.end() + _LONGEST_KEY)
        assert body is not None, "no characters at all are a body too"
        yield text[at : begins.start()]
        yield mark("private key")
        at = end if whole and end is not None else body.end()
    yield text[at:]
