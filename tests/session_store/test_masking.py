"""Tests of `session_store/masking.py`: every secret of the corpus goes, nothing harmless does.

All secrets are made at run time out of pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_session_store.masking import PREFIXED, mask_secrets, mask_tokens, may_hold_token

_ALNUM = string.ascii_letters + string.digits
_WORD = _ALNUM + "_-"
# What tokens are made of, and what stands around them.
_PIECES = (
    *(hint for _, hints, _ in PREFIXED for hint in hints),
    *("_", "-", ".", " ", "pat", "live_", "at_", "b-", "1" * 16, "7f" * 16, "A7" * 20, "密码"),
)


def _made(rng: random.Random, length: int, signs: str = _ALNUM) -> str:
    return "7" + "".join(rng.choice(signs) for _ in range(length - 1))


def _segment(rng: random.Random, length: int) -> str:
    return "ey" + "J" + _made(rng, length, _WORD)


def _key_block(rng: random.Random) -> str:
    kind = rng.choice(["RSA ", "OPENSSH ", "EC ", ""]) + "PRIVATE" + " KEY"
    lines = "\n".join(_made(rng, 64, _ALNUM + "+/") for _ in range(6))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"robin:{_made(rng, 12)}".encode()).decode()


# Kind: how a secret of it is made, and sentences in which it stands as `{}`.
_KINDS: dict[str, tuple[Callable[[random.Random], str], tuple[str, ...]]] = {
    "openai": (lambda r: "sk" + "-proj-" + _made(r, 48), ("key {}", "用 {} 调用", "K={}")),
    "anthropic": (lambda r: "sk" + "-ant-api03-" + _made(r, 80, _WORD), ("use {}.", "（{}）")),
    "github": (
        lambda r: "gh" + r.choice("pousr") + "_" + _made(r, 36),
        ("{}", "token {} ok", "令牌 {}"),
    ),
    "github-pat": (lambda r: "github" + "_pat_" + _made(r, 60), ("push with {}",)),
    "gitlab": (lambda r: "gl" + "pat-" + _made(r, 20), ("glab login {}",)),
    "aws": (
        lambda r: "AK" + "IA" + _made(r, 16, string.ascii_uppercase + string.digits),
        ("id {}",),
    ),
    "google": (lambda r: "AI" + "za" + _made(r, 35), ("?key={}&x=1", "地图 {}")),
    "slack": (lambda r: "xo" + "xb-" + _made(r, 40), ("bot {}", '"{}"')),
    "stripe": (lambda r: "sk" + "_live_" + _made(r, 24), ("charge with {}",)),
    "huggingface": (lambda r: "hf" + "_" + _made(r, 34), ("login {}",)),
    "npm": (lambda r: "np" + "m_" + _made(r, 36), ("_authToken={}",)),
    "pypi": (lambda r: "py" + "pi-" + _made(r, 90, _WORD), ("upload {}",)),
    "telegram": (lambda r: f"{r.randrange(10**8, 10**9)}:A" + "A" + _made(r, 33), ("bot {}",)),
    "jwt": (
        lambda r: f"{_segment(r, 30)}.{_segment(r, 80)}.{_made(r, 40, _WORD)}",
        ("{}", "c={};"),
    ),
    "private-key": (_key_block, ("here:\n{}\nthanks", "{}")),
    "basic": (_basic, ("Authorization: Basic {}", "-H 'authorization: basic {}'")),
    "bearer": (lambda r: _made(r, 40), ("Authorization: Bearer {}", "curl -H 'Bearer {}'")),
    "userinfo": (
        lambda r: _made(r, 14),
        ("postgres://app:{}@db:5432/x", "https://robin:{}@example.org/p", "redis://:{}@cache/0"),
    ),
    "aws-secret": (lambda r: _made(r, 40, _ALNUM + "/+"), ("aws_secret_access_key = {}",)),
    "api-key": (
        lambda r: _made(r, 32),
        ("API_KEY={}", '{{"apiKey": "{}"}}', "api key is {}.", '\\"client_secret\\": \\"{}\\"'),
    ),
    "password": (
        lambda r: "hun" + _made(r, 8),
        (
            "password: {}",
            "my password is {}, keep it",
            "PASSWORD={}",
            "DB_PASSWORD='{}'",
            "the password was {}",
            "Password is now {}!",
            "密码是{}",
            "密码是 {}。",
            "我的密码：{}，别告诉别人",
            "口令为{}。",
            "把密码改成“{}”",
            "密碼是「{}」",
            "密钥: {}",
            "pwd={}",
            "passphrase => {}",
        ),
    ),
    "plain-word": (lambda r: "swordfish", ("password: {}", 'password is "{}"', "密码：{}")),
}
_ROUNDS = 3


def _secrets() -> list[tuple[str, str]]:
    rng = random.Random(20260809)
    return [
        (sentence.format(secret), secret)
        for make, sentences in _KINDS.values()
        for sentence in sentences
        for secret in (make(rng) for _ in range(_ROUNDS))
    ]


def _harmless() -> list[str]:
    digest = hashlib.sha512(b"turnmark")
    sha1, sha256 = hashlib.sha1(b"turnmark").hexdigest(), hashlib.sha256(b"turnmark").hexdigest()
    b64 = base64.b64encode(digest.digest()).decode()
    ident = str(uuid.UUID(int=2**100 + 12345))
    made = [
        f"commit {sha1}",
        f"git show {sha1[:8]}",
        f"sha256:{sha256}",
        f"sha256 = {sha256}",
        f'"integrity": "sha512-{b64}"',
        f"--hash=sha256:{sha256}",
        f"image@sha256:{sha256}",
        f"data:image/png;base64,{b64}",
        f"session {ident}",
        f'"uuid":"{ident}"',
        f"https://github.com/o/r/commit/{sha1}",
        f'ETag: W/"{sha1}"',
        f"md5 {hashlib.md5(b'x').hexdigest()}",
        f"toolu_{sha1[:24]} and msg_{sha1[:24]}",
        f"ssh-rsa {b64} robin@host",
        f"-----BEGIN CERTIFICATE-----\n{b64}\n-----END CERTIFICATE-----",
        f"-----BEGIN PUBLIC KEY-----\n{b64}\n-----END PUBLIC KEY-----",
        f"cache key: {sha1}",
        f"key: {ident}",
        f"task-{sha1} is done",
        f"disk-{sha1}",
    ]
    names = ["password", "Password", "api_key", "API_KEY", "secret", "token"]
    stand_ins = ["<your-key>", "your_key_here", "${SECRET}", "$SECRET", "{{ value }}", "********"]
    made += [f"{name}={stand_in}" for name in names for stand_in in stand_ins]
    return [
        *made,
        "password is required",
        "Password: check the vault",
        "Password:\n\nPlease type it",
        "the password is wrong",
        "Is the password the same as before?",
        "password: string",
        "password: str | None = None",
        "token: bytes",
        "token = parser.next_token()",
        "token: 16000",
        "max_tokens: 2000",
        "tokens: 128000 of 200000",
        "secret: SecretStr",
        "api_key = os.environ['OPENAI_API_KEY']",
        "api_key=settings.openai.api_key",
        "password = getpass.getpass()",
        "password=self.password",
        "key: value",
        "primary key: customer_id2024",
        "the key is 3rd from the left",
        "the key to success is sleep8hours",
        "a secret to nobody",
        "token is expired",
        "keys begin with sk- or ghp_ or AKIA",
        "sk-learn-contrib is a package",
        "pip install sk-video-something-longer-name",
        "npm_config_registry is an environment variable",
        "basic understanding of bearer tokens",
        "Basic authentication",
        "Bearer authentication-scheme-description",
        "https://example.org/path?a=b@c",
        "http://localhost:8080/users/@me",
        "postgres://user:password@localhost/db",
        "postgres://$USER:$PASS@localhost/db",
        "git@github.com:owner/repo.git",
        "mail robin@example.org at 10:30",
        "ratio 12345678:AA is short",
        "eyJ is how a JWT begins",
        "see xoxb- tokens in the docs",
        "密码是必填的",
        "密码是什么？",
        "我忘记了密码，怎么办？",
        "请输入密码：",
        "密码：（见上文）",
        "密码是一个很长的句子",
        "口令为空",
        "令牌是由服务器签发的",
        "密钥: <你的密钥>",
        "这个 token 是 16000 个",
        "我住在卑尔根，2026 年搬来的。",
        "提交 3f2a9c1d 修好了它",
        "他的生日是 1990-02-03",
        "I moved from Oslo to Bergen last month.",
        "My flight is LH1234 at 09:15, seat 12A.",
        "The password manager is 1Password.",
        "Reset password: https://example.org/reset",
    ]


SECRETS = _secrets()
HARMLESS = _harmless()


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_masks_every_secret_of_the_corpus(text: str, secret: str) -> None:
    """The secret is gone, the mark says its kind, and the words around it stay."""
    masked, changed = mask_secrets(text)
    assert changed
    assert secret not in masked
    assert "[secret: " in masked
    before, _, after = text.partition(secret)
    assert masked.startswith(before.rstrip("0123456789"))
    assert masked.endswith(after)


@pytest.mark.parametrize("text", HARMLESS)
def test_leaves_harmless_text_alone(text: str) -> None:
    """Hashes, identifiers, placeholders, code and prose are not secrets."""
    assert mask_secrets(text) == (text, False)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("aws_access_key_id={}", "AKIAIOSFODNN7EXAMPLE"),
        ("密钥是 {}", "AKIAIOSFODNN7EXAMPLE"),
        ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("My secret key: {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ],
)
def test_masks_keys_of_aws_even_those_of_its_manual(text: str, secret: str) -> None:
    """The form says that it is a key; a word in it does not make it a placeholder."""
    masked, changed = mask_secrets(text.format(secret))
    assert changed
    assert secret not in masked


def test_the_corpus_is_large_enough() -> None:
    """At least 80 secrets of 16 kinds, and 100 harmless strings."""
    assert len(SECRETS) >= 80
    assert len(_KINDS) >= 16
    assert len(HARMLESS) >= 100


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_masking_twice_changes_nothing_more(text: str, secret: str) -> None:
    """A mark is no secret."""
    masked, _ = mask_secrets(text)
    assert mask_secrets(masked) == (masked, False)


def test_secrets_in_harmless_text_are_masked_and_the_rest_stays() -> None:
    """All of the corpus in one text: each secret goes, each harmless line stays."""
    texts = [text for text, _ in SECRETS]
    lines = [part for pair in zip(HARMLESS, texts, strict=False) for part in pair]
    masked, changed = mask_secrets("\n\n".join(lines))
    assert changed
    assert all(secret not in masked for _, secret in SECRETS[: len(HARMLESS)])
    assert all(line in masked for line in HARMLESS)


def test_a_key_whose_end_was_cut_off_is_masked_to_its_last_line() -> None:
    """Tools cut long output; the prose after the key stays."""
    rng = random.Random(1)
    begin, line, *_ = _key_block(rng).split("\n")
    masked, changed = mask_secrets(f"{begin}\n{line}\n{line}\nand that was it")
    assert (masked, changed) == ("[secret: private-key]\nand that was it", True)


def test_a_value_on_the_next_line_is_masked() -> None:
    """YAML and forms put the value under its name."""
    secret = "hun" + "ter2"
    assert mask_secrets(f"password:\n  {secret}\n") == ("password:\n  [secret: password]\n", True)


@given(st.text(max_size=300))
def test_any_text_can_be_masked(text: str) -> None:
    """No text raises, and unchanged text is said to be unchanged."""
    masked, changed = mask_secrets(text)
    assert changed is (masked != text)


@pytest.mark.parametrize("rule", [rule for _, _, rule in PREFIXED], ids=lambda rule: rule.pattern)
@settings(max_examples=15)
@given(st.data())
def test_looks_for_every_token_that_a_rule_could_match(
    rule: re.Pattern[str], data: st.DataObject
) -> None:
    """Whatever a rule matches holds one of the signs and hints that are looked for first."""
    token = data.draw(st.from_regex(rule))
    assert may_hold_token(token)


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_masks_the_same_without_a_look_beforehand(text: str) -> None:
    """A text in which no token may be is one that no rule changes."""
    assert may_hold_token(text) or mask_tokens(text) == text
