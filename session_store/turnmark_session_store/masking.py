"""Secrets in what people and agents say, replaced before anything is stored.

Three passes, each linear in the text: blocks of private keys, tokens that are known by their
first letters, and values that stand behind a name (`password: …`, `密码是…`, `Authorization: …`,
`scheme://user:…@host`). There is no entropy rule: conversations are full of commit hashes, UUIDs
and integrity strings, and those stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import partial

# Tokens known by their first letters: kind, what must occur in the text at all, and the rule. A
# rule begins with letters, not with a look behind or a class, because the engine then searches for
# the letters (40 times faster); a token inside a longer word is sorted out afterwards. The rest is
# bounded below so that prose about a prefix ("keys begin with ghp_") is not a secret.
_RULES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("anthropic-key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{20,200}"),
    ("openai-key", ("sk-",), r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,250}"),
    ("stripe-key", ("sk_",), r"sk_(?:live|test)_[A-Za-z0-9]{16,120}"),
    ("stripe-key", ("rk_",), r"rk_(?:live|test)_[A-Za-z0-9]{16,120}"),
    ("stripe-key", ("whsec_",), r"whsec_[A-Za-z0-9]{20,120}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    ("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,255}"),
    ("gitlab-token", ("gl",), r"gl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_.-]{18,255}"),
    ("aws-key", ("AKIA", "ASIA"), r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("google-key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    ("google-token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,500}"),
    ("google-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,60}"),
    ("slack-token", ("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,250}"),
    ("slack-token", ("xapp-",), r"xapp-[A-Za-z0-9-]{20,250}"),
    ("slack-webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,120}"),
    ("huggingface-token", ("hf_",), r"hf_[A-Za-z0-9]{30,60}"),
    ("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{36,60}"),
    ("pypi-token", ("pypi-",), r"pypi-[A-Za-z0-9_-]{50,400}"),
    ("sendgrid-key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    ("docker-token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,60}"),
    ("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    ("digitalocean-token", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ("shopify-token", ("shp",), r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("linear-key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,60}"),
    ("notion-token", ("ntn_",), r"ntn_[A-Za-z0-9]{40,60}"),
    ("databricks-token", ("dapi",), r"dapi[a-f0-9]{32}(?![a-f0-9])"),
    ("age-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}"),
    # The look behind keeps a run of `eyJ` from being scanned once for each of them.
    (
        "jwt",
        ("eyJ",),
        r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}",
    ),
)
PREFIXED = tuple((kind, hints, re.compile(rule)) for kind, hints, rule in _RULES)

# Every token of a rule holds one of these signs, or begins with letters that are rare enough. Most
# of what people write has no `_`: one look for it then spares a look for each of its hints.
_SIGNS = ("_", "-", ".")
_SIGN_OF = {"gl": "-", "xox": "-", "shp": "_", "eyJ": "."}
_HINTS = tuple(hint for _, hints, _ in _RULES for hint in hints)


def _sign_of(hint: str) -> str:
    return _SIGN_OF.get(hint) or next((sign for sign in _SIGNS if sign in hint), "")


_HINTS_BY_SIGN = tuple(
    (sign, tuple(hint for hint in _HINTS if _sign_of(hint) == sign)) for sign in (*_SIGNS, "")
)

# A value ends at white space, a quotation mark or Chinese punctuation, and is bounded.
_VALUE = r"[^\s\"'`<>，。；、！？）】」』“”‘’]{4,256}"
_QUOTE = r"\\?[\"'`“‘「]"
_LINK = r"[:=：]{1,2}|=>|[iI]s now|[iI]s|IS|was|to|是|为|為|改成|改为|设为|設為"
# In the three ways that they are written; `re.IGNORECASE` would cost ten times as much.
_NAMES = ("password", "passwd", "passphrase", "passcode", "pwd", "key", "secret", "token")
_CHINESE_NAMES = ("密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "令牌")
_NAME = "|".join(
    (*(form for name in _NAMES for form in (name, name.title(), name.upper())), *_CHINESE_NAMES)
)
_NAMED = re.compile(
    rf"(?P<name>{_NAME})(?:{_QUOTE})?[ \t]{{0,4}}(?P<link>{_LINK})"
    rf"(?:[ \t]{{0,4}}|\r?\n[ \t]{{1,8}})(?P<quote>{_QUOTE})?(?P<value>{_VALUE})"
    r"(?P<more>[ \t]+\w)?"
)
# What makes a "key" a secret one, as the end of the text before it.
_SECRET_KEY = re.compile(
    r"(?:access|secret|private|api|auth|account|license)[ _-]?$", re.IGNORECASE
)
_LONGEST_KEY_PREFIX = 10
_AUTHORIZATION = re.compile(
    r"(?P<scheme>basic|Basic|BASIC|bearer|Bearer|BEARER)[ \t]{1,4}"
    r"(?P<value>[A-Za-z0-9._~+/-]{8,4096}={0,2})"
)
_USERINFO = re.compile(r"://[^\s/:@\"'<>]{0,64}:(?P<value>[^\s/\"'<>]{1,256})@")
_BOT_TOKEN = re.compile(r":(?<=[0-9]{8}:)(?P<value>AA[A-Za-z0-9_-]{33})(?![\w-])")

_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
# The lines of a key whose end was cut off: possessive, so nothing is tried twice.
_KEY_LINES = re.compile(r"(?:(?:\s|\\r|\\n)*+[A-Za-z0-9+/=]{16,}+)*+")

# What stands in for a secret in examples, forms and code.
_STAND_IN = re.compile(
    r"your|example|placeholder|changeme|change[_-]me|redacted|xxxx|\*\*\*|\.\.\.|…|dummy"
    r"|^(?:required|optional|string|str|text|null|none|nil|true|false|undefined|empty|missing|invalid"
    r"|wrong|correct|expired|hidden|secret|password|passwd|pass|pwd|token|bytes|bool|boolean|secretstr"
    r"|varchar|prompt|stdin|hashed|encrypted|incorrect|here|there|yes|not|used|stored|user|username"
    r"|reset|forgotten|protected|set|unset|needed|in|on|for|an?|the|at|by|and|or|if|when)$",
    re.IGNORECASE,
)
# AWS's keys have one form, and those of its manual (…EXAMPLE) are pasted with real ones: better
# one example too many than a key that is taken for one.
_AWS_FORM = re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}|(?=\D*\d)[A-Za-z0-9+/]{40}")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+\[?")
_CODE_START = tuple("$%{[(<*&#@/\\|")
_TRAILING = ".,;:!?)]}\\"
# What a mask looks like from its name on: `secret: url-password]`.
_MASK_BODY = re.compile(r"[a-z-]+\]")
# Names of which plain words are common values ("token: bearer"): the value must look made.
_WEAK_NAMES = ("token", "secret", "令牌")
_MADE_LENGTH = 8
# Links of prose, where a plain word is more likely a word than a password.
_PROSE_LINKS = ("is", "is now", "was", "to", "是", "为", "為", "改成", "改为", "设为", "設為")


def mask_secrets(text: str) -> tuple[str, bool]:
    """Returns `text` with each secret replaced by `[secret: kind]`, and whether there was one.

    Names, schemes and hosts around a secret stay readable. Masking twice changes nothing more.
    Linear in the length of `text`, and pure: nothing is logged.
    """
    masked = _mask_key_blocks(text)
    if may_hold_token(masked):
        masked = mask_tokens(masked)
    masked = _BOT_TOKEN.sub(partial(_replace_value, kind="telegram-token"), masked)
    masked = _USERINFO.sub(_mask_url_password, masked)
    masked = _NAMED.sub(_mask_named, masked)
    masked = _AUTHORIZATION.sub(_mask_authorization, masked)
    return masked, masked != text


def may_hold_token(text: str) -> bool:
    """Returns False only if no rule of `PREFIXED` could change anything; ten times as fast."""
    for sign, hints in _HINTS_BY_SIGN:
        if sign in text:
            for hint in hints:
                if hint in text:
                    return True
    return False


def mask_tokens(text: str) -> str:
    """Returns `text` with each token that is known by its first letters replaced."""
    for kind, hints, rule in PREFIXED:
        if any(hint in text for hint in hints):
            text = rule.sub(partial(_mask_prefixed, kind=kind), text)
    return text


def _mask_key_blocks(text: str) -> str:
    begin = _KEY_BEGIN.search(text)
    if begin is None:
        return text
    kept: list[str] = []
    position = 0
    ends = True
    while begin is not None:
        kept += (text[position : begin.start()], "[secret: private-key]")
        end = _KEY_END.search(text, begin.end()) if ends else None
        ends = end is not None
        lines = end or _KEY_LINES.match(text, begin.end())
        position = lines.end() if lines else begin.end()
        begin = _KEY_BEGIN.search(text, position)
    return "".join((*kept, text[position:]))


def _mask_prefixed(found: re.Match[str], *, kind: str) -> str:
    before = found.string[found.start() - 1] if found.start() else " "
    inside_a_word = before.isascii() and (before.isalnum() or before in "_+")
    if inside_a_word or not _is_made(found[0]) or _stands_in(found[0]):
        return found[0]
    return f"[secret: {kind}]"


def _stands_in(value: str) -> bool:
    return _STAND_IN.search(value) is not None and _AWS_FORM.fullmatch(value) is None


def _replace_value(found: re.Match[str], *, kind: str, left: str = "") -> str:
    start, end = found.span("value")
    offset = found.start()
    return f"{found[0][: start - offset]}[secret: {kind}]{left}{found[0][end - offset :]}"


def _mask_named(found: re.Match[str]) -> str:
    value = found["value"].rstrip(_TRAILING)
    left = found["value"][len(value) :]
    name = found["name"].lower()
    if (name == "key" and not _is_secret_key(found)) or _is_mask(found):
        return found[0]
    quoted = found["quote"] is not None
    # "password: check the vault": a plain word with more words behind it is a sentence.
    prose = found["link"].lower() in _PROSE_LINKS or found["more"] is not None
    if not _is_named_secret(value, weak=name in _WEAK_NAMES, quoted=quoted, prose=prose):
        return found[0]
    kind = "password" if name[0] == "p" or name[0] in "密口" else "key"
    return _replace_value(found, kind=kind, left=left)


def _is_mask(found: re.Match[str]) -> bool:
    opened = found.start() > 0 and found.string[found.start() - 1] == "["
    return opened and _MASK_BODY.match(found["value"]) is not None


def _is_secret_key(found: re.Match[str]) -> bool:
    start = found.start()
    return _SECRET_KEY.search(found.string[max(0, start - _LONGEST_KEY_PREFIX) : start]) is not None


def _is_named_secret(value: str, *, weak: bool, quoted: bool, prose: bool) -> bool:
    if not value.isascii() or len(value) < 4 or _stands_in(value):  # noqa: PLR2004
        return False
    if value.startswith(_CODE_START) or (not quoted and _is_code(value)):
        return False
    if weak or (prose and not quoted):
        minimum = _MADE_LENGTH if weak else 6
        return len(value) >= minimum and _is_made(value) and not value.isdigit()
    return True


def _is_code(value: str) -> bool:
    return "(" in value or "://" in value or _REFERENCE.fullmatch(value) is not None


def _is_made(value: str) -> bool:
    has_digit = any(sign.isdigit() for sign in value)
    return has_digit or any(sign in "!@#$%^&*+~?" for sign in value)


def _mask_url_password(found: re.Match[str]) -> str:
    if found["value"].startswith(_CODE_START) or _STAND_IN.search(found["value"]):
        return found[0]
    return _replace_value(found, kind="url-password")


def _mask_authorization(found: re.Match[str]) -> str:
    value = found["value"]
    if found["scheme"].lower() == "basic":
        return _replace_value(found, kind="basic-auth") if _is_basic(value) else found[0]
    # Shorter than any bearer token in use, longer than a hyphenated phrase with a digit in it.
    if len(value) < 16 or not _is_made(value) or _STAND_IN.search(value):  # noqa: PLR2004
        return found[0]
    return _replace_value(found, kind="bearer-token")


def _is_basic(value: str) -> bool:
    try:
        pair = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in pair and pair.isprintable()
