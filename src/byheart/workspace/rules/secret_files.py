"""Secret files: what must never be read, whatever the rules of a folder say, by its name."""

from __future__ import annotations

import re

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
# A copy is as secret as what it is one of: `.env~`, `#.env#`, `credentials.json.bak`, `.netrc.1`.
_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|swp|swo|tmp|\d{1,14}))+$", re.I)
# What is put behind a whole name to send a file by mail, or to say how it is written.
_DISGUISES = frozenset({"txt", "json"})
_SECRET_STEM = re.compile(
    r"\.env[.\-_ \d].*|env\.(?:local|production|development|staging|prod|dev|test)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[._-].+"
    r"|\.\w+_history"
)
# Only as whole words, and only in files that hold values: `secrets.py` is a program,
# `secret-garden.txt` a book, `tokenizer.json` a vocabulary.
_VALUES = "json jsonc json5 yaml yml toml ini cfg conf config properties xml plist env"
_SECRET_WORDS = re.compile(
    r"(?:^|[^a-z0-9])(?:secrets?|credentials?|passwords?|passwd|private[-_.]?keys?|api[-_.]?keys?"
    r"|(?:access|auth|api|refresh|bearer|oauth)[-_.]?tokens?|client[-_.]?secrets?"
    r"|service[-_.]?accounts?(?:[-_.]?keys?)?)(?![a-z])"
)
_VALUE_EXTENSIONS = frozenset(_VALUES.split())
# `passwords.txt` and the lists that browsers and password managers export.
_LISTED = re.compile(
    r"(?:.*[^a-z0-9])?(?:passwords?|passwd|credentials?|logins?|recovery[-_.]?codes?"
    r"|(?:api|access|root)[-_.]?keys?|seed[-_.]?phrase)"
    r"(?:[-_. ()\d]|export|backup|list|copy)*\.(?:txt|csv|tsv|text)"
)
_BARE = re.compile(
    r"(?:.*[^a-z0-9])?(?:credentials?|passwords?|secrets?|api[-_.]?keys?|private[-_.]?key)"
)
_PUBLIC = (".pub", ".crt", ".cer")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(name: str, *, is_dir: bool) -> bool:
    """Say whether a name is one under which keys and passwords are kept."""
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
    return (_LISTED if dot and stem else _BARE).fullmatch(folded) is not None


_ARMOUR = re.compile(
    r"\s*(?:-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
    r"|AGE-SECRET-KEY-1|# created: [^\n]+\n# public key: age1)"
)


def begins_as_key(text: str) -> bool:
    """Say whether a text is a private key, under whatever name."""
    return _ARMOUR.match(text) is not None
