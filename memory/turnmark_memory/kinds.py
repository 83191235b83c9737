"""What counts as one of a kind: the answer to *which pet* says dog, and never the word pet.

Everyday kinds with their usual members, English and Chinese: general knowledge, taken from no set
that is measured with. A question names the kind, a turn one of its members. They help to order
what was found by other words, and are not looked for themselves: that would find half a memory.
"""

from __future__ import annotations

from typing import Final

_KINDS: Final = """
    activity activities hobby hobbies pastime recreation outdoor 活动 爱好: hike camp swim run paint
    pottery yoga dance climb fish garden cook bake read ski surf cycle guitar piano chess
    photography volunteer museum beach 爬山 徒步 露营 游泳 跑步 画画 瑜伽 跳舞 钓鱼 做饭 滑雪 骑车
    唱歌 下棋 摄影;

    event events gathering occasion 聚会: parade festival concert conference fair show race workshop
    meeting wedding party ceremony fundraiser exhibit exhibition gala tournament competition rally
    talk speech reunion convention performance auction marathon picnic retreat 演唱 展览 婚礼 派对
    年会 比赛 讲座 会议;

    exercise exercises workout fitness sport sports 运动 锻炼 健身: run jog yoga gym weights swim
    bike cycle hike boxing kickboxing pilates dance soccer football basketball tennis volleyball
    baseball hockey golf climb ski surf karate skate row marathon 跑步 瑜伽 游泳 骑车 篮球 足球 网球
    羽毛 乒乓 爬山 滑雪 太极 拳击;

    pet pets animal animals 宠物 动物: dog cat puppy kitten hamster fish bird rabbit turtle parrot
    horse snake lizard pup cow chicken duck 小狗 小猫 金鱼 兔子 仓鼠 乌龟 鹦鹉 狗狗 猫咪 狗 猫;

    food foods dish dishes meal meals snack snacks dessert desserts recipe recipes cuisine 食物 点心
    甜点 美食: cake cookie pie bread pasta pizza soup salad chocolate cream chicken beef rice noodle
    curry taco sushi sandwich burger cheese fruit vegetable steak stew muffin brownie pancake tofu
    dumpling 蛋糕 饼干 面包 面条 饺子 米饭 火锅 牛肉 鸡肉 豆腐 沙拉 巧克 包子;

    nut nuts 坚果: hazelnut peanut almond walnut cashew pistachio 花生 核桃 杏仁 榛子 腰果;

    fruit fruits 水果: apple pear banana orange grape peach mango cherry strawberry lemon melon 苹果
    香蕉 橙子 葡萄 芒果 草莓 西瓜 樱桃;

    vegetable vegetables 蔬菜: carrot onion cabbage potato tomato spinach cucumber broccoli lettuce
    白菜 土豆 番茄 菠菜 黄瓜 萝卜;

    meat 肉类: beef pork lamb chicken ham bacon turkey 牛肉 猪肉 羊肉 鸡肉;

    furniture 家具: table chair sofa wardrobe desk shelf bed drawer 桌子 椅子 沙发 柜子 书架;

    database databases 数据: postgres postgresql mysql sqlite redis mongo oracle;

    browser browsers 浏览: chrome firefox safari edge;

    drink drinks beverage beverages 饮料: coffee tea water juice wine beer milk soda smoothie
    cocktail lemonade 咖啡 绿茶 红茶 果汁 啤酒 牛奶 豆浆;

    instrument instruments 乐器: guitar piano violin drum flute clarinet cello ukulele saxophone
    trumpet harp keyboard bass harmonica 吉他 钢琴 小提 古筝 二胡 笛子;

    art artwork artworks craft crafts 艺术 手工: paint draw pottery sculpture sketch photography
    watercolor mural clay canvas portrait poem ceramic knit 画画 油画 水彩 素描 陶艺 雕塑 书法 摄影;

    color colors colour colours 颜色: red blue green yellow orange purple pink black white brown
    grey gray gold silver beige turquoise 红色 蓝色 绿色 黄色 橙色 紫色 粉色 黑色 白色
    灰色 棕色 金色;

    gift gifts present presents item items souvenir souvenirs buy purchase 礼物: necklace ring book
    shoes dress watch bracelet flowers card shirt jacket hat toy doll mug figurine lamp bag camera
    phone laptop console scarf painting bowl 项链 戒指 手表 鞋子 裙子 围巾 相机 手机 鲜花 玩具;

    clothes clothing outfit wear 衣服: dress shirt shoes jacket hat coat scarf jeans skirt suit
    sweater boots sneakers hoodie 裙子 衬衫 鞋子 外套 帽子 大衣 围巾 牛仔 西装 毛衣;

    feel feeling feelings emotion emotions reaction react mood 感觉 心情 感受: happy sad excited
    nervous proud grateful thankful relieved scared anxious angry upset overwhelmed glad thrilled
    blessed frustrated disappointed inspired calm lonely stressed 开心 难过 激动 紧张 骄傲 感激 害怕
    焦虑 生气 失望 放松;

    job jobs career careers occupation profession 工作 职业: teacher nurse engineer lawyer doctor
    counselor manager designer developer chef writer artist consultant analyst accountant banker
    scientist driver programmer therapist business startup 老师 护士 工程 律师 医生 经理 设计 程序
    厨师 会计 记者;

    book books novel novels: novel author biography fantasy series mystery trilogy memoir fiction
    chapter 小说 作者 传记 科幻;

    music song songs band bands 音乐 歌曲: rock jazz pop classical rap country folk metal album
    singer concert playlist 摇滚 爵士 古典 民谣 流行 专辑 歌手;

    game games 游戏: chess card board console puzzle poker 象棋 围棋 桌游 麻将 扑克;

    language languages 语言: english spanish french german chinese mandarin japanese korean italian
    portuguese russian arabic python java javascript typescript rust kotlin swift 英语 法语 德语
    汉语 日语 韩语 俄语 粤语 西班;

    illness disease condition allergy allergies allergic sick injury 过敏 身体: flu cold fever
    cancer diabetes asthma migraine headache pain surgery sprain peanut pollen dust lactose gluten
    感冒 发烧 头疼 花生 海鲜 花粉 骨折 手术 胃病 失眠;

    weather climate 天气: rain sun snow wind storm cloud hot cold warm humid 下雨 晴天 下雪 刮风
    台风 降温;

    reason reasons cause motivation motivate inspire 原因: because since due hope 因为 所以 由于
    为了;

    family relative relatives sibling siblings 家人 亲戚: mom dad mother father brother sister son
    daughter kids wife husband grandma grandpa aunt uncle cousin niece nephew 妈妈 爸爸 哥哥 姐姐
    弟弟 妹妹 儿子 女儿 老婆 老公 奶奶 爷爷;

    vehicle vehicles transport transportation commute 交通: car bike bus train motorcycle truck van
    subway metro tram scooter ferry plane 汽车 单车 地铁 公交 高铁 摩托 电动 飞机;

    charity charities cause causes organization organizations 公益 志愿: shelter donate fundraiser
    homeless veteran hospital foundation community orphanage rescue 捐款 义工;

    country countries state states city cities place places travel trip trips visit vacation 国家
    城市 地方: paris london rome spain italy france germany japan china canada mexico florida
    california york tokyo thailand india england scotland ireland sweden australia texas seattle
    boston chicago mountains beach island lake park 北京 上海 广州 深圳 杭州 云南 日本 韩国 法国
    德国 美国 泰国
"""


def _parsed(table: str) -> list[tuple[list[str], list[str]]]:
    groups = (group.partition(":") for group in table.split(";"))
    return [(names.split(), members.split()) for names, _, members in groups]


KINDS: Final = tuple((tuple(names), tuple(members)) for names, members in _parsed(_KINDS))
"""The words for a kind, each with its members; a kind may stand there more than once."""
