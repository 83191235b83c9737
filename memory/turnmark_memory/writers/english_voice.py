"""Tells in the third person what somebody said in the first, in English, where that is safe.

"I moved to Oslo and my sister stayed" of Robin becomes "Robin moved to Oslo and their sister
stayed". Only first-person words and the verbs that agree with them change. Where grammar or sense
is in doubt (somebody is addressed, a subject is left out, a verb has one form for two tenses) there
is no answer, and the caller quotes.
"""

from __future__ import annotations

import re

from turnmark_memory.writers.listed import listed

_TOKEN = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*|[^A-Za-z]+")
_QUOTED = re.compile(r"[\"“”]|(?<!\w)['‘`][^'’`]*\b(?:I|my|we|our)\b")
_HYPHENED = re.compile(r"(?:\b(?:I|me|my|we|us|our)-|-(?:I|me|my|we|us|our)\b)", re.IGNORECASE)
# "Ana is our new treasurer": the treasurer of all of them, not of whoever says so.
_IS_OURS = re.compile(r"\b(?:is|are|was|were|as) our\b", re.IGNORECASE)
# "Really made me think": whoever did so is left out.
_DROPPED = re.compile(r"^(?:\w+ly|\w+ing(?! (?:is|was|has|helps|makes|gives|\w+s\b)))\b(?!['’])")
_FIRST = listed(
    "i i'm i've i'll i'd im my me mine myself we we're we've we'll we'd us our ours ourselves"
)
_ADDRESSED = listed("you your yours you're you've you'll you'd ya u let's lets imo imho")
_THIRD = listed("they them their theirs they're he him his she her hers")
# A pronoun at the beginning points at something outside.
_POINTING = listed(
    "it it's its this that that's these those they they're he he's she she's there's here"
    " which who his her their then such same so because and but or"
)
_ADVERBS = listed(
    "also just never always often sometimes still now already both even ever almost not"
    " mostly only soon then usually really actually currently recently finally probably"
    " definitely once rather quite too kinda sort kind of"
)
_MODALS = listed(
    "can can't cannot could couldn't will won't would wouldn't should shouldn't must mustn't"
    " may might had hadn't did didn't shall"
)
# Forms of verbs that end in neither -s nor -ed and are past all the same.
_PAST = listed(
    "went got had did made took came saw said told knew thought found gave left felt kept"
    " began brought bought built caught chose drew drank drove ate fell flew forgot grew heard"
    " held led lost meant met paid ran sat sent slept sold spent spoke stood swam taught threw"
    " understood woke won wore wrote became sang broke rode dealt fought hid hung rose shook"
    " shot showed stole stuck swore tore used was"
)
# One form for now and then: nobody can tell which.
_EITHER = listed("put cut set hit let cost quit shut spread hurt bet read beat cast split")
_ED_IS_NO_PAST = listed("need feed speed breed bleed proceed succeed exceed seed weed embed")
_VERBS = listed(
    "work live use like love hate prefer own run have do go take make teach study play want"
    " need help speak cook drink eat drive write read manage lead keep volunteer paint travel"
    " commute train sing swim hike collect share rent avoid enjoy stay build know think hope"
    " plan try write call"
)
_AFTER_VERB = listed(
    "a an the my our his her their its at in on for as to with about it them from into every"
    " two three four some up out over that not no only both many each more"
)
_ARTICLES = listed("a an the my our his her their this that")
_WOULD = frozenset(["better", "been"])
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|can|can't|cannot|must|should|needs?|does|do|did|isn't"
    r"|aren't|doesn't|don't|won't|got|went|came|left|quit|took|made|said|gets?|runs?|costs?"
    r"|keeps?|owns?"
    r"|starts?|ends?|moved|lives|works|uses?|wants?|leads|joined|stays?|goes|takes?|means|says"
    r"|\w{3,}(?<!s)(?:ed|es)|\w{3,}[^su\W]s)\b"
)
_NOUN_PHRASE = re.compile(
    r"^(?:(?:the|a|an|every|all|no|each|both|some|most|\d[\d,.]*) \S|[A-Z][\w'’.-]+|`"
    r"|[a-z]+[-_/.]\w)"
)
_NO_NOUN_START = re.compile(
    r"^(?:I|In|On|At|For|From|Since|Until|After|Before|When|If|Because|Also|Not|No|Yes|Please"
    r"|Still|Just"
    r"|Last|Next|Today|Tomorrow|Yesterday|Maybe|Same|First|Then|Now|Only|Here|Long|Good|Bad|Keys"
    r"|With"
    r"|As|By|To|Or|And|Gonna|Can't|Hope|Trying|Looking|Thinking|Working|Excited|Happy|Seems|Been"
    r"|Felt|But|So|Never|Always|Use|Keep|Write|Plus|More|What|How|Got|Going|Will|Had|Been)\b"
)


_MOST_NAMED = 2
# "I am, home office" answers something.
_NEEDS_MORE = listed("am was do did have had will can would should")


class Speaker:
    """Whom the first person means: a name, or "the user"; and, in a project, the team as "we"."""

    def __init__(self, name: str, *, in_project: bool) -> None:
        self.name = name
        self.owner = f"{name}'" if name.endswith("s") else f"{name}'s"
        self.group = "the team" if in_project else f"{name} and others"
        self.group_is_one = in_project
        self.our = "the" if in_project else self.owner


def is_first_person(text: str) -> bool:
    """Returns whether `text` speaks of "me" or "us"."""
    return any(_low(token) in _FIRST for token in _TOKEN.findall(text))


def retold(text: str, speaker: Speaker) -> str | None:
    """Returns `text` without first person, None where that is not safe."""
    tokens = _TOKEN.findall(text)
    if _HYPHENED.search(text) or _DROPPED.match(text):
        return None
    words = [_low(token) for token in tokens if token[0].isalpha()]
    if not words or _QUOTED.search(text) or _ADDRESSED.intersection(words):
        return None
    if words[0].split("'")[0] in _POINTING:
        return None
    if not speaker.group_is_one and _IS_OURS.search(text):
        return None
    if not _FIRST.intersection(words):
        return text if is_whole(text) else None
    if words[0] not in _FIRST and not _begins_with_subject(text, words):
        return None
    try:
        told = "".join(_Telling(tokens, words, speaker).told())
    except _Unsafe:
        return None
    # A sentence full of one name reads worse than a quotation.
    if told.count(speaker.name) > _MOST_NAMED or told.count(speaker.group) > 1:
        return None
    return told[0].upper() + told[1:]


def is_whole(text: str) -> bool:
    """Returns whether `text` begins with its subject and a verb as far as a glance can tell."""
    if not _NOUN_PHRASE.match(text) or _NO_NOUN_START.match(text):
        return False
    first = text.split(" ", 1)
    if len(first) == 1:
        return False
    return bool(_FINITE.search(first[1])) or not _PAST.isdisjoint(first[1].split(" "))


def _begins_with_subject(text: str, words: list[str]) -> bool:
    if words[0] in {
        "since",
        "because",
        "if",
        "when",
        "after",
        "before",
        "until",
        "last",
        "next",
        "in",
        "on",
        "at",
        "for",
        "from",
        "today",
        "yesterday",
        "tomorrow",
        "the",
        "a",
        "an",
        "every",
        "all",
        "this",
        "one",
        "both",
        "as",
        "with",
        "while",
        "not",
    }:
        return True
    return bool(_NOUN_PHRASE.match(text)) and not _NO_NOUN_START.match(text) and is_whole(text)


def _low(token: str) -> str:
    return token.casefold().replace("’", "'")


class _Unsafe(Exception):
    """The sentence is one to quote."""


class _Telling:
    """One sentence on its way from the first person to the third."""

    def __init__(self, tokens: list[str], words: list[str], speaker: Speaker) -> None:
        self._tokens = tokens
        self._speaker = speaker
        self._they = not _THIRD.intersection(words)
        self._named = self._grouped = False
        # "My wife … we": those two, not everybody.
        self._owns = False
        self._at = 0
        self._out: list[str] = []

    def told(self) -> list[str]:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            self._tell(token, _low(token))
        return self._out

    def _tell(self, token: str, low: str) -> None:
        stem, _, short = low.partition("'")
        if low == "im":
            stem, short = "i", "m"
        if stem == "i":
            self._subject(short)
        elif stem == "we":
            self._group(short)
        elif low == "us" and self._word_before() == "of":
            raise _Unsafe
        elif low in {"me", "us"}:
            self._out.append(self._object(low))
        elif low == "my":
            self._out.append("their" if self._named and self._they else self._speaker.owner)
            self._named = self._owns = True
        elif low == "our":
            self._out.append(self._our())
        elif low in _FIRST:
            raise _Unsafe
        else:
            self._out.append(token)

    def _our(self) -> str:
        if self._speaker.group_is_one:
            return self._speaker.our
        known = (self._named or self._grouped) and self._they
        self._named = True
        return "their" if known else self._speaker.owner

    def _object(self, low: str) -> str:
        if low == "me":
            if self._named and self._they:
                return "them"
            self._named = True
            return self._speaker.name
        if self._grouped and self._they:
            return "them"
        self._grouped = True
        return self._speaker.group

    def _subject(self, short: str) -> None:
        before = self._word_before()
        if before in {"am", "do", "did", "have", "was", "can", "should", "could", "would", "will"}:
            raise _Unsafe
        together = before == "and" and len(self._out) <= 6  # noqa: PLR2004 -- "Dana and I", no clause
        if together and self._named:
            raise _Unsafe
        plural = (self._named and self._they) or together
        begins = "".join(self._out).rstrip().endswith((".", "!", "?"))
        name = "they" if self._named and self._they else self._speaker.name
        self._out.append(name[0].upper() + name[1:] if begins else name)
        self._named = True
        self._verb(short, plural=plural)

    def _group(self, short: str) -> None:
        known = (self._grouped or self._owns) and self._they
        one = self._speaker.group_is_one and not known
        self._out.append("they" if known else self._speaker.group)
        self._grouped = True
        self._verb(short, plural=not one)

    def _word_before(self) -> str:
        return next((_low(token) for token in reversed(self._out) if token[0].isalpha()), "")

    def _verb(self, short: str, *, plural: bool) -> None:
        """Tells the verb of a subject, with what stands between them, and the verbs beside it."""
        if short:
            self._out.append(f" {self._auxiliary(short, plural=plural)}")
            if short in {"m", "re"} and not plural:
                self._verbs_beside()
            return
        self._adverbs()
        verb = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if not verb[:1].isalpha():
            raise _Unsafe
        self._at += 1
        after = self._tokens[self._at] if self._at < len(self._tokens) else "."
        if _low(verb) in _NEEDS_MORE and not after[0].isspace():
            raise _Unsafe
        form = _agreeing(_low(verb), plural=plural)
        self._out.append(verb if form == _low(verb) else form)
        if not plural and form not in _MODALS:
            self._verbs_beside()

    def _adverbs(self) -> None:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            low = _low(token)
            is_gap = not token.strip()
            if not (
                is_gap
                or low in _ADVERBS
                or (low.endswith("ly") and low not in {"rely", "apply", "fly", "reply", "supply"})
            ):
                return
            self._out.append(token)
            self._at += 1

    def _auxiliary(self, short: str, *, plural: bool) -> str:
        if short in {"m", "re"}:
            return "are" if plural else "is"
        if short == "ve":
            return "have" if plural else "has"
        if short == "ll":
            return "will"
        if short != "d":
            raise _Unsafe
        following = next((_low(t) for t in self._tokens[self._at :] if t[0].isalpha()), "")
        past = (
            following in _WOULD
            or following in _PAST
            or (following.endswith("ed") and following not in _ED_IS_NO_PAST)
        )
        return "had" if past else "would"

    def _verbs_beside(self) -> None:
        """Lets a second verb agree too: "lives in Oslo and works as a nurse".

        After "to" it may be meant by the infinitive: "wants to live in Oslo and work as a nurse".
        """
        infinitive = False
        for at in range(self._at, len(self._tokens) - 4):
            joins, word, after = (_low(self._tokens[at + step]) for step in (0, 2, 4))
            infinitive |= joins == "to" and self._tokens[at + 2].islower() and word not in _ARTICLES
            if joins in {"and", "but", "or"} and word in _VERBS and after in _AFTER_VERB:
                if infinitive:
                    raise _Unsafe
                self._tokens[at + 2] = _agreeing(word, plural=False)


def _agreeing(verb: str, *, plural: bool) -> str:
    """Returns the third person of a first-person form.

    Raises:
        _Unsafe: if the form could be now or then, or is no verb.
    """
    special = {
        "am": ("is", "are"), "was": ("was", "were"), "wasn't": ("wasn't", "weren't"),
        "have": ("has", "have"), "haven't": ("hasn't", "haven't"), "do": ("does", "do"),
        "don't": ("doesn't", "don't"), "are": ("is", "are"), "aren't": ("isn't", "aren't"),
        "were": ("was", "were"), "weren't": ("wasn't", "weren't"), "go": ("goes", "go"),
    }  # fmt: skip
    if verb in special:
        return special[verb][plural]
    if verb in _MODALS or verb in _PAST:
        return verb
    if verb.endswith("ed") and verb not in _ED_IS_NO_PAST:
        return verb
    if verb in _EITHER or (verb.endswith("ing") and verb not in {"bring", "sing", "swing"}):
        if plural and verb in _EITHER:
            return verb
        raise _Unsafe
    if verb in {
        "and",
        "or",
        "the",
        "a",
        "in",
        "on",
        "at",
        "to",
        "for",
        "who",
        "guess",
        "mean",
        "gonna",
    }:
        raise _Unsafe
    if plural:
        return verb
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def third_person(name: str, text: str, start: int, end: int) -> str:
    """Returns `text` with `name` in place of the "he", "she" or "he's" between two places."""
    said = text[start:end].casefold().replace("’", "'")
    if said in {"his", "her"}:
        return f"{text[:start]}{name}'s{text[end:]}"
    if not said.endswith("'s"):
        return f"{text[:start]}{name}{text[end:]}"
    following = _TOKEN.findall(text[end:].lstrip())
    word = _low(following[0]) if following else ""
    verb = "has" if word in {"been", "got", "had", "done", "gone"} else "is"
    return f"{text[:start]}{name} {verb}{text[end:]}"
