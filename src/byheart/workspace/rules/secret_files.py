"""Recognize secret files, which must never be indexed, whatever the folder's rules say.

Most are recognized by name. Keys and logins under other names are recognized by content.
"""

from __future__ import annotations

import re

from byheart.startup.late_patterns import late_pattern

SECRET = "secret file"

_FOLDER_NAMES = """
.ssh .gnupg .aws .azure .gcloud .kube .docker .password-store .terraform.d  .oci keychains
"""
_FOLDERS = frozenset(_FOLDER_NAMES.split())
_FILE_NAMES = """
.env .envrc .netrc _netrc .npmrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .dockercfg
.dockerconfigjson .htpasswd htpasswd .htdigest .git-credentials .gitcredentials .s3cfg .boto
.passwd-s3fs .vault-token .vault_pass .vault_password .rediscli_auth .pass .password  .secret
.secrets .token .credentials .yarnrc.yml .terraformrc  terraform.rc kubeconfig .kubeconfig
passwd shadow gshadow sudoers .ftpconfig  sftp-config.json filezilla.xml sitemanager.xml
recentservers.xml auth.json token.json wallet.dat id_rsa id_dsa id_ecdsa
id_ed25519 id_ecdsa_sk id_ed25519_sk id_xmss ssh_host_rsa_key ssh_host_dsa_key
ssh_host_ecdsa_key ssh_host_ed25519_key
"""
_NAMES = frozenset(_FILE_NAMES.split())
_EXTENSION_NAMES = """
env pem key p8 p12 pfx pkcs8 pkcs12 jks keystore bks kdb kdbx psafe3 agilekeychain opvault
keychain keytab kwallet ppk gpg pgp pgpkey age ovpn tfvars tfstate rdp cscfg
"""
_EXTENSIONS = frozenset(_EXTENSION_NAMES.split())
# A copy is as secret as its original: `.env~`, `#.env#`, `credentials.json.bak`, `.netrc.1`.
_COPY = late_pattern(r"(?:~|\.(?:bak|backup|old|orig|save|copy|swp|swo|tmp|\d{1,14}))+$", re.I)
# Extensions that users append to send a file by mail or to show its format.
_DISGUISES = frozenset({"txt", "json"})
_SECRET_STEM = late_pattern(
    r"(?:.*[^a-z0-9])?firebase-adminsdk(?:[^a-z0-9].*)?\.json"
    r"|(?:.*[^a-z0-9])?kubeconfig(?:[-_.][^.]*)?\.(?:ya?ml|json|conf|config)|kubeconfig[-_][^.]*"
    r"|\.env[.\-_ \d].*|env\.(?:local|production|development|staging|prod|dev|test)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[._-].+"
    r"|\.\w+_history"
)
# Matched only as whole words, and only in files that hold values: `secrets.py` is a program,
# `secret-garden.txt` a book, `tokenizer.json` a vocabulary.
_VALUES = "json jsonc json5 yaml yml toml ini cfg conf config properties xml plist env"
_SECRET_WORDS = late_pattern(
    r"(?:^|[^a-z0-9])(?:secrets?|credentials?|passwords?|passwd|private[-_.]?keys?|api[-_.]?keys?"
    r"|(?:access|auth|api|refresh|bearer|oauth)[-_.]?tokens?|client[-_.]?secrets?"
    r"|service[-_.]?accounts?(?:[-_.]?keys?)?)(?![a-z])"
)
_VALUE_EXTENSIONS = frozenset(_VALUES.split())
# `passwords.txt` and the lists that browsers and password managers export.
_LISTED = late_pattern(
    r"(?:.*[^a-z0-9])?(?:passwords?|passwd|credentials?|logins?|recovery[-_.]?codes?"
    r"|(?:api|access|root)[-_.]?keys?|seed[-_.]?phrase)"
    r"(?:[-_. ()\d]|export|backup|list|copy)*\.(?:txt|csv|tsv|text)"
)
# The same lists as notes. Documentation has pages named `credentials.md` and `api-keys.md`: these
# are ordinary files, and only the secrets in them are redacted.
_NOTED = late_pattern(
    r"(?:.*[^a-z0-9])?(?:passwords|passwd|passwörter|kennwörter|mots[-_. ]?de[-_. ]?passe"
    r"|contraseñas|senhas|密码|密碼|recovery[-_. ]?(?:codes?|phrases?)"
    r"|seed[-_. ]?(?:phrases?|words))"
    r"(?:[-_. ()\d]|export|backup|list|copy)*\.(?:md|markdown|mdx|rst|adoc|org|docx|txt|csv)"
)
_BARE = late_pattern(
    r"(?:.*[^a-z0-9])?(?:credentials?|passwords?|secrets?|api[-_.]?keys?|private[-_.]?key)"
)
_PUBLIC = (".pub", ".crt", ".cer")
_CAMEL = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(name: str, *, is_dir: bool) -> bool:
    """Check whether a name is typical of files that hold keys and passwords."""
    if is_dir:
        return name.lower() in _FOLDERS
    name = _COPY.sub("", name.strip("#"))
    stem, _, extension = name.rpartition(".")
    disguised = extension.lower() in _DISGUISES and "." in stem
    return _holds_secrets(name) or (disguised and _holds_secrets(stem))


def _holds_secrets(name: str) -> bool:
    folded = name.lower()
    if folded in _NAMES:
        return True
    if folded.endswith(_PUBLIC):
        return False
    stem, dot, extension = folded.rpartition(".")
    if (dot and extension in _EXTENSIONS) or _SECRET_STEM.fullmatch(folded):
        return True
    if dot and stem and extension in _VALUE_EXTENSIONS:
        return _SECRET_WORDS.search(_CAMEL.sub("-", name)[: -len(extension)].lower()) is not None
    if dot and stem:
        return any(each.fullmatch(folded) for each in (_LISTED, _NOTED))
    return _BARE.fullmatch(folded) is not None


_ARMOUR = late_pattern(
    r"\s*(?:-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
    r"|AGE-SECRET-KEY-1|# created: [^\n]+\n# public key: age1)"
)


# How many characters of a file are searched for its kind.
_LOOKED_AT_CHARS = 200_000
_ACCOUNT_TYPE = late_pattern(r"\"type\"\s{0,9}:\s{0,9}\"service_account\"")
_ACCOUNT_KEY = late_pattern(r"\"private_key\"\s{0,9}:\s{0,9}\"-----BEGIN ")
_KIND_CONFIG = late_pattern(
    r"(?m)(?:^|[,{])[ \t]{0,9}\"?kind\"?[ \t]{0,9}:[ \t]{0,9}\"?Config\"?[ \t\r]{0,9}(?:$|[,}])"
)
_CLUSTER_LOGIN = late_pattern(
    r"(?:client-key-data|token|password|auth-provider)\"?[ \t]{0,9}:[ \t]{0,9}\"?[^\s\"{}]"
)
_REGISTRY_LOGIN = late_pattern(r"\"auth\"\s{0,9}:\s{0,9}\"[A-Za-z0-9+/_-]{4,}")


def find_secret_content(text: str) -> str | None:
    """Explain why a whole text is a secret, under any name; None if it is not.

    Notes that quote such a file are ordinary files: their secrets are redacted, and they are
    kept.
    """
    if _ARMOUR.match(text) is not None:
        return "is a private key"
    head = text[:_LOOKED_AT_CHARS].lstrip("\ufeff \t\r\n")
    if head.startswith("{"):
        if "service_account" in head and _ACCOUNT_TYPE.search(head) and _ACCOUNT_KEY.search(head):
            return "is the key of a service account"
        if '"auths"' in head and _REGISTRY_LOGIN.search(head):
            return "holds logins of container registries"
    is_data = head.startswith(("{", "apiVersion", "kind:", "clusters:", "users:", "---", "#"))
    is_config = is_data and "clusters" in head and "users" in head and _KIND_CONFIG.search(head)
    if is_config and _CLUSTER_LOGIN.search(head):
        return "is a kubeconfig with credentials"
    return None
