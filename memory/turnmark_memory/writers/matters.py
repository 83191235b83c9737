"""What groups come together for: clubs, events, trips, homes, play, in both languages.

A conversation that holds such a word is about it sooner than about any other: people speak of tents
and tickets because there is a camp and a concert. Each line is one matter: the words that name it,
then those that go with it and name nothing. `~` is before a word that means many other things: it
counts behind an article only. A line that is set in goes on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import msgspec

_ENGLISH = """
wedding bride groom bridesmaid engagement | guest rsvp vow caterer florist seating toast venue
birthday bday | cake balloon surprise candle present
barbecue bbq picnic potluck cookout | grill burger salad charcoal sausage
~party housewarming hen-do stag-do | drinks playlist balloon guest
funeral memorial | hymn eulogy flower coffin
reunion anniversary | classmate hotel guest venue
~trip ~holiday ~vacation getaway roadtrip cruise safari | flight hotel hostel airport itinerary
    passport ferry luggage airbnb cottage villa gîte visa ticket
camping campsite campout | tent stove sleeping firewood pitch
hike hiking trek trekking ramble | trail summit boot map hut
climbing climb climber crag boulder bouldering | rope grade harness chalk belay route wall
skiing ski snowboarding | slope lift chalet
cycling cyclist peloton bike bicycle | km puncture tyre chain helmet saddle mile ride
marathon half-marathon triathlon parkrun runner | pace km mile bib race injury shoe
choir chorus | carol rehearsal soprano alto tenor bass conductor programme concert piano
concert gig recital | carol rehearsal venue ticket programme brass quartet hall stage soundcheck
band | rehearsal drummer guitarist bassist setlist amp gig
orchestra ensemble quartet | rehearsal conductor violin cello score concert
theatre theater musical panto pantomime ~play ~production | rehearsal script cast costume stage
    line audition director
dancing ceilidh ~dance | step teacher studio shoe
book-club bookclub | book chapter novel author reading
film documentary | shoot camera script edit screening
podcast newsletter zine magazine | episode guest recording edition
allotment | plot shed bed seed compost tomato bean hose committee rent
garden gardening orchard | plant seed compost bed hedge tomato lawn
~fair fete fête carnival festival jumble bazaar market | stall gazebo council raffle volunteer
    stallholder
parade procession | float route banner
pta ~school preschool kindergarten nursery playgroup daycare | teacher parent pupil uniform term
    homework pickup
~class ~course seminar workshop | homework teacher slide exam lesson assignment
football soccer | pitch match kit coach captain fixture training league goalkeeper
basketball netball volleyball hockey | court match kit coach captain fixture training league
cricket baseball softball rugby | pitch match kit coach captain fixture training league
tennis badminton squash padel | court racket match booking
swimming | pool lane lesson goggles
rowing | crew boat cox oar regatta boathouse
sailing regatta ~boat | crew mooring sail skipper engine
golf bowling darts snooker | tee score handicap
chess | board opening match rating
~team squad ~league ~tournament championship | match fixture training captain coach
boardgame dnd d&d dungeons | dice character dungeon session dm
quiz | round team question
yoga pilates | mat studio class instructor
knitting quilting sewing crochet | yarn needle pattern fabric
pottery ceramics | kiln clay glaze
photography | camera lens shoot exhibition
birding birdwatching | bird hide binoculars
beekeeping bee | hive honey queen
baking | oven flour cake
renovation refurbishment refurb loft-conversion | builder plumber electrician tile paint permit
    architect quote
~kitchen | cabinet counter oven fitter tile
~flat flatshare ~apartment ~household ~house | rent landlord bin cleaning rota utility wifi
    deposit heating flatmate housemate
~building ~block residents hoa tenants | lift elevator landlord management parking boiler roof
    bin
neighbourhood neighborhood ~street | council parking traffic bin neighbour
fundraiser charity foodbank ~pantry soup-kitchen | donation volunteer shift rota
shelter | cat dog foster vet adoption kennel
carpool carpooling rideshare | pickup petrol seat driver
conference hackathon meetup retreat offsite symposium | talk speaker venue sponsor attendee
exhibition | gallery opening frame painting
~café ~cafe ~restaurant ~bakery | customer supplier menu rent opening
bookshop ~shop ~store | customer supplier stock till rent
startup | investor launch customer pitch
thesis dissertation ~paper | experiment dataset reviewer supervisor draft submission
~lab makerspace | experiment equipment machine printer
relocation ~move | box van mover packing
petition strike protest election | leaflet councillor signature march
parish congregation ~church mosque synagogue temple | vicar hymn service priest
scouts guides troop | badge camp leader
association ~society | minutes treasurer chair member vote agm committee
club | member membership treasurer committee fee
~cabin ~cottage | key cleaning booking guest
reading-group | book chapter
guild ~raid | boss loot dps healer
~gift | chip collect present
"""

_CHINESE = """
年夜饭 除夕 春节 过年 | 饭店 定金 初一 初二 初三 红包 拜年 年货 车票
读书会 书友会 读书 共读 | 本书 书店 作者 讨论
跑团 夜跑团 夜跑 晨跑 跑步 | 公里 配速 慢跑 集合 热身
马拉松 半马 全马 | 公里 配速 报名 完赛
骑行 骑车 骑 | 公里 爬升 爬坡 内胎 链条 头盔 车店
爬山 登山 徒步 | 路线 山顶 登山杖 集合 下山
露营 野营 | 帐篷 天幕 烧烤 睡袋 营地 炉子
旅行 旅游 出游 毕业旅行 自驾游 自驾 | 机票 酒店 民宿 高铁 行程 签证 攻略 租车
团建 | 人均 报名 预算 场地 大巴
婚礼 婚宴 婚纱 | 伴娘 伴郎 喜糖 司仪 请柬 酒店
生日 生日会 寿宴 大寿 | 蛋糕 礼物 蜡烛 寿桃
满月酒 百日宴 | 红包 宝宝
聚会 聚餐 饭局 同学会 同学聚会 | 人均 包间 餐厅 订位 AA
话剧社 剧社 话剧 舞台剧 音乐剧 | 首演 大戏 排练 角色 服装 道具 灯光 布景 剧本 剧场 台词
合唱团 合唱 | 排练 声部 高音 低音 指挥 曲目 谱子 伴奏
乐队 乐团 | 排练 鼓手 吉他 贝斯 演出
演出 音乐会 晚会 年会 | 排练 节目 彩排 主持 舞台
广场舞 舞蹈 舞队 | 音响 动作 队形 服装
摄影 摄影社 | 相机 镜头 外拍 片子
书法 国画 画画 画展 | 展览 老师
装修 | 物业 押金 瓷砖 水电 开槽 木工 施工 验收 刷墙 地板 清运 橱柜 吊顶 防水 师傅 工长
业主 业委会 | 小区 楼道 物业 物业费 停车 车位 门禁 噪音 维修 加装 电费
加装电梯 | 电梯 物业 维修 分摊 楼层
合租 租房 室友 宿舍 寝室 | 房租 水电费 房东 打扫 值日 押金
搬家 | 纸箱 货拉拉 房东 新家
家长 家委会 家长会 | 班级 老师 班费 校服 作业 接送
春游 秋游 研学 夏令营 | 报名 大巴 老师 午餐
幼儿园 | 老师 接送
羽毛球 | 场地 球馆 球拍 订场 双打
篮球 | 场地 球场 球衣 投篮 队长
足球 | 场地 球场 球衣 守门员 队长
网球 乒乓球 排球 台球 飞盘 | 场地 球馆 球拍 教练
球队 联赛 球赛 | 场地 球衣 队长 训练 教练
游泳 潜水 冲浪 滑雪 攀岩 | 教练 装备 雪场 门票
瑜伽 太极 | 老师 垫子
龙舟 龙舟赛 | 训练 鼓手 队员
拼车 顺风车 | 上车 司机 路线 油费 座位
团购 拼单 拼团 | 链接 到货 自提
市集 集市 庙会 摆摊 | 摊位 摊主 租金 城管
义卖 募捐 志愿者 志愿 支教 | 物资 报名 值班
流浪猫 流浪狗 救助 领养 | 绝育 猫粮 笼子 医院
养猫 养狗 | 猫粮 狗粮 绝育 疫苗
菜园 菜地 花园 农场 果园 | 浇水 翻地 收成
桌游 剧本杀 | 角色 人齐 主持
麻将 | 三缺一 打牌
钓鱼 | 鱼竿 钓位 鱼塘
考研 考公 备考 | 真题 复习 模考 上岸
课题组 课题 论文 组会 实验室 | 实验 数据 导师 投稿 审稿 样品
播客 公众号 | 录音 嘉宾 选题 剪辑 推送
展览 展会 | 展位 布展 物料
开店 | 店面 房租 进货 菜单 客人 咖啡馆 面馆 餐厅
祭祖 扫墓 家谱 | 老家 族人
漂流 | 门票 救生衣
校庆 毕业典礼 | 校友 班长
校友会 协会 社团 俱乐部 | 会费 会员 报名
工作坊 沙龙 训练营 | 报名 讲师 场地
居委会 | 社区 街道 登记 志愿者
"""

_WORD = re.compile(r"[a-zà-ÿ]+(?:[&-][a-zà-ÿ]+)*")
_ARTICLE = re.compile(r"\b(?:the|our|this|an?|next|your|another)((?: [a-zà-ÿ-]+){1,3})\b")
# What is somebody's own is not the group's: "my daughter has her orchestra thing".
_OWN = re.compile(
    r"\b(?:my|his|her|their|(?!it|that|what|let|who|there|here|where|how)[a-z]+['’]s)"
    r"((?: [a-zà-ÿ-]+){1,2})\b"
)
_DOUBTFUL = "~"
# Whoever wishes a happy birthday plans none.
_GREETING = re.compile(
    r"\b[Hh]appy [A-Za-z]+|(?:生日|新年|新春|春节|过年|节日|中秋|端午)(?:快乐|好|愉快)"
)


class Held(msgspec.Struct, frozen=True):
    """A word of a text that names a matter, or only goes with it."""

    matter: str
    word: str
    names: bool


def held_in(text: str, *, chinese: bool, own: bool = False) -> list[Held]:
    """Returns the matters that a text names or touches, in its order; each once for a word.

    What is somebody's own ("her orchestra") is left out unless `own` is said.
    """
    said = _GREETING.sub(" ", text)
    words = _han_words(said) if chinese else _words(said, own=own)
    known = _known(chinese=chinese)
    return list(dict.fromkeys(one for word in words for one in known.get(word, ())))


def words_of(name: str, *, chinese: bool) -> frozenset[str]:
    """Returns all words of the matters that a name names, and those of the name itself."""
    known = _known(chinese=chinese)
    marked = name if chinese else f"the {name}"
    matters = {one.matter for one in held_in(marked, chinese=chinese) if one.names}
    words = {one.word for helds in known.values() for one in helds if one.matter in matters}
    return frozenset(words | ({name} if chinese else set(map(singular, name.split()))))


@cache
def _known(*, chinese: bool) -> dict[str, tuple[Held, ...]]:
    """Returns what each word says; a doubtful one stands under its mark."""
    found: defaultdict[str, list[Held]] = defaultdict(list)
    table = _CHINESE if chinese else _ENGLISH
    for line in table.strip().replace("\n    ", " ").splitlines():
        names, _, others = line.partition(" | ")
        matter = names.split()[0].removeprefix(_DOUBTFUL)
        for word in names.split():
            found[word].append(Held(matter, word.removeprefix(_DOUBTFUL), names=True))
        for word in others.split():
            found[word].append(Held(matter, word, names=False))
    return {word: tuple(helds) for word, helds in found.items()}


@cache
def _longest() -> dict[str, tuple[str, ...]]:
    """Returns the Chinese words by the sign that they begin with, the longest first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for word in _known(chinese=True):
        found[word[0]].append(word)
    return {sign: tuple(sorted(words, key=len, reverse=True)) for sign, words in found.items()}


def _han_words(text: str) -> Iterator[str]:
    first, at = _longest(), 0
    while at < len(text):
        word = next((one for one in first.get(text[at], ()) if text.startswith(one, at)), "")
        if word:
            yield word
        at += len(word) or 1


def _words(text: str, *, own: bool) -> Iterator[str]:
    folded = text.casefold()
    known = _known(chinese=False)
    phrases = () if own else _OWN.findall(folded)
    left_out = {singular(word) for phrase in phrases for word in phrase.split()}
    words = _WORD.findall(folded)
    for at, word in enumerate(words):
        both = f"{word}-{singular(words[at + 1])}" if at + 1 < len(words) else word
        form = next((one for one in (both, word, singular(word)) if one in known), None)
        if form is not None and form not in left_out:
            yield form
    for phrase in _ARTICLE.findall(folded):
        yield from (f"{_DOUBTFUL}{singular(word)}" for word in phrase.split())


def singular(word: str) -> str:
    """Returns an English noun without the ending of its plural; other words may lose an s, too."""
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 -- "ties", "pies"
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "xes")):
        return word[:-2]
    return word.removesuffix("s")
