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

_TRANSLATIONS: Final = """
    backend 后端; frontend 前端; service 服务; server 服务; database 数据; data 数据; code 代码;
    test 测试; deploy 部署; release 发布; version 版本; project 项目; team 团队; meeting 会议;
    customer 客户; user 用户; order 订单; payment 支付; invoice 发票; budget 预算; price 价格;
    cost 费用; salary 工资; company 公司; office 办公; boss 老板; colleague 同事; manager 经理;
    job 工作; work 工作; interview 面试; school 学校; university 大学; teacher 老师; student 学生;
    class 课程; exam 考试; homework 作业; book 书籍; movie 电影; music 音乐; song 歌曲; game 游戏;
    sport 运动; football 足球; basketball 篮球; swim 游泳; run 跑步; hike 爬山; travel 旅行;
    trip 旅行; flight 航班; airport 机场; train 火车; station 车站; hotel 酒店; ticket 车票;
    car 汽车; bike 单车; bicycle 单车; home 家里; house 房子; apartment 公寓; kitchen 厨房;
    garden 花园; city 城市; country 国家; hospital 医院; doctor 医生; medicine 药物;
    allergy 过敏; allergic 过敏; birthday 生日; wedding 婚礼; holiday 假期; vacation 假期;
    family 家人; mother 妈妈; father 爸爸; parent 父母; child 孩子; son 儿子; daughter 女儿;
    brother 哥哥 弟弟; sister 姐姐 妹妹; wife 妻子 老婆; husband 丈夫 老公; friend 朋友;
    dog 小狗; cat 小猫; food 食物; dinner 晚饭; lunch 午饭; breakfast 早饭; coffee 咖啡; tea 喝茶;
    restaurant 餐厅 饭店; vegetarian 吃素 素食; phone 手机 电话; computer 电脑; password 密码;
    email 邮箱 邮件; network 网络; log 日志; error 错误 报错; bug 错误; failure 故障; outage 故障;
    alert 告警 报警; cache 缓存; queue 队列; branch 分支; commit 提交; merge 合并; review 评审;
    file 文件; folder 目录; directory 目录; configuration 配置; port 端口; interface 接口;
    framework 框架; library 框架; language 语言; model 模型; certificate 证书; backup 备份;
    schedule 计划; plan 计划; deadline 截止; monday 周一; tuesday 周二; wednesday 周三;
    thursday 周四; friday 周五; saturday 周六; sunday 周日; weekend 周末; tomorrow 明天;
    morning 早上 上午; evening 晚上; move 搬到; live 住在; buy 买了; like 喜欢; hate 讨厌;
    learn 学习; name 名字; color 颜色; colour 颜色; rent 房租; contract 合同; weather 天气
"""


def _groups(table: str) -> list[list[str]]:
    return [group.split() for group in table.split(";")]


BASE_FORMS: Final = {form: base for base, *forms in _groups(_IRREGULAR) for form in forms}
"""The plain form of each irregular one. Left out are those that are words of their own as often
(*rose*, *ground*, *lives*)."""

STAND_INS: Final = {word: tuple(others) for word, *others in _groups(_STAND_INS)}
"""What else the answer may say where a question says this: one way only, from the question's word
to the answer's, general and from everyday speech."""

TRANSLATIONS: Final = {word: tuple(others) for word, *others in _groups(_TRANSLATIONS)}
"""The pairs of characters by which Chinese says an English word, for questions both ways."""
