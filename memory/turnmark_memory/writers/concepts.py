"""Knows which words are about one side of a life or a project: where somebody lives, what is paid.

"The landlord wants 2,150" and "rent is 1,900" share no word, and are about the same thing. Each
list is one such thing; a word may stand in several. English words are looked up whole, Chinese ones
as parts of the text.
"""

from __future__ import annotations

import re

_LISTS = {
    "home": "live lives lived living flat apartment house home moved move moving rent rented"
    " lease tenant room studio landlord neighbourhood bedsit condo 住 搬 租 房子 公寓 两居"
    " 一居 三居 小区 房东 合租 室友 mortgage address moving-in housemate flatmate 房贷 搬家"
    " 老家 宿舍",
    "rent": "rent landlord landlady lease tenancy deposit 租 房东 押金 押一付",
    "job": "job jobs work works worked working employer hired hire teach teaches taught nurse"
    " engineer manager contract offer promoted promotion intern internship librarian teacher"
    " designer developer accountant freelance consultant barista chef resigned quit unemployed"
    " laid career clinic hospital 工作 上班 公司 入职 离职 辞职 跳槽 岗位 单位 职 律所 医院"
    " 诊所 不干了 裁 shift shifts nights boss salary wages fired retire retired colleague"
    " team-lead apprentice assistant lawyer driver editor translator analyst 换岗 倒班 夜班"
    " 三班 调到 调回 分部 护士 医生 老师 律师 教师 编辑 翻译 经理 主管 实习",
    "school": "school college uni university study studies studying degree major course"
    " medicine nursing law phd master exam grade kindergarten 学校 大学 专业 读书 考上 学医"
    " 转学 上学 小学 中学 高中 幼儿园 研究生 考研",
    "commute": "commute bike bicycle cycle cycling train bus tram metro tube line drive"
    " drives driving car carpool ferry walk foot ride rides 通勤 骑 地铁 公交 火车 开车 坐"
    " 号线 走路 步行 班车 打车 高铁",
    "food": "vegetarian vegan meat fish eat eats drink drinks coffee tea gluten lactose sugar"
    " diet mushrooms dairy alcohol wine beer 吃 喝 素 咖啡 茶 肉 糖 忌口 戒 酒 辣 allergic"
    " allergy peanuts nuts halal 过敏 花生 海鲜",
    "medicine": "medicine tablet tablets pill pills dose medication prescription mg"
    " antibiotics insulin inhaler 药 片 一粒 毫克 剂量 胰岛素",
    "doctor": "doctor gp consultant surgeon dentist physio therapist dr clinic ward op"
    " operation surgery appointment checkup scan 医生 大夫 牙医 主治 手术 复查 看诊 门诊 挂号"
    " 体检",
    "price": "cost costs price prices fee fees charge charges charged pay pays paid salary"
    " budget quote quoted deposit ticket tickets entry euros pounds dollars asking rate tariff"
    " cheaper expensive worth 价 钱 费 涨 降 块 元 预算 门票 票 工资 报价 收 一袋 一斤 一晚"
    " 人均 押金",
    "due": "deadline due release released launch launches ship ships beta alpha premiere"
    " milestone golive slips slipped slip postponed deliver delivery planned 截止 上线 发布"
    " 上架 交付 发版 测试版 首发 交稿 工期 完工 计划 推迟 推到 拖到 submit submission hand-in"
    " handin cutoff expected eta tagged schedule scheduled 发 定稿 提交 验收 到期 审计",
    "meeting": "meet meets meeting rehearsal rehearsals practise practice venue hall session"
    " gather meetup standup retro training class classes lesson lessons workshop 集合 碰头"
    " 见面 地点 场地 排练 练 例会 开会 会议 周会 活动 站会 上课 培训 训练 standups slot"
    " timetable schedule sessions club 早会 约 见 聚 开槽 练习",
    "place": "hall venue room church centre center station café cafe pub library park field"
    " garage garden office building site workshop studio 地点 场地 场子 馆 站 店 公园 仓库"
    " 教室 门口 广场 办公室 楼",
    "charge": "runs handles handle does looks after charge owns maintains responsible takes"
    " took over manager lead leads leading contact coordinator organises organizes treasurer"
    " books chairs owner maintainer replaced replaces reviewer oncall 负责 管 接手 交给 归"
    " 对接 联系人 带队 主持 来弄 来做 盯 组长 主管 接替 替",
    "bring": "bring brings bringing lend lends lent borrow spare carry provides 带 借 拿 准备",
    "storage": "database stored store stores storage disk bucket table postgres mysql sqlite"
    " redis mongo images files backup backups volume s3 blob 数据库 存 存储 目录 本地 备份 OSS"
    " 图片 桶",
    "hosting": "hosted hosting host server servers deploy deployed deploys runs cloud cluster"
    " vps machine kubernetes docker aws 服务器 部署 托管 云 机器 集群 上线 演示 跑在",
    "tests": "test tests testing ci pipeline jenkins actions suite coverage 测试 流水线"
    " 覆盖率 用例",
    "style": "tabs spaces indent indentation formatter format lint linter style naming quotes"
    " 缩进 空格 格式 命名 风格 注释",
    "errors": "error errors diagnostics logging logs log alerts sentry warnings 报错 错误"
    " 日志 告警 提示",
    "login": "login sign auth authentication password oauth sso token session cookie cookies"
    " 登录 鉴权 密码 认证 会话 令牌",
    "search": "search searching index full-text query elasticsearch meilisearch 搜索 检索 搜",
    "speech": "german french english dutch spanish italian japanese chinese polish languages"
    " translate translated 中文 英文 日语 法语 德语 韩语 英语 语言",
    "reply": "replies reply answer answers short brief concise bullet bullets emoji emojis"
    " tone formal casual 回答 回复 简短 短一点 详细 语气 表情",
    "contact": "phone number email mail address reach 电话 手机号 邮箱 地址 微信 contact"
    " handle telegram signal wechat 联系 找",
    "love": "boyfriend girlfriend married marry wedding dating single engaged divorced"
    " husband wife partner split 男朋友 女朋友 男友 女友 结婚 离婚 老公 老婆 单身 分手 对象"
    " 婚礼",
    "vehicle": "car van bike bicycle scooter motorbike truck camper trailer 车 面包车 电动车",
    "pet": "dog cat puppy kitten parrot hamster rabbit tortoise 狗 猫 兔子 仓鼠",
    "sport": "gym run running swim swimming climbing yoga pilates football tennis marathon"
    " race badminton volleyball judo cycling climb 健身 跑步 游泳 攀岩 瑜伽 马拉松 羽毛球 篮球"
    " 足球 太极 爬山 打球 10k 21k half hike hiking trail gym-class squash rowing cricket 骑行"
    " 骑 登山 徒步 半马 全马",
    "trip": "trip holiday flight fly flies flew land lands airport booked hotel travel"
    " travelling visit abroad cruise 旅行 旅游 飞 机票 航班 酒店 出差 去玩 度假 改签 民宿",
    "party": "party birthday wedding concert gig fair festival exhibition show premiere"
    " recital 演出 生日 聚会 婚礼 音乐会 展 晚会 团建 年会",
    "supply": "supplier supplies flour beans order orders mill butcher wholesaler from"
    " delivers deliver deliveries delivery 供货 进货 进价 从 供应 送货 送",
    "opening": "open opens close closes closed hours 开门 关门 营业 休息 打烊",
    "key": "key keys lock code pin 钥匙 门禁 密码",
    "key person": "boss supervisor landlord gp vet lawyer accountant tutor coach trainer"
    " agent 老板 领导 导师 教练 中介 律师 会计",
    "available": "can't cannot sunday sundays busy free available shift shifts kids away 不行"
    " 没空 有空 值班 排班 带孩子 可以了",
    "instrument": "guitar bass amp drums violin piano cello trumpet 吉他 贝斯 音箱 鼓 钢琴 小提琴",
    "sale": "sell sold sells sale buyer market bought 卖 买 出售 挂 收购",
    "repair": "plumber electrician repair repairs repaired fix fixed boiler heating roof leak"
    " builder scaffolding quote quoted contractor mechanic garage 维修 修好 师傅 水电 报修"
    " 漏水 施工 装修 开槽",
    "often": "every interval hourly daily weekly poll polling polls sampling sample sampled"
    " refresh cron frequency 采样 采一次 频率 轮询 间隔 每隔 一次",
    "kept": "keep kept keeps retain retained retention stay stays expire deleted archive"
    " archived 保留 留存 保存 留",
    "naming": "branch branches prefix naming name named called rename renamed 分支 命名 前缀 叫",
    "account": "treasurer kitty account bank transfer dues money fees 账 会费 转账 收款 记账 转给",
    "where": "garage cellar shed attic cupboard shelf drawer basement locker 放在 车库 地下室"
    " 仓库 柜子",
    "loan": "mortgage loan lender bank fixed rate interest 贷款 利率 银行 房贷",
    "limit": "limit limits max maximum min minimum threshold cap at-most timeout limited"
    " quota 上限 下限 最多 最少 最低 最高 阈值 门槛 限制 超时",
    "version": "version upgrade upgraded upgrading minimum release supports supported node"
    " python java rust jdk 版本 升级 升到 最低 支持",
    "baby": "pregnant baby due birth born expecting 怀孕 预产期 宝宝 孩子 出生",
    "seat": "seats seat capacity people guests table room 座 人数 个人 桌 位",
    "docs": "docs documentation wiki readme manual mdbook sphinx 文档 手册",
    "alarm": "wake alarm remind reminder call 喊 叫醒 闹钟 提醒",
    "hours": "hours open close closes opening mornings evenings lunchtime 时间 开工 上班时间"
    " 营业 关门 打烊",
}
_KINDS: dict[str, list[str]] = {}
for _kind, _words in _LISTS.items():
    for _word in _words.split():
        _KINDS.setdefault(_word.casefold(), []).append(_kind)
_WORD = re.compile(
    "[a-z][a-z0-9-]+|"
    + "|".join(sorted((word for word in _KINDS if not word.isascii()), key=len, reverse=True))
)


def concepts_of(folded: str) -> frozenset[str]:
    """Returns what the words of a casefolded text are about, as far as the lists know it."""
    return frozenset(kind for word in _WORD.findall(folded) for kind in _KINDS.get(word, ()))
