"""The cues of English."""

from __future__ import annotations

import re

from turnmark_memory.writers.cues import Cues


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_LEAD_IN = (
    r"well|so|yeah|yep|yes|yup|no(?=[,.!])|nah|nope|wait|ok|okay|oh|ah|hm+|haha+|hehe|lol|btw"
    r"|by the way|anyway"
    r"|also|and|but|then|now|right|sure|great|nice|cool|perfect|please|pls|morning|evening|argh"
    r"|ugh|phew|sorry|cheers|plus|first|next|finally|just|good news|bad news|small thing|quick one"
    r"|one (?:more )?thing|(?:and )?(?:like|as) i said|fyi|for the record|for reference"
    r"|just so you know|(?:and )?before i forget|change of plans?|for the future|guess what"
    r"|to be honest|honestly|actually|of course|correction|scratch that|(?:please )?(?:remember"
    r"|note"
    r"|keep in mind|bear in mind|be aware)(?: that)?|good (?:morning|evening)|back again"
    r"|(?:wow|thanks|thank you|thx|hey|hi|hello)(?:,? (?-i:[A-Z])\w+| there| all| again"
    r"| everyone| folks| team| guys)?|@\w+"
)
_VERBS = (
    r"run|list|show|fix|add|remove|delete|write|create|make|open|close|read|print|check|look|search"
    r"|find|explain|summari[sz]e|translate|continue|go|try|retry|commit|push|pull|merge|rebase"
    r"|deploy|build|test|install|update|upgrade|refactor|rename|move|copy|implement|generate|give"
    r"|tell|help|change|set|turn|start|stop|restart|undo|revert|review|debug|format|lint|compile"
    r"|download|fetch|execute|draft|rewrite|convert|compare|describe|clean|put|do|wait|take|edit"
    r"|apply|replace|insert|send|see|verify|repeat|proceed|skip|ignore|pick|let|paste|use|have"
    r"|come|get|think|say|suggest|double-check|grep|curl|cat|cd|ls|git|npm|pip|make|bring|forget"
    r"|drop|bump|keep|ship|plan|order|book|remind"
)
ROLES = (
    r"wife|husband|partner|boss|manager|friend|colleague|coworker|doctor|dentist|brother|sister"
    r"|mother|father|mom|mum|dad|son|daughter|neighbou?r|cousin|uncle|aunt|teacher|landlord"
    r"|landlady|lead|tutor|kids?|children|family|fianc[eé]e?|girlfriend|boyfriend|roommate"
    r"|grandma|grandpa|grandmother|grandfather|niece|nephew|dog|cat|parents|flatmate|supervisor"
)

_NICE = (
    r"great|awesome|amazing|cool|nice|sweet|wonderful|fantastic|lovely|good|fun|beautiful"
    r"|interesting|incredible|exciting|inspiring|special|tough|hard|worth it|gorgeous|stunning"
    r"|powerful|important|blast|relief|joy|impressive|funny|neat|right|true|fine|terrible"
    r"|awful|adorable|delicious|cute|perfect|rewarding|thought-provoking"
)
# "Imke here, ..." says who speaks, as the turn does.
_HERE = r"(?!(?:over|up|right|down|from|out|around|near)\b)(?-i:[A-Z])\w+ here(?=,)"


ENGLISH = Cues(
    opener=re.compile(
        rf"^(?:(?:{_LEAD_IN}|{_HERE})(?:[\s,.!:;–—-]+|$))+",
        re.IGNORECASE,
    ),
    question=_any(
        r"\?[\"'”’)\]]*$",
        r"^(?:can|could|would|will|do|does|did|is|are|should|shall|may|have|has|was|were|am)\s+"
        r"(?:you|i|we|it|this|that|there|they|he|she|the|my|our|any)\b(?!.*\b(?:always|never)\b)",
        r"^(?:why|where|who|whose|which|how (?:do|does|can|to|would|should|many|much|is|are|about"
        r"|come|'s|was)|how's|what(?:'s| is| are| about| if| does| do| did| would| should| else"
        r"| happened| \w+ (?:is|are|do|does|did|was|can|should|would|will)))\b",
        r"^any (?:idea|chance|thoughts)",
        r"^(?:can|could|would|will|does|did|has|have|is) (?:someone|somebody|anyone|anybody"
        r"|one of)\b",
        r"^(?:anyone|anybody)\b|^do (?:you|they|we)\b",
    ),
    small_talk=_any(
        r"^(?:(?:ok(?:ay)?|thanks?(?: you)?|thx|ty|(?:with|by|for) me|a lot|so much|very much"
        r"|great|cool|nice|sure|yes"
        r"|yeah|yep|no|nope|hi|hello|hey|there|good (?:morning|evening|night|job|work)|got it|i see"
        r"|sounds good|perfect|awesome|lol|haha|right|exactly|correct|fine|bye|see you|cheers|wow"
        r"|never ?mind|no problem|well done|please|again|for (?:that|the help|your help)|all"
        r"|everyone|makes sense|sorted then|night|evening|morning|done|fixed|all set|not (?:yet|me)"
        r"|amazing|excellent|good|all good|that's (?:it|all|fine|great)|sorry|agreed|hmm+|oh|ah"
        r"|of course|absolutely|how are you|love it|my (?:bad|fault)|long day)[\s,.!;:)~-]*)+$",
        r"^(?:thanks|thank you|thx)\b(?!.*\b(?:i|we|my|our)\b)",
        r"^(?:don't worry|no worries|never ?mind|good luck|have (?:a|an|fun)\b|congrat|take care"
        r"|keep (?:it up|up)|can't wait|bless|fingers crossed|enjoy|welcome|talk (?:to you )?soon"
        r"|see ya|stay (?:safe|strong)|happy (?:birthday|to help)|glad|sounds|looks|good (?:to"
        r"|for)|what a"
        r"|so (?:cool|happy|sweet|nice|glad|proud)|love (?:that|the|your|it|this)|wish(?:ing)?"
        r" (?:you|me)|you(?:'ve|'re|'ll| got| are| should| really)? )",
        r"^(?:it|they|that|this|those|these|the \w+|(?:that|this) \w+(?: \w+)?)(?:['’]s| is| was"
        r"|['’]re| are"
        r"| were| looks?| sounds?| feels?| felt| must be| must have been) (?:just |so |really "
        r"|super "
        rf"|pretty |very |such |quite |an? )*(?:{_NICE})\b[^\d]{{0,40}}$",
        r"^(?:not now|no thanks|no need|another time|later)\b[^\d]{0,20}$",
        r"^(?:totally|couldn't|absolutely|definitely) ",
    ),
    command=_any(
        r"^(?:(?:can|could|would) you |let's |let me |i (?:want|need) you to |i'd like you to "
        rf"|go ahead and |you (?:can|should) )?(?:please )?(?:{_VERBS})\b(?!['’-])"
        r"(?! \w+ (?:is|are|was|were|has|have|had|changed|moved|goes|go|happens?|stays?|starts?"
        r"|ends?"
        r"|needs?|runs?|will)\b)",
        r"^(?:i'd like (?:you )?to (?:see|know|hear)|i (?:want|need) (?:you|a (?:list|summary))\b)",
        r"^(?:you|the assistant|don't|do not)\b",
    ),
    hollow=_any(
        r"^(?:i|we)(?:'m|'ve|'d|'ll)?\s*"
        r"(?:(?:am|was|were|have|just|also|still|really|so|totally|do|did|'m|can|might)\s+)*"
        r"(?:(?:see|saw)(?:$| (?:it|that|this|what|your|you|the (?:error|same))\b)|understand|get"
        r" (?:it|this|an|the|a)\b|got (?:it|this|an|the following)\b"
        r"|think so|guess|hope|agree\b|don't (?:know|think so|understand|get|see"
        r"|mind|care)|not sure|unsure|wonder|have (?:a|another|one) (?:quick )?(?:question|problem"
        r"|issue)|would like to ask|looking (?:at|for)\b|trying to|tried|(?:ran|run) (?:it|the|this"
        r"|that|into|your)\b|getting\b(?! (?:married|divorced|a\b))|seeing\b|asking|wanted to"
        r" (?:ask"
        r"|know)|check|let you know|be (?:right )?back|back\b|here\b|wait|try\b|look\b|need (?:help"
        r"|you|it\b|some help)|mean\b|thought (?:so|about)|curious|confused|stuck|done\b|ready\b"
        r"|actually"
        r"|appreciate|want (?:to (?:see|know|ask|understand)|you)|happy for|glad\b|proud of you"
        r"|sorry|hear (?:you|ya)|(?:'ll )?(?:keep|let) (?:you|ya)|believe in you|know (?:what|how"
        r"|right|you)|bet\b|can imagine|feel you)",
        r"^(?:that|this|there|those|these)(?:'s|'re|'ll|'d|\b)"
        r"(?!.*(?:\bbecause\b|\d|(?-i:[A-Z])))(?! (?:repo|project|app|service|tool|site"
        r"|package)\b)",
        r"^(?:i|we) (?:am|are|do|did|will|can|have|was)[\s,.!]*$",
        r"^(?:tell|show|give|help|let|send) (?:me|us)\b|^let's (?:hope|see)\b",
        r"^(?:thanks|thank) ",
    ),
    standing=_any(
        r"\b(?:from now on|by default|in (?:the )?future|going forward|as a rule|unless i (?:say"
        r"|ask)"
        r"|from today|at all times|without exception|don't ever|no new)\b",
        rf"^(?:please )?(?:always|never(?! mind)|whenever|every time|(?:{_VERBS})\b.*\b(?:always"
        rf"|never"
        r"|whenever|every time))\b",
        r"\b(?:should|must|needs? to|has to|have to) (?:always|never)\b|[,;] (?:and )?never \w+",
        r"^(?:please )?(?:don't|do not|avoid|stop|no more)\s+(?:ever |us|add|writ|call|commit|push"
        r"|touch|includ|mention|send|ask|creat|chang|delet|put|mak|mock|import|say|explain|apologi"
        r"|repeat|run|format)",
        r"^(?:keep|stick to|reply|answer|respond|speak|write)\b.*\b(?:short|brief|concise|in"
        r" (?-i:[A-Z])\w+|simple|formal|informal)\b",
        r"\bi (?:want|expect|need) (?:every|all|each|no)\b",
        r"^(?:write|use|keep) .{1,60}\b(?:messages?|names?|comments?|style|imperative|case)\b",
        r"^if you (?:need|write|add|change|find|see|are)\b.*, \w+",
        rf"^(?:please )?(?:{_VERBS})\b.*\b(?:a|per|each|every) (?:day|week|month|time|morning"
        rf"|evening"
        rf"|night|{_DAY})\b",
        r"\b(?:fine|ok|okay|allowed|back on) again\b|\bi(?:'d| would) (?:rather|prefer)\b.*\byou\b",
        r"\b(?:stays?|remains?|is) (?:untouched|off limits|frozen|read-only)\b",
    ),
    remember=_any(
        r"\b(?:remember(?: that)?|note that|keep in mind|bear in mind|for the record|fyi"
        r"|for reference|remind me\b(?=.*(?:\d|day\b|tomorrow|tonight|week|month|every))"
        r"|don't forget"
        r"|call me|my name is|be aware|please note|important:|make a note)\b",
    ),
    decision=_any(
        r"\b(?:decided|decision|decide on|let's (?:go with|use|keep|stick|switch|call|drop|settle)"
        r"|(?:go|going|went) with|we(?:'ll| will) (?:use|go|keep|drop|stick|call|ship|take)|chose"
        r"|chosen|settled on|agreed (?:to|on|that|with)|switch(?:ed|ing)? (?:to|from|over)"
        r"|migrat(?:e|ed|ing) (?:to|from)|(?:we take|take) it\b|after all|can wait|blocker|not"
        r" needed for|we voted"
        r"|rejected|dropped|dropping|approved|changed (?:it |that )?(?:to|from)|ruled out"
        r"|in favou?r of|signed off|by hand instead|sunset(?:ting)?|deprecat\w+)\b",
        r"\b(?i:change|set|rename|move|bump)\b.{1,80}\bto\b.{0,30}(?:\d|(?-i:[A-Z])\w+)",
        r"^let's (?!run|look|see|check|test|try|start|do\b|commit|push|get|wait|continue|move on"
        r"|talk"
        r"|begin|open|fix|hope|say|spread|keep (?:going|in touch)|go(?! with))\w+ \w+",
        r"^use\b.*\b(?:for|instead|everywhere)\b",
        r"\d it is$",
    ),
    correction=_any(
        r"^(?:i meant|not)\b.*(?:\d|\b(?:is|are|was|not|instead|should|meant|it's)\b)",
        r"\bi was wrong\b",
        r",? (?:and )?not (?:on |in |at )?(?:the )?(?:\d|(?-i:[A-Z]))",
    ),
    plan=_any(
        r"\b(?:i'll|we'll|(?:i|we|he|she|they|it|which|who|\w+) will|going to|gonna|plan(?:s"
        r"|ned|ning)? (?:to|on|for)|deadline|due (?:on|by|date|in|next|this|tomorrow|today)"
        r"|appointment|meeting|scheduled|(?:i|we) (?:have to|must|need to|intend to|want to"
        r"|hope to)|promised?|starting (?:on|from|in|next)|is due|flight|tomorrow|next (?:week"
        r"|month|year|"
        + _DAY
        + r")|by (?:"
        + _DAY
        + "|"
        + _MONTH
        + r"|tomorrow|the end of|next)|until (?:"
        + _DAY
        + "|"
        + _MONTH
        + r")|goal is|dream (?:is|of)|looking forward to|thinking (?:about|of)|hoping to"
        r"|excited (?:to|for|about)|can't wait to|working on|signed up)\b",
        r"^(?:will|gonna|going to|planning|hoping) ",
    ),
    preference=_any(
        r"\b(?:(?:i|we|she|he|they|who|(?-i:[A-Z])\w+)(?:'d| would)? (?:(?:really|also|still|just"
        r"|only"
        r"|usually|much|don't|doesn't|do) )*(?:prefer|like|love|hate|dislike|enjoy|loathe|adore"
        r"|avoid)"
        r"(?:s|d)?\b(?! to (?:know|see|ask))|favou?rite"
        r"|can't stand|allergic|vegetarian|vegan|don't (?:eat|drink|like|want|use)|fan of"
        r"|prefers?|preference|would rather|i'd rather|used to like|tired of|into \w+ing|passion"
        r"|hobby|hobbies|obsessed|keen on|crazy about)",
    ),
    who=_any(
        r"^(?:he|she|his|her)(?:['’]s|\b)",
        r"^(?-i:[A-Z])\w+ here\b|\b(?:called|named) (?-i:[A-Z])",
        r"\b(?:my name is|call me|i(?:'m| am) (?:a|an|the|from|in|at|with|based|born"
        r"|(?-i:[A-Z])\w+)\b|i (?:live|work|teach|study|grew up|was born|moved|run a|own a"
        r"|maintain|come from)|took over|years? old|married|divorced"
        r"|engaged|retired|pregnant|graduated|promoted|hired|laid off|offered"
        r"|got (?:the|a|my) (?:\w+ )?(?:job|offer|keys|visa|place|results))\b",
        rf"\bmy (?:\w+ )?(?:{ROLES})\b",
        rf"\b(?:{ROLES}) (?-i:[A-Z])\w+",
        r"^(?-i:[A-Z])[\w'’-]+(?: (?-i:[A-Z])[\w'’-]+)? (?:is (?:my|our|the|a)|lives|works|teaches"
        r"|leads|owns|manages|joined|left|moved)\b",
    ),
    personal=_any(
        r"\b(?:i|i'm|im|i've|i'd|i'll|my|mine|myself|we|we're|we've|we'll|our|ours|me|us)\b",
    ),
    anchor=re.compile(
        r"\d|`[^`]+`|\S+@\S+|https?://|(?<=\S )(?!I\b|I['’])[A-Z][\w'’-]*|^(?!(?:He|She|It|They"
        r"|This|That|There|What|Who|Nothing)\b)[A-Z][\w'’-]+ (?:[A-Z]"
        r"|[a-z]+(?<!i)s\b [a-z]"
        r"|[a-z]+ed\b|(?:got|took|left|bought|sold|found|lost|won|quit)\b)|^[A-Za-z -]{3,20}:\s"
        r"|\b[a-z][\w-]+[_/][\w/-]+"
    ),
    addressed=_any(r"\b(?:you|your|yours|you're|you've|you'll|ya)\b"),
    strong=_any(
        r"\b(?:i|we)(?:'m| am|'ve| have| are|'re)?\s+(?:(?:just|already|recently|now|currently)"
        r"\s+)*(?:a\b|an\b|in\b|from\b|work|live|moved|use\b|using\b|prefer|decided|bought"
        r"|got (?:married|a )|started|joined|left|switched|have (?:a|an|two|three|\d)|own\b"
        r"|keep\b|run\b"
        r"|teach\b|sell\b|play\b|grow\b|drive\b|speak\b|can't\b|don't (?:eat|drink|drive)"
        r"|allergic|vegetarian|vegan|learning|studying|building|planning)",
        r"\bmy (?:\w+ ){1,2}(?:is|are|was|has|lives|works)\b",
    ),
    change=_any(
        r"\b(?:no longer|any ?more|not .{1,30} any ?more|moved (?:from|to|the)|(?:went|goes|go"
        r"|up|down|over|raised|grew|fell|bumped) from \S+(?: \w+)? to"
        r"|switch\w* (?:to|from|over)|after all|pushed (?:back|to)|postponed|moved up"
        r"|rescheduled|changed|changes|change of|now|left|quit|stopped|broke up|cancel\w+"
        r"|actually|correction|scratch that|forget (?:that|what)|i was wrong|meant|not the"
        r"|dropp\w+|replac\w+|retir\w+|resign\w+|sold|gave up|slipped"
        r"|as of|no more|down to|swapped|upgraded|(?:fine|ok|okay|back|allowed|possible) again"
        r"|these days"
        r"|instead(?! of)|any longer|(?:works|is) better|(?:my|our|the) new \w+ (?:is|are)"
        r"|new address|new number"
        r"|delayed|brought forward|is back|used to|(?:we're|i'm|we are|i am) off (?-i:[A-Z])\w+)\b",
        r",? (?:and )?not (?:on |in |at )?(?:the )?(?:\d|(?-i:[A-Z]))",
    ),
    restating=_any(
        r"\b(?:like i (?:said|told)|as i (?:said|told|mentioned)|as (?:mentioned|before)|i"
        r" (?:already"
        r" )?(?:said|told you|mentioned)|to repeat|once (?:more|again)|same as before)\b",
        r"\breally (?:can't|does|do|hate)",
    ),
    shared=_any(
        r"\b(?:we|we're|we've|we'll|our|ours|us|let's|project|repo(?:sitory)?|codebase|code|team"
        r"|branch|main|push|merge|npm|pnpm|yarn|release|deploy\w*|server|database|api|service|build"
        r"|tests?|commit\w*|frontend|backend|module|schema|endpoint|pipeline|ci|app|crate|package"
        r"|version|ticket|docker|prod(?:uction)?|staging|config|folder|files?|queries|query|sql"
        r"|cache|library|dependenc\w+|bug|feature|customers?|users?|plugin|tool|script|model)\b",
        r"[\w-]+/(?:\s|$)|\w\.\w{1,4}\b|`",
    ),
    alone=_any(r"\b(?:i|i'm|im|i've|i'd|i'll|my|mine|me|myself)\b"),
    accepting=_any(
        r"^(?:yes|yeah|yep|yup|aye|ya|alright|all right|by all means|absolutely|definitely"
        r"|correct|right|exactly|agreed|sounds good|perfect|that's (?:right|correct|fine|it)"
        r"|go (?:ahead|for it|with (?:that|it))|let's do (?:that|it)"
        r"|ok(?:ay)?[,.]? (?:do it|go|let's|sounds)|(?:please )?do (?:it|that|so)\b"
        r"|approved|confirmed|deal|works for me|fine(?! (?:print|line))"
        r"|(?:ok|okay|fine) (?:for|with) me|i'm in|make it so|go on(?: then)?"
        r"|(?:good|great) (?:idea|plan|call)|i agree|fine by me|we take it|\+1|sure|please)"
        r"(?!\w)",
    ),
    proposal=_any(
        r"\b(?:i(?:'d| would| can| could|'ll)(?: \w+)? (?:suggest|recommend|propose|treat|use|keep"
        r"|go|put|move|switch|make|take|store|split|get|add|rather|drop|set|name|call|limit|start"
        r"|replace|turn)|i (?:suggest|recommend|propose)|we (?:could|should|decided)|i'd say"
        r"|each of us|let's|how about|what about|why not|my (?:suggestion|recommendation|proposal)"
        r"|better to|would be (?:better|best)|should be|i know a|decided|then the|they'd"
        r"|instead of|use .+ instead|want me to remind|remind you"
        r"|should (?!i\b|we\b|you\b|they\b)\w+|would (?:do|settle|fix|solve|help|work)"
        r"|makes? it)\b",
    ),
    offer=_any(
        r"^(?:shall|should|can|could|may|do you want|would you like|want) .*\?$",
        r"\b(?:let me know|if you (?:like|want)|anything else|happy to|what's up|how can i"
        r"|what (?:can|shall|should) (?:i|we)|what would you like|where (?:do|shall|should)"
        r" (?:you|we)"
        r"|start with|work on)\b",
    ),
    finding=_any(
        r"\b(?:comes? from|found it|(?:crash|error|bug|problem|failure|leak|slowdown|cause|issue"
        r"|root"
        r" cause)\w* (?:comes?"
        r" from|is caused|was caused|is that|was that|is in|is a)|turned out|the cause|root cause"
        r"|caused by|because|lost its|the reason|stems from|due to|no longer (?:exists?|has|works?)"
        r"|(?:is|was|were|are) (?:missing|dropped|removed|renamed|never \w+ed)"
        r"|leaves? .{1,40} (?:empty|open)"
        r"|never (?:closed|released|called|freed)|overflows?|race condition|deadlocks?)\b",
    ),
    shortest=3,
)
