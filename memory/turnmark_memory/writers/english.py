"""The cues of English."""

from __future__ import annotations

import re

from turnmark_memory.writers.cues import Cues


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_OPENER = (
    r"^(?:(?:please|pls|ok|okay|now|then|so|and|also|just|great|perfect|yes|yeah|no|thanks|alright"
    r"|hey|hi|first|next|finally|good|cool)[\s,!.]+)*"
)
_VERBS = (
    r"run|list|show|fix|add|remove|delete|write|create|make|open|close|read|print|check|look|search"
    r"|find|explain|summari[sz]e|translate|continue|go|try|retry|commit|push|pull|merge|rebase"
    r"|deploy|build|test|install|update|upgrade|refactor|rename|move|copy|implement|generate|give"
    r"|tell|help|change|set|turn|start|stop|restart|undo|revert|review|debug|format|lint|compile"
    r"|download|fetch|execute|draft|rewrite|convert|compare|describe|clean|put|do|wait|take|edit"
    r"|apply|replace|insert|send|see|verify|repeat|proceed|skip|ignore|pick|let|paste|use|have"
    r"|come|get|think|say|suggest|double-check|grep|curl|cat|cd|ls|git|npm|pip|make|bring|forget"
)
_PERSON_ROLE = (
    r"wife|husband|partner|boss|manager|friend|colleague|doctor|dentist|brother|sister|mother"
    r"|father|mom|mum|dad|son|daughter|neighbou?r|cousin|uncle|aunt|teacher|landlord|lead|tutor"
)

ENGLISH = Cues(
    question=_any(
        r"\?[\"'”’)\]]*$",
        _OPENER
        + r"(?:can|could|would|will|do|does|did|is|are|should|shall|may|have|has|was|were|am)\s+"
        r"(?:you|i|we|it|this|that|there|they|he|she|the|my|our|any)\b(?!.*\b(?:always|never)\b)",
        _OPENER + r"(?:why|where|who|whose|which|how (?:do|does|can|to|would|should|many|much|is"
        r"|are|about|come)|what(?:'s| is| are| about| if| does| do| did| would| should"
        r"| happened))\b",
        r"^any (?:idea|chance|thoughts)",
    ),
    small_talk=_any(
        r"^(?:(?:ok(?:ay)?|thanks?(?: you)?|thx|ty|a lot|so much|very much|great|cool|nice|sure|yes"
        r"|yeah|yep|no|nope|hi|hello|hey|there|good (?:morning|evening|night|job|work)|got it|i see"
        r"|sounds good|perfect|awesome|lol|haha|right|exactly|correct|fine|bye|see you|cheers|wow"
        r"|never ?mind|no problem|well done|please|again|for (?:that|the help|your help)"
        r"|makes sense"
        r"|amazing|excellent|good|all good|that's (?:it|all|fine|great)|sorry|agreed|hmm+|oh|ah"
        r"|of course|absolutely|how are you|love it|my bad)[\s,.!;:)~-]*)+$",
        r"^(?:thanks|thank you|thx)\b(?!.*\b(?:i|we|my|our)\b)",
        r"^(?:don't worry|no worries|never ?mind|good luck|have a (?:nice|good|great))\b",
    ),
    command=_any(
        _OPENER
        + r"(?:(?:can|could|would) you |let's |let me |i (?:want|need) you to |i'd like you to "
        rf"|go ahead and |you (?:can|should) )?(?:please )?(?:{_VERBS})\b",
        r"^(?:i'd like (?:you )?to (?:see|know|hear)|i (?:want|need) (?:you|a (?:list|summary))\b)",
        r"^(?:you|the assistant)\b",
    ),
    standing=_any(
        r"\b(?:always|never(?! mind)|from now on|by default|every time|whenever|in (?:the )?future"
        r"|going forward|as a rule|unless i (?:say|ask)|each time|no longer|anymore|any more"
        r"|from today|at all times|without exception)\b",
        _OPENER + r"(?:don't|do not|avoid|stop|no more)\s+(?:us|add|writ|call|commit|push|touch"
        r"|includ|mention|send|ask|creat|chang|delet|put|mak|mock|import|say|explain|apologi"
        r"|repeat)",
        r"^(?:keep|stick to|reply|answer|respond|speak|write)\b.*\b(?:short|brief|concise"
        r"|in (?:english"
        r"|chinese|german|french|spanish)|simple|formal|informal)\b",
    ),
    remember=_any(
        r"\b(?:remember(?: that)?|note that|keep in mind|bear in mind|for the record|fyi"
        r"|for reference"
        r"|remind me|don't forget|call me|my name is|be aware|please note|important:"
        r"|make a note)\b",
    ),
    decision=_any(
        r"\b(?:decided|decision|decide on|let's (?:go with|use|keep|stick|switch|call|drop|settle)"
        r"|(?:go|going|went) with|we(?:'ll| will) (?:use|go|keep|drop|stick|call|ship)|chose|chosen"
        r"|settled on|agreed (?:to|on|that|with)|switch(?:ed|ing)? (?:to|from|over)"
        r"|migrat(?:e|ed|ing) (?:to|from)|instead of|rather than|because|since we|so that"
        r"|the reason"
        r"|rejected|dropped|approved|changed (?:it |that )?(?:to|from)|ruled out|in favou?r of"
        r"|signed off)\b",
        r"\b(?i:change|set|rename|move|bump)\b.{1,80}\bto\b.{0,30}(?:\d|(?-i:[A-Z])\w+)",
        r"^(?:actually|correction|scratch that|forget that|i meant|no,|not)\b.*(?:\d|\b(?:is"
        r"|are|was"
        r"|not|instead|should|meant|it's)\b)",
        _OPENER + r"use\b.*\b(?:for|instead|everywhere)\b",
    ),
    plan=_any(
        r"\b(?:i'll|we'll|(?:i|we|he|she|they|it|which|who|\w+) will|going to|gonna|plan(?:s"
        r"|ned|ning)?"
        r" (?:to|on|for)|deadline|due (?:on|by|date|in|next|this|tomorrow|today)|appointment"
        r"|meeting"
        r"|scheduled|(?:i|we) (?:have to|must|need to|intend to|want to|hope to|promised?)|starting"
        r" (?:on|from|in|next)|is due|flight|tomorrow|next (?:week|month|year|" + _DAY + r")"
        r"|by (?:"
        + _DAY
        + "|"
        + _MONTH
        + r"|tomorrow|the end of|next)|until (?:"
        + _DAY
        + "|"
        + _MONTH
        + r"))\b",
    ),
    preference=_any(
        r"\b(?:(?:i|we|she|he|they|\w+)(?:'d| would)? (?:(?:really|also|still|just|only|usually"
        r"|much)"
        r" )?(?:prefer|like|love|hate|dislike|enjoy|loathe|adore|avoid)(?:s|d)?\b|favou?rite"
        r"|can't stand|allergic|vegetarian|vegan|don't (?:eat|drink|like|want|use)|fan of"
        r"|prefers?|preference|would rather|i'd rather|used to like|tired of)",
    ),
    personal=_any(
        r"\b(?:i|i'm|im|i've|i'd|i'll|my|mine|myself|we|we're|we've|we'll|our|ours)\b",
    ),
    hollow=_any(
        r"^(?:(?:well|ok|okay|so|and|but|yeah|yes|no|hmm|oh)[\s,]+)*(?:i|we)(?:'m|'ve|'d|'ll)?\s*"
        r"(?:(?:am|was|have|just|also|still|really|do|did)\s+)*(?:see\b|saw\b|understand|get (?:it"
        r"|this|an|the|a)\b|got (?:it|this|an|the following)\b|think so|guess|hope|agree\b|don't"
        r" (?:know|think so|understand|get|see|mind|care)|not sure|unsure|wonder|have (?:a"
        r"|another|one)"
        r" (?:quick )?(?:question|problem|issue)|would like to ask|looking (?:at|for)|trying to"
        r"|tried|(?:ran|run) (?:it|the|this|that|into|your)\b|getting\b|seeing\b|asking"
        r"|wanted to (?:ask|know)|check|let you know|be"
        r" (?:right )?back|back\b|here\b|wait|try\b|look\b|need (?:help|you|some help)|mean\b"
        r"|thought (?:so|about)|curious|confused|stuck|done\b|ready\b|appreciate|want (?:to (?:see"
        r"|know|ask|understand)|you))",
        r"^(?:that|this|it|there|those|these)(?:'s|\b)(?!.*(?:\bbecause\b|\d))",
        r"^(?:tell|show|give|help|let|send) (?:me|us)\b",
    ),
    claim=_any(
        r"^(?-i:[A-Z][\w'’-]+(?: [A-Z][\w-]+)? [a-z]+(?:[^s]s|ed)\b)",
        r"\b(?:is|are|was|were|has|have|had|runs?|ran|uses?|used|lives?|leads?|works?|worked|costs?"
        r"|starts?|started|ends?|ended|moved|joined|left|became|contains?|needs?|needed|takes?|took"
        r"|supports?|owns?|manages?|wants?|said|says|told|means|belongs?|depends|listens?|arrives?"
        r"|leaves|opens|closes|expires?|weighs?|measures?|born|graduated|married|launched|released"
        r"|shipped|failed|died|hired|quit|bought|sold|paid|signed|met|visited|studies|studied"
        r"|teaches|speaks|requires?|handles?|replaced|replaces|resigned|got|knows|should|must"
        r"|cannot|can't|can|won|lost|built|founded|called|named|hosts?|serves?|stores?|points)\b",
        r"^(?:deadline|budget|address|phone|e-?mail|birthday|port|version|name|owner|contact|team"
        r"|language|time ?zone|date|location|price|goal|stack)\s*:\s*\S",
    ),
    anchor=re.compile(
        r"\d|(?<=\S )(?!I\b)[A-Z][\w'’-]*|^[A-Z][\w'’-]+ (?:[A-Z]|is\b|was\b|has\b|[a-z]+s\b"
        r"|[a-z]+ed\b)"
        r"|^[A-Za-z -]{3,20}:\s"
    ),
    strong=_any(
        r"\b(?:i|we)(?:'m| am|'ve| have| are|'re)?\s+(?:(?:just|already|recently|now"
        r"|currently)\s+)*"
        r"(?:a\b|an\b|in\b|from\b|work|live|moved|use\b|using\b|prefer|decided|bought"
        r"|got (?:married|a"
        r" )|started|joined|left|switched|have (?:a|an|two|three|\d)|own\b|allergic|vegetarian"
        r"|learning"
        r"|studying|building|planning)",
        r"\bmy (?:\w+ ){1,2}(?:is|are|was|has|lives|works)\b",
    ),
    shared=_any(
        r"\b(?:we|we're|we've|we'll|our|ours|us|let's|project|repo(?:sitory)?|codebase|code|team"
        r"|branch|main|push|merge|npm|pnpm|yarn|release|deploy\w*|server|database|api|service|build|tests?|commit\w*|frontend"
        r"|backend|module|schema|endpoint|pipeline|ci)\b",
    ),
    alone=_any(r"\b(?:i|i'm|im|i've|i'd|i'll|my|mine|me|myself)\b"),
    confirmation=_any(
        r"^(?:yes|yeah|yep|correct|right|exactly|agreed|sounds good|perfect|that's (?:right|correct"
        r"|fine|it)|go (?:ahead|with (?:that|it))|let's do (?:that|it)|ok(?:ay)?[,.]? (?:do it|go"
        r"|let's)|please do|approved|confirmed|deal|works for me)\b",
    ),
    person=re.compile(
        r"^(?P<name>[A-Z][\w'’-]+)(?: [A-Z][\w'’-]+)? (?:leads|lives|moved|likes|prefers|joined"
        r"|manages"
        r"|hates|loves|married|(?:works|worked) (?:at|for|in|on|as|with)|was born|is (?:my|our"
        r"|the|a)"
        rf" (?:\w+ ){{0,2}}(?:{_PERSON_ROLE})\b)"
    ),
    shortest=3,
)
