"""Everyday words that say the same, in English and in Chinese: a question rarely says it as it was.

General knowledge, small groups of words that people use for one another in talk of the home, food,
health, money, travel, school, work and software; taken from no set that is measured with. Each
stands in for the others, in part (`matching.py`); `word_forms.py` has what stands in one way only.
"""

from __future__ import annotations

from typing import Final

_ENGLISH: Final = """
    bus coach shuttle; plane flight fly; train rail railway; station stop; taxi cab uber;
    lorry truck; petrol fuel gas; motorway highway; luggage suitcase baggage bag;
    ticket fare pass; hotel hostel lodging accommodation; reserve book reservation booking;
    depart leave set; arrive come reach; abroad overseas; route way path; border frontier;
    harbour port marina; boat ship vessel; noise sound hum loud; smell odour scent;
    wet damp moist; dry arid; cold chilly freezing; warm hot heat heating;
    temperature degree degrees; rain shower rainy; snow snowy; storm gale; fog mist; dirty filthy;
    clean wash cleaning; broken damaged defective; break crack; leak drip; stuck jam;
    tight narrow; wide broad; heavy weigh weight; quiet silent silence; dark dim; bright light;
    empty vacant; full packed; near close nearby; far distant; soft gentle; strong powerful;
    sharp blunt; round circular; thin slim slender; thick dense; early soon; late delay delayed;
    flat apartment; cellar basement; attic loft; lift elevator; tap faucet; fridge refrigerator;
    stove cooker oven hob; rubbish trash garbage bin waste; sofa couch; wardrobe closet cupboard;
    curtain blind; carpet rug; mattress bed; blanket duvet quilt; key keys; rent lease tenancy;
    landlord landlady; neighbour neighbor nextdoor; guest visitor; garden yard lawn; fence hedge;
    plumber plumbing pipe; electrician wiring; boiler heater; paint coat; kitchen cook;
    bathroom shower bath toilet; parcel package delivery; post mail; address street; lock bolt;
    drill screwdriver; glue stick; repair mend fix; replace swap exchange; throw discard dump;
    store keep; hang hook; pour water; grill barbecue bbq; tablet pill medicine medication;
    doctor dr physician gp; dentist teeth tooth; optician glasses eye; nurse clinic;
    surgery operation; hurt pain ache sore; cough cold flu; fever temperature;
    allergic allergy intolerant; injured twisted sprained broke; vaccine jab shot vaccination;
    pregnant expecting; baby newborn infant toddler; asleep sleep nap; tired exhausted;
    dizzy faint; weigh lose kilos pounds; diet eating; blood pressure; heart cardiac; skin rash;
    therapy therapist counselling counseling; appointment checkup visit; hospital ward;
    prescription prescribed; die dead death passed; healthy fit; smoke cigarette; drunk alcohol;
    child kid toddler; parents mom dad; husband spouse; wife spouse; sibling twin;
    fiance engaged engagement; marry wedding married; divorce separated; girlfriend partner;
    boyfriend partner; roommate flatmate housemate; friend pal mate buddy; name called;
    nickname called; surname name; birthday turned born; age old; retire pension retired;
    funeral buried; dinner supper meal; lunch midday; breakfast morning; snack bite;
    dessert pudding cake; sweets candy; chips fries; biscuit cookie; aubergine eggplant;
    courgette zucchini; prawn shrimp; vegetarian vegan meatless; spice spicy hot chilli;
    coffee espresso; tea brew; wine bottle; beer pint; restaurant diner bistro; cook chef;
    recipe ingredients; taste flavour flavor; eat feed food; drink beverage; bread loaf sourdough;
    order ordered; bake baking; pay paid payment; price cost charge fee; expensive dear pricey;
    cheap inexpensive bargain; money cash funds; salary wage income earn; loan mortgage credit;
    debt owe; refund reimburse; deposit advance upfront; discount reduction off;
    invoice bill receipt; budget limit; tax vat; bank account; insurance insured policy;
    donate give; save savings; invest stocks shares; currency exchange; sell sold sale;
    purchase bought buy; free gratis; quote estimate; treasurer money accounts;
    accountant bookkeeping; owner owns belongs; mark grade score; exam test examination;
    homework assignment; pupil student; teacher tutor; professor lecturer; lecture talk;
    subject course; maths math mathematics; thesis dissertation; essay paper; term semester;
    degree diploma; graduate graduation; scholarship grant; holiday break leave vacation;
    revise study; supervisor advisor; hand submit deadline due;
    kindergarten nursery daycare preschool; university campus; boss manager supervisor head;
    colleague coworker; staff employees team; hire recruit employ; fire dismiss;
    quit resign leave; shift rota; meeting call sync standup; minutes notes; agenda topics;
    customer client; supplier vendor; contract agreement; sign signature;
    launch release publish ship; office desk; department team; project product; plan schedule;
    goal target; promise commit; approve accept; reject refuse decline; postpone delay reschedule;
    cancel drop scrap; prepare ready; responsible charge handles; assign give; report summary;
    presentation slides talk; feedback review; training workshop; frequent often every;
    weekly week; monthly month; picture photo image shot; photograph camera; film movie cinema;
    show episode podcast series; episode show; play theatre stage; actor cast; scene act;
    song track tune; band group; choir singing rehearsal concert;
    rehearsal practise practice rehearse; perform concert performance stage;
    concert gig performance; drum drummer; paint draw; novel book; magazine paper;
    newspaper press; match game; competition contest race tournament; run race marathon jog;
    win won first; lose lost; coach trainer; gym workout; bike bicycle cycle; swim pool;
    climb climbing crag; hike walk trek; camp tent; ski slope; fishing angler; chess board;
    hobby pastime; prize reward award; puzzle riddle; costume dress clothes; wear dress clothes;
    shoes boots trainers sneakers; trousers pants; jumper sweater; coat jacket; hat cap;
    ring jewellery jewelry; glasses spectacles; watch clock; bag rucksack backpack; guest people;
    crowd audience; amount number count quantity; maximum most limit up; minimum least at;
    size big large; length long; height tall high; depth deep; speed fast quick;
    distance far kilometres miles; noon midday twelve; midnight twelve; dawn sunrise; dusk sunset;
    autumn fall; begin start open; end finish close over; until till; temporary moment meanwhile;
    permanent forever; usual normally typical always; rarely seldom; immediately once;
    frequently often; reason why because; purpose for; result outcome; mistake error wrong;
    confuse mix; forget forgot; remember remind; recognise recognize mark; blurred blurry unsharp;
    hide hidden; disable off deactivate; enable on activate; allow permit may;
    forbid ban prohibit never; must need have; avoid never not; dislike hate; like love prefer;
    want wish would; prefer rather favourite; believe think; agree yes; refuse no;
    worry worried afraid; angry mad; upset sad; glad happy; surprise surprised; important matters;
    dangerous risk unsafe; safe secure; secret private confidential; strange odd weird;
    funny joke; boring dull; easy simple; difficult hard tricky; enough sufficient;
    extra spare additional; spare extra second; missing lost gone; find found; borrow lend;
    return back; carry bring take; fetch pick collect; deliver bring; meet see; invite invitation;
    visit see; call phone ring; answer reply respond; ask question; tell inform let; write wrote;
    explain describe; translate translation; speak talk; bug defect flaw;
    crash outage failure down; error exception failure; fix patch; deploy rollout release ship;
    deployment deploys rollout; rollback revert; freeze frozen; folder directory dir;
    file document; config configuration settings; setting option switch;
    password secret credentials; user account; server machine host; cluster nodes; database db;
    table schema; column field; query sql; backup copy dump; log logging logs;
    monitor monitoring alerting; alert alarm page pager; slow latency seconds; fast speed;
    cache caching; queue broker; message event; api endpoint; endpoint route url;
    library package dependency; framework library; version release; branch fork; merge pull;
    commit change; review approve; pipeline ci build; build compile; script job cron;
    nightly night; job task; import dependency; format formatter layout;
    indent indentation tabs spaces; style convention; naming named; comment docstring;
    function method; variable constant; parameter argument; default standard; limit quota maximum;
    timeout deadline; retry attempts; encrypt encryption tls; certificate tls ssl; key token;
    permission rights access; engine runtime; phone handheld mobile device;
    device handheld phone tablet; screen display; button key; website site page; app application;
    feature function; hardware board; sensor reading measurement; measurement reading readings;
    measure metric; data records; delete drop erase remove; throw drop delete; copy duplicate;
    move migrate; rename call; split divide; join merge combine; sort order; count number;
    rounding round; notify notification mail; email mail; print printer; download fetch;
    upload push; update upgrade; install setup; environment staging production
"""

_CHINESE: Final = """
    妈妈 母亲 我妈 妈咪; 爸爸 父亲 我爸; 老婆 妻子 爱人 媳妇; 老公 丈夫 爱人;
    孩子 小孩 宝宝 女儿 儿子;
    奶奶 外婆 姥姥; 爷爷 外公 姥爷; 公公 公婆; 婆婆 公婆; 岳父 岳母 丈人; 亲戚 家人; 父母 爸妈;
    朋友 哥们 闺蜜; 室友 合租; 邻居 隔壁; 房东 业主; 对象 男友 女友; 结婚 婚礼 婚宴; 离婚 分手;
    生日 出生 周岁; 老人 长辈; 名字 叫做 取名; 年纪 年龄 多大 几岁 岁; 去世 过世 走了;
    手机 电话 号码;
    电脑 笔记 主机; 自行 单车 骑车; 汽车 车子 开车; 出租 打车 滴滴; 地铁 轻轨; 高铁 动车 火车;
    飞机 航班 机票; 酒店 宾馆 旅馆 民宿; 车票 票价; 出差 差旅; 旅行 旅游 出去; 行李 箱子;
    出发 动身 启程; 到达 抵达; 堵车 交通; 护照 签证 证件; 预订 预约 订了; 停车 车位; 加油 油费;
    房子 公寓 住处; 卧室 房间; 厨房 灶台; 厕所 卫生 洗手; 浴室 淋浴 洗澡; 客厅 沙发; 冰箱 冷藏;
    洗衣 衣服; 垃圾 扔掉; 打扫 清洁 卫生; 修理 维修 修好; 坏了 故障 毛病; 漏水 渗水; 停电 断电;
    暖气 供暖 地暖; 空调 制冷; 水管 管道; 疏通 堵了; 钥匙 门锁; 快递 包裹 取件; 房租 租金;
    搬家 搬到 搬去; 装修 刷漆; 阳台 花盆; 工具 扳手; 插头 插座 电源; 床垫 床铺; 被子 毯子;
    窗户 玻璃; 吃饭 用餐 聚餐; 早饭 早餐; 午饭 午餐 中午; 晚饭 晚餐; 夜宵 宵夜;
    做饭 做菜 烧菜 下厨; 饭店 餐厅 餐馆 馆子; 菜谱 食谱 做法; 零食 点心; 甜品 甜点 蛋糕;
    饮料 喝的; 吃素 素食; 忌口 不吃 过敏; 口味 味道; 辣椒 太辣; 超市 菜场; 外卖 点餐; 医生 大夫;
    医院 门诊; 看病 就诊 挂号; 牙医 口腔 看牙 智齿; 感冒 发烧 咳嗽; 头疼 头痛 偏头; 疼痛 不舒;
    药物 吃药 服药; 手术 开刀; 受伤 扭伤 骨折; 体重 减肥 瘦了; 体检 检查; 血压 高压; 血糖 糖尿;
    睡觉 睡眠 失眠; 晚上 夜里 夜间 半夜; 怀孕 预产; 疫苗 接种 打针; 眼镜 近视 视力;
    锻炼 健身 运动; 康复 理疗; 心理 咨询; 价格 价钱 多贵 售价; 费用 花费 开销; 预算 经费;
    工资 薪水 薪资 月薪; 奖金 年终; 奖励 奖品; 付款 支付 结账 付钱; 退款 退钱; 押金 定金 预付;
    贷款 房贷; 存款 储蓄; 打折 优惠 折扣; 账单 账目; 发票 报销; 保险 投保; 税务 报税; 便宜 划算;
    捐款 捐赠; 股票 基金; 转账 汇款; 买了 购买 采购; 卖掉 出售; 赔偿 赔付; 学校 校园 大学;
    老师 教师 班主; 学生 同学; 课程 上课 科目; 考试 测验 考研; 成绩 分数 考分 考得; 作业 功课;
    论文 毕业; 导师 教授; 毕业 学位; 报名 注册; 奖学 助学; 复习 备考; 图书 书店; 讲座 演讲;
    培训 学习; 放假 假期 休假; 开学 学期; 幼儿 托儿; 社团 俱乐; 工作 上班 职业; 公司 单位 企业;
    老板 领导 上司; 经理 主管 负责; 同事 同组; 客户 甲方; 供应 厂家; 会议 开会 例会 组会 周会;
    加班 值班; 请假 休假; 辞职 离职; 招聘 面试; 合同 协议; 签字 签约 签署; 项目 工程; 目标 指标;
    截止 期限 最晚; 推迟 延期 延后; 取消 不办; 负责 谁管; 主持 轮到; 批准 审批 同意; 拒绝 不同;
    检查 抽查 抽检; 质量 错误; 出错 错误 报错; 照片 图片 相片; 拍照 摄影 相机; 模糊 糊了;
    电影 影片; 电视 节目; 歌曲 唱歌; 乐队 鼓手 打鼓; 演出 表演 登台; 排练 彩排; 比赛 竞赛 赛事;
    冠军 第一; 爬山 徒步 登山; 游泳 泳池; 露营 帐篷; 钓鱼 鱼竿; 画画 绘画; 读书 看书 阅读;
    游戏 玩法; 小狗 狗狗; 小猫 猫咪; 喂食 喂养 投喂; 花草 植物 浇水; 礼物 送给 礼品; 衣服 穿的;
    鞋子 球鞋; 首饰 项链 戒指; 节目 播客; 活动 聚会; 门票 票务; 博物 展览; 星期 礼拜; 傍晚 黄昏;
    临时 暂时; 温度 水温 气温; 禁止 不许 不准 不能; 喜欢 爱好 偏爱; 讨厌 不喜 反感; 害怕 担心;
    开心 高兴; 难过 伤心; 生气 恼火; 忘记 忘了; 记得 提醒; 注意 小心; 保留 留下 留着; 丢弃 扔掉;
    借用 借给; 归还 还给; 寄给 邮寄; 翻译 译文; 选择 选了 挑选; 改成 换成 改为; 增加 添加;
    减少 降低; 打开 开启; 关闭 关掉; 重要 要紧; 危险 风险; 秘密 保密; 简单 容易; 困难 太难;
    奇怪 异常; 上线 发布 部署 投产; 回滚 回退; 报警 告警 警报; 监控 巡检; 故障 宕机 事故;
    错误 报错 异常; 修复 修正; 测试 用例; 超时 延时; 性能 速度 太慢; 缓存 命中; 队列 消息;
    数据 表格; 备份 快照; 迁移 搬迁; 服务 接口; 框架 库; 代码 源码 仓库; 分支 合并; 提交 推送;
    评审 审核; 文件 文档; 目录 路径 文件; 配置 设置 参数; 密码 口令 密钥; 权限 授权; 登录 登陆;
    用户 账号; 账户 账号; 日志 记录; 命名 名称; 格式 样式; 缩进 空格; 函数 方法; 版本 升级;
    依赖 安装; 脚本 任务; 定时 每晚; 服务 主机; 集群 节点; 内存 磁盘; 域名 证书; 加密 解密;
    导出 下载; 导入 上传; 删除 删掉 清除; 查询 搜索 检索; 通知 推送 短信; 模型 训练; 标注 标签;
    传感 读数 测量; 设备 仪器; 打印 印刷; 屏幕 显示; 按钮 按键; 截图 图片; 汇率 货币
"""


def _alike(tables: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in (group.split() for group in tables.split(";")):
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(group))
    return {word: tuple(one for one in all_ if one != word) for word, all_ in found.items()}


SYNONYMS: Final = {**_alike(_ENGLISH), **_alike(_CHINESE)}
"""What else says the same, by word or, in Chinese, by two characters."""
