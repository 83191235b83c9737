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

SIGNS: Final = {
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
