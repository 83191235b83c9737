"""English words whose forms no rule derives, and everyday words that stand in for one another.

A question asks *what did she buy* and the turn says *bought*; one asks for the *mother*, the other
says *mom*, or 妈妈. Without the tables they share nothing.
"""

from __future__ import annotations

from typing import Final

_IRREGULAR: Final = """
    arise arose arisen; awake awoke awoken; become became; begin began begun; bend bent;
    bind bound; bite bitten; blow blew blown; break broke broken; breed bred; bring brought;
    build built; burn burnt; buy bought; catch caught; child children; choose chose chosen;
    cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt;
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt;
    fight fought; find found; flee fled; fly flew flown; foot feet; forbid forbade forbidden;
    forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
    give gave given; go went gone; goose geese; grow grew grown; hang hung; hear heard;
    hide hid hidden; hold held; keep kept; knife knives; know knew known; lead led; leap leapt;
    learn learnt; leave left; lend lent; light lit; lose lost; make made; man men; mean meant;
    meet met; mouse mice; pay paid; person people; ride rode ridden; ring rang rung; run ran;
    say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken; shelf shelves;
    shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk;
    sit sat; sleep slept; slide slid; speak spoke spoken; spend spent; spin spun; stand stood;
    steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn; sweep swept;
    swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told;
    think thought; thief thieves; throw threw thrown; tooth teeth; understand understood;
    wake woke woken; wear wore worn; weep wept; wife wives; win won; wolf wolves; woman women;
    write wrote written
"""

_STAND_INS: Final = """
    kid child son daughter; mom mother mum; dad father; mother mom mum; father dad;
    parent mom dad mother father; sibling brother sister; spouse husband wife partner;
    husband wife married; wife husband married; relationship dating boyfriend girlfriend single;
    grandmother grandma; grandfather grandpa; friend buddy; family kids parents;
    job work career position; career job profession; occupation job work; profession job career;
    work job office; employer company job; boss manager; colleague coworker teammate;
    trip travel vacation visit journey; travel trip visit vacation; vacation trip travel holiday;
    holiday vacation trip; visit trip travel; movie film; film movie; photo picture image;
    picture photo image; song music; music song band; musician band singer; concert show gig;
    instrument guitar piano violin drums; buy purchase; purchase buy; get buy receive;
    start begin launch; begin start; end finish; finish complete end; big large huge; large big;
    small little tiny; doctor physician hospital; car vehicle drive; vehicle car truck;
    bike bicycle; bicycle bike; phone mobile; house home; home house; apartment flat place;
    city town; cost price pay dollars; price cost; money cash dollars; pet dog cat puppy kitten;
    animal dog cat; sport soccer football basketball tennis swimming; game play;
    hobby enjoy passion; interest love passion; book novel read; novel book;
    author writer wrote; art painting drawing; paint painting art; meal dish dinner lunch cook;
    food dish meal cook; dish recipe meal; recipe cook bake; wedding marry; marry wedding;
    attend join; participate join attend; join sign; receive got; live move; color colour;
    colour color; favorite favourite love; enjoy love like fun; like love enjoy; dislike hate;
    happy glad excited; sad upset; afraid scared; fear scared afraid; injury hurt injured;
    sick ill; disease illness; exercise workout gym run; fitness workout gym; relax unwind calm;
    stress overwhelmed pressure; destress relax unwind calm; plan going; goal aim dream want;
    dream goal; advice tip suggest; suggest recommend advice; recommend suggest; help support;
    support help; charity volunteer donate; volunteer charity; gift present gave; present gift;
    store shop; shop store; business company shop; company business; school college university;
    university college; degree study major; study degree course; class course workshop;
    course class; teach class lesson; student pupil; country nation; beach ocean sea;
    nature hike forest outdoors; camp camping tent; hike trail mountain; prize award won;
    award prize won; win won award; competition contest tournament; contest competition;
    tournament competition; event meeting party; party celebrate birthday; celebrate party;
    birth born baby; baby born; die passed death; death passed died; decide choose settled;
    choose pick decided settled; pick choose decided; select choose pick; change switch move;
    switch change; fix repair; repair fix; bug error issue; error bug; problem issue trouble;
    issue problem; reason because; cause because; delete remove; remove delete drop;
    forbid never; allow may; deadline due until; due deadline; language speak; name call;
    old age; age old; responsible owns charge; owner owns charge; manage runs lead; lead runs;
    difficult hard tough; hard difficult; quick fast; fast quick; test check;
    create make build; build make; make create build
"""


def _groups(table: str) -> list[list[str]]:
    return [group.split() for group in table.split(";")]


BASE_FORMS: Final = {form: base for base, *forms in _groups(_IRREGULAR) for form in forms}
"""The plain form of each irregular one. Left out are those that are words of their own as often
(*rose*, *ground*, *lives*)."""

STAND_INS: Final = {word: tuple(others) for word, *others in _groups(_STAND_INS)}
"""What else the answer may say where a question says this: one way only, from the question's word
to the answer's, general and from everyday speech."""
