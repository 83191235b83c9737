"""Whether a question asks of the world at large: what any book of reference knows.

*What is the capital of France?* and *宫保鸡丁怎么做？* are asked of a memory by mistake, or by a
program that asks it everything. A word that they share with some turn says little. It is a sign,
no proof: what somebody did say of France is found all the same, as it has the whole question.
How to make a cake is of the world, how to deploy to staging of this memory.

Told from how it is put, in English and Chinese and the commonest ways of Japanese and Korean. A
question of something definite (*my*, *her*, *that*, *the server*) is one of this memory.
"""

from __future__ import annotations

import re

_LONGEST_CHARS = 300
"""Longer ones tell of what they ask about."""

_ENGLISH = re.compile(
    r"""\b(?:
    how\ (?:
        (?:to|(?:do|can|should|would)\ (?:i|you|one))\b[^,;?]*\ an?\b | (?:do|to)\ (?:you\ )?say\b
        | (?:do|can|should)\ (?:i|you|one)\ (?:cook|bake|boil|fry|roast|poach|peel|fold|knit|sew
            |sharpen|spell|pronounce|convert|calculate|sort|reverse|quit|exit)\b
        | (?:do|does)\ (?:an?\ )?\w+\ work\?*$
        | (?:tall|high|deep|long|far|big|large|old|hot|fast)\ is\ (?:an?|mount|mt|lake|light|sound
            |the\ (?:river|moon|sun|earth|universe))\b
        | (?:many|much)\ \w+\ (?:(?:are|is)\ (?:there\ )?)?in\ (?:an?|the\ (?:human|world|solar))\b
        | (?:many|much)\ (?:\w+\ )?\w+\ (?:do|does)\ an?\b
        | many\ (?:feet|inches|miles|metres|meters|grams|ounces|pounds|cups|litres|liters|seconds)\b
        | (?:long|fast)\ (?:do|does|should|can)\ (?:i\ |you\ |it\ take\ to\ )?(?:an?\b|boil|cook
        |bake)
    )
    | wh(?:at|ich)(?:
        (?:\ is|\ are|'s)\ an?\b | \ does\ the\ word\b
        | \ (?:planet|river|element|ocean|continent|organ|vitamin|empire|emperor|gas|metal|mammal)\b
        | \ (?:country|language|currency)\ (?:is|has|do|does|borders|won|uses)\b
        | \ temperature\ do(?:es)?\b
    )
    | who\ (?:wrote|painted|invented|discovered|composed|founded|directed|sculpted|was\ the\ first
        |(?:is|was)\ the\ (?:\w+\ )?(?:president|king|queen|emperor|prime\ minister|author|god))\b
    | when\ (?:was|were|did)\ [\w\ ]+\ (?:invented|discovered|born|published|signed|abolished
        |sink|die|fall|become\ independent)\b
    | won\ the\ (?:\w+\ ){0,3}(?:world\ cup|super\ bowl|nobel|championship|election|war)\b
    | the\ (?:
        (?:capital|population|currency|plot|author|recipe|formula|composer|inventor|gdp|symptoms
            |square\ root|time\ complexity|(?:chemical\ |atomic\ )?(?:symbol|number|mass)|causes
            |distance|half-life|density|diameter|(?:official|national|main)\ \w+)\ (?:of|for|from)\b
        | difference\ between\b | (?:boiling|melting|freezing)\ point\b
        | (?:meaning|definition|synonym|opposite|plural|past\ tense)\ of\b
        | speed\ of\ (?:light|sound)\b
        | \w+est\ (?:\w+\ )?(?:in\ the\ world|on\ earth|country|planet|river|mountain|lake|ocean
            |animal|desert|continent|mammal|bird|island|metal|element)\b
    )
    | in\ (?:french|german|spanish|italian|portuguese|japanese|chinese|latin|english)\?*$
    | (?:stand\ for|mean)\?*$ | spoken\ in\b
    )""",
    re.VERBOSE,
)
_DEFINITE = re.compile(
    r"\b(?:(?i:my|mine|ours?|we|us|me|he|she|they|his|hers?|him|them|theirs?|this|that|these"
    r"|those)\b"
    r"|the (?!most\b|least\b|first\b|last\b|world\b|\w+est\b)[a-z])"
    r"|(?<!(?i:what))(?<!(?i:who))(?<!(?i:where))['\u2019]s\b"
)
"""Something of somebody's, or known already; *the Mona Lisa* is known to all."""

_CHINESE = re.compile(
    r"""
    ^(?:请问|請問)?(?:怎[么麼]|怎[样樣]|如何)(?![样樣])
    | [\u4e00-\u9fff]{2,6}怎[么麼](?:做|腌|醃|挑|炒|煮|蒸|炖|燉|烤|泡|写|寫|画|畫|折|读|讀
        |念)[？?]*$
    | 怎[么麼](?:洗掉|去除|去掉|计算|計算|换算|換算|转换|轉換|反转|反轉|居中)
    | (?:煮|蒸|烤|焯|炖|燉).{0,3}(?:多久|多长时间|多長時間|几分钟|幾分鐘)
    | 什[么麼]是 | [是有]什[么麼](?:意思|区别|區別|不同|原理|作用) | [等][于於]多少 | 换算 | 換算
    | 的(?:首都|首府|人口|面积|面積|货币|貨幣|国歌|國歌|国花|國花|官方语言|官方語言|原理|定义|定義
        |含义|含義|区别|區別|公式|沸点|沸點|熔点|熔點|密度|直径|直徑|半径|半徑|作者|导演|導演
        |元素符号|元素符號|化学式|化學式|(?:时间|空间|時間|空間)[复複][杂雜]度|做法|症状|症狀|功效|全称|全稱|近义词
        |反义词|拼音)
    | 有多少人口 | [光音]速 | [珠乔]\w*峰有多高 | 全[长長] | 多少(?:卡路里|[块塊]骨头)
    | [谁誰](?:写|寫|画|畫|发明|發明|发现|發現|作|创作|創作|执导|執導)的 | 第一[个個位](?:登|发明
        |发现|进入)
    | (?:世界|全球|地球|太阳系|太陽系|亚洲|亞洲|欧洲|歐洲|非洲|美洲|中国|中國)上?[最第]
        | 人[体體]\w*多少
    | 最[大小高长長深快重](?:的)?(?:国家|國家|行星|河流?|湖泊?|山峰?|沙漠|海洋|岛屿?|島嶼?|动物
        |動物|哺乳|城市)
    | 哪[个個一](?:国家|國家|行星|大洲|大洋|元素|朝代) | 哪[种種](?:元素|维生素|維生素|气体|氣體
        |金属|金屬)
    | (?:[英法日德俄韩韓]|西班牙|意大利|拉丁)[语語文]怎[么麼]
    | (?:哪一?年|什[么麼][时時]候)(?:灭亡|滅亡|建立|成立|统一|統一|爆发|爆發|沉没|沉沒|发明|發明
        |诞生|誕生|登月|去世|建国|建國)
    | 世界杯 | 世界盃 | 奥运会 | 奧運會 | 诺贝尔 | 諾貝爾
    | とは(?:何|なに|なん) | の(?:首都|人口|意味|作り方|レシピ|作者|公式)
    | (?:수도|인구|뜻|만드는\ 법|레시피)(?:는|은|이|가|를|을)
    """,
    re.VERBOSE,
)
_OF_SOMEBODY = re.compile(
    "[我咱俺你您他她它那私僕]|[这這](?![个個]?[词詞字成单單句])"
    "|打算|准备|準備|应该|應該|上次|当时|當時|以后|以後"
)


def is_at_large(question: str) -> bool:
    """Tells whether a question asks what any book of reference knows; costs 10 to 40 us."""
    text = question.strip()
    if len(text) > _LONGEST_CHARS:
        return False
    if not text.isascii() and _CHINESE.search(text):
        return _OF_SOMEBODY.search(text) is None
    found = _ENGLISH.search(text.lower())
    if found is None:
        return False
    return not any(map(_DEFINITE.search, (text[: found.start()], text[found.end() :])))
