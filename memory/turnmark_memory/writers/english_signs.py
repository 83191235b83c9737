"""What speaks for keeping an English sentence, or against it, whatever it is about: closed classes.

`signs.py` says what they are for. They stay general on purpose: their weights are learned.
"""

from __future__ import annotations

import re
from typing import Final


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b", re.IGNORECASE)


_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTHS = (
    r"january|february|march|april|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_ORDERS = (
    r"add|apply|ask|book|bring|build|bump|call|change|check|clean|close|come|commit|compare"
    r"|continue|convert|copy|create|debug|delete|deploy|describe|do|don't|do not|draft|drop|edit"
    r"|explain|find|fix|format|generate|get|give|go|have|help|hold|ignore|implement|install|keep"
    r"|leave|let|let's|lint|list|look|make|merge|move|open|order|paste|pick|plan|print|pull|push"
    r"|put|read|rebase|refactor|remind|remove|rename|repeat|replace|retry|revert|review|rewrite"
    r"|run|save|say|search|see|send|set|show|skip|split|start|stop|suggest|summari[sz]e|take"
    r"|tell|test|think|translate|try|turn|undo|update|use|verify|wait|write"
)

# Verbs of the mind and of talk, and forms that are no present: "I think", "I tried" tell no habit.
_NO_HABIT = (
    r"agree|am|apologi[sz]e|assume|believe|bet|can|cannot|can't|care|could|couldn't|did|didn't|do"
    r"|doubt|expect|feel|figure|forget|get|give|go|got|guess|had|hadn't|hate|have|haven't|hear|hope"
    r"|imagine|just|know|like|look|love|may|mean|might|mind|miss|must|need|notice|only|propose"
    r"|promise|really|reckon|recommend|remember|say|second|see|seem|shall|should|so|sound|still"
    r"|suggest|suppose|suspect|swear|thank|think|too|trust|understand|vote|want|was|wasn't|were"
    r"|will|wish|won't|wonder|would|wouldn't"
    r"|ate|became|began|bought|broke|brought|came|caught|chose|cut|drank|drew|drove|fell|felt|flew"
    r"|forgot|found|gave|grew|heard|held|hid|hit|hung|kept|knew|led|left|let|lost|made|meant|met"
    r"|paid|put|ran|read|rode|sang|sat|saw|sent|set|shook|shot|slept|sold|spent|spoke|stole|stood"
    r"|stuck|swam|taught|thought|threw|told|took|understood|used|went|woke|won|wore|wrote"
)
_NO_HABIT_OF_OTHERS = (
    r"is|was|does|says|thinks|knows|looks|seems|needs|wants|feels|sounds|means|gets|goes|comes"
    r"|hopes|tells|asks|lets|guess"
)
# "I do think so" is no duty.
_NO_DUTY = (
    r"(?:so|it|that|this|these|not|have|want|need|like|hope|care|think|agree|believe|know|see|understand"
    r"|wonder|remember|feel|love|mean|tests?|same|best|thing)\b"
)
# What a sentence begins with in a capital and names nobody.
_NO_NAME = (
    r"he|she|it|they|this|that|there|what|who|nothing|everyone|everybody|someone|nobody|the|let"
    r"|looks|sounds|seems|feels|turns|makes|means|yes|thanks|always|sometimes|perhaps|besides"
)
_OFTEN = r"(?:always|never|usually|often|mostly|sometimes|also|don['’]t|do not)"

SIGNS: Final = {
    "lasts": re.compile(
        rf"^(?:i|we)(?: {_OFTEN})? (?!(?:{_NO_HABIT})\b|\w+(?:ed|ly)\b)[a-z]+ \w+"
        r"|^(?:i|we)(?:['’]ve| have)(?: got)? (?:an?|two|three|four|\d+|no)"
        r" (?!question|problem|issue|idea|feeling|look|point|favou?r|suggestion|doubt|clue)\w+"
        r"|^(?:i|we) (?:was|were) born|^(?:i|we) (?:grew up|used to)\b"
        r"|^(?:i am|i['’]m) (?:an?|from|allergic|married|\d+)\b"
        rf"|^(?:i|we) do (?:the |all |our |my )?(?!{_NO_DUTY})[a-z]+\b(?! again)"
        r"|^(?:i am|i['’]m|we are|we['’]re) (?:learning|studying|training|teaching|raising)\b"
        rf"|^(?!(?:{_NO_NAME})\b)(?:my \w+|our \w+|(?-i:[A-Z])[\w'’-]+)(?: (?-i:[A-Z])[\w'’-]+)?"
        rf"(?: {_OFTEN})? (?!(?:{_NO_HABIT_OF_OTHERS})\b)(?:has|[a-z]+[^su']s) \w+"
        r"|^(?:the|my|our) (?:[\w-]+ ){1,3}(?:is|are|[a-z]+[^su]s) (?:\w+ ){0,3}"
        r"(?:\w*\d|(?-i:[A-Z])\w+)"
        r"|^(?:i|we)(?: have|['’]ve)? decided\b",
        re.IGNORECASE,
    ),
    "a_time": _words(
        _DAYS,
        _MONTHS,
        r"yesterday|tomorrow|tonight|noon|midnight",
        r"(?:next|this|last) (?:week|weekend|month|year|spring|summer|autumn|winter|term|time)",
        r"half (?:past )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)",
        r"\d{1,2}(?::\d\d| ?[ap]m)|\d{1,2}(?:st|nd|rd|th)|(?:in|since|until|by|from) \d{4}",
    ),
    "hedges": _words(
        r"maybe|perhaps|might|probably|possibly|apparently|seems?|looks like|or something",
        r"i (?:think|guess|suppose|reckon|hope|wonder|imagine|feel like)|i'd say|i bet",
        r"not sure|no idea|don't know|dunno|can't remember|we'll see|who knows|in theory"
        r"|(?:kind|sort) of",
        r"(?:one|some) ?day|at some point|eventually|thinking (?:about|of)|tempted",
    ),
    "supposes": _words(
        r"imagine|suppose|wish|if only|would(?! (?:rather|prefer|like|love))",
        r"(?:could|should) have",
        r"(?:even )?if (?:i|we|you|he|she|they|it|there|only|anyone|someone)",
    ),
    "feels": _words(
        r"tired|hungry|sleepy|exhausted|bored|freezing|annoyed|annoying|sad|stressed|jealous|slept|asleep|awake"
        r"|nervous|headache|starving|feel(?:ing|s)?|felt|ridiculous|nightmare|crazy|weird|gross"
        r"|ugh|argh|omg|sigh|damn|hilarious|funny",
    ),
    "praises": _words(
        r"great|awesome|amazing|cool|nice|sweet|wonderful|fantastic|lovely|fun|beautiful"
        r"|interesting|incredible|exciting|excited|inspiring|inspired|special|gorgeous|stunning"
        r"|powerful|brilliant|perfect|delicious|impressive|rewarding|unforgettable|magical"
        r"|vibrant|proud|grateful|thankful|thrilled|glad|happy|motivated|passionate|worth it"
        r"|congrat\w*|well done|way to go|good luck|thanks|thank you|can't wait"
        r"|love (?:how|that|it)|believe in"
        r"|means (?:a lot|the world)|blast|such an?|so much|truly|definitely|totally",
        r"important|essential|crucial|challenging|tough|priceless|meaningful|honou?r(?:ed)?"
        r"|blessing|blessed|lucky|appreciate|matters?|keep (?:it up|going)|kindness|joy",
    ),
    "vague": _words(
        r"people|everyone|everybody|anyone|life|world|things?|stuff|something|anything|everything"
        r"|moments?|memories|support|love|impact|difference|journey|dreams?|hopes?|together"
        r"|really|lots?|ways?|you|your|you['’]\w+",
    ),
    "of_the_moment": _words(
        r"today|tonight|right now|just now|at the moment|so far|still|yet|already|again|back|here"
        r"|there|later|soon|in a (?:minute|bit|sec|second)|just|this (?:morning|afternoon|evening)"
        r"|on (?:my|the) way",
    ),
    "commits": re.compile(
        r"\b(?:i['’]ll|i will|i won['’]t|i can(?:['’]t)?|we['’]ll|we will|i['’]m \w+ing"
        r"|leave (?:it|that) (?:to|with) me)\b",
        re.IGNORECASE,
    ),
    "as_a_rule": _words(
        r"always|never|usually|every|each|per|from now on|by default|as a rule|all|only|no|any"
        r"|whenever|(?:once|twice) a|\w+days|mornings|evenings|nights|weekends",
    ),
    "is_something": re.compile(r"\b(?:is|are|am|was|were)\b|['’](?:s|re|m)\b", re.IGNORECASE),
    "points_back": _words(
        r"it|that|them|those|these|one|ones|there|so",
        r"this(?! (?:morning|afternoon|evening|week|weekend|month|year|time|spring|summer|autumn"
        r"|winter)\b)",
    ),
    "looks_ahead": re.compile(
        r"['’]ll\b|\b(?:will|going to|gonna|plan(?:s|ning)? to|have to|needs? to|must|should"
        r"|shall)\b",
        re.IGNORECASE,
    ),
    "orders": re.compile(
        r"^(?:please |now |then |first |just |go ahead and |(?:can|could|would) you )*"
        rf"(?:{_ORDERS})\b"
        r"(?!['’-]| (?:is|are|was|were|has|have|will)\b)|^i (?:want|need|would like) (?:you|an?)\b",
        re.IGNORECASE,
    ),
    "goes_on": re.compile(r"^(?:and|but|so|because|or|then|also|plus|though)\b", re.IGNORECASE),
}
