"""By which characters Chinese says an everyday English word, for questions in the other language.

General knowledge, taken from no set that is measured with: the home, the family, food, health,
money, travel, school, work and software. A question is looked for in its own words first; these
find an answer in the other language without any model, and tell with one that it speaks of the
same thing. Characters stand in pairs, as the index has them; alone only where that is the word.
"""

from __future__ import annotations

from typing import Final

_TRANSLATIONS: Final = """
    backend 后端; frontend 前端; service 服务; server 服务; database 数据; data 数据; code 代码;
    test 测试; deploy 部署 上线; deployment 部署; release 发布; version 版本; project 项目;
    team 团队; meeting 会议 开会; customer 客户; client 客户; user 用户; order 订单;
    payment 支付 付款; pay 支付 付款; invoice 发票; budget 预算; price 价格; cost 费用;
    salary 工资 薪水; company 公司; office 办公; boss 老板; colleague 同事; coworker 同事;
    manager 经理 主管; job 工作; work 工作 上班; interview 面试; school 学校; university 大学;
    college 大学; teacher 老师; student 学生; class 课程 上课; course 课程; exam 考试;
    homework 作业; book 书籍 本书; novel 小说; movie 电影; film 电影; music 音乐; song 歌曲;
    game 游戏; sport 运动; football 足球; soccer 足球; basketball 篮球; swim 游泳; run 跑步 运行;
    hike 爬山 徒步; travel 旅行 旅游; trip 旅行 出差; flight 航班 飞机; airport 机场;
    train 火车 高铁; station 车站; hotel 酒店; ticket 车票 机票 门票; car 汽车 车子;
    bike 单车 自行; bicycle 单车 自行; home 家里; house 房子; apartment 公寓 房子; flat 公寓 房子;
    kitchen 厨房; garden 花园 院子; city 城市; country 国家; hospital 医院; doctor 医生 大夫;
    medicine 药物 吃药; medication 药物; pill 药片; allergy 过敏; allergic 过敏; birthday 生日;
    wedding 婚礼; holiday 假期 放假; vacation 假期 度假; family 家人 家庭; mother 妈妈 母亲;
    mom 妈妈; father 爸爸 父亲; dad 爸爸; parent 父母; child 孩子 小孩; kid 孩子 小孩; son 儿子;
    daughter 女儿; brother 哥哥 弟弟; sister 姐姐 妹妹; wife 妻子 老婆; husband 丈夫 老公;
    friend 朋友; dog 小狗 狗狗 狗; cat 小猫 猫咪 猫; food 食物 吃的; dinner 晚饭 晚餐;
    lunch 午饭 午餐; breakfast 早饭 早餐; coffee 咖啡; tea 喝茶 茶叶; restaurant 餐厅 饭店 餐馆;
    vegetarian 吃素 素食; phone 手机 电话; computer 电脑; laptop 电脑 笔记; password 密码;
    email 邮箱 邮件; network 网络; log 日志; error 错误 报错; bug 错误 漏洞; failure 故障 失败;
    fail 失败; outage 故障; alert 告警 报警; cache 缓存; queue 队列; branch 分支; commit 提交;
    merge 合并; review 评审 审查; file 文件; folder 目录 文件; directory 目录; configuration 配置;
    config 配置; port 端口; interface 接口; framework 框架; library 框架 图书; language 语言;
    model 模型 型号; certificate 证书; backup 备份; schedule 计划 日程 安排; plan 计划 打算;
    deadline 截止; monday 周一; tuesday 周二; wednesday 周三; thursday 周四; friday 周五;
    saturday 周六; sunday 周日; weekend 周末; tomorrow 明天; morning 早上 上午; evening 晚上;
    move 搬到 搬家; live 住在; buy 买了; like 喜欢; hate 讨厌; learn 学习; name 名字 叫做;
    color 颜色; colour 颜色; rent 房租 租金; contract 合同; weather 天气;
    write 写; read 阅读 看书; sell 卖掉; wear 穿; teach 教; send 发送 寄给; meet 见面; win 赢;
    lose 丢了; open 打开; close 关闭; use 使用; borrow 借; lend 借给; wait 等待; visit 参观 看望;

    grandmother 奶奶 外婆 姥姥; grandma 奶奶 外婆; grandfather 爷爷 外公; grandpa 爷爷 外公;
    uncle 叔叔 舅舅; aunt 阿姨 姑姑; cousin 表哥 表妹 表弟 表姐; nephew 侄子 外甥; niece 侄女;
    baby 宝宝 婴儿; girlfriend 女友; boyfriend 男友; partner 伴侣 伙伴; neighbour 邻居;
    neighbor 邻居; roommate 室友; flatmate 室友; landlord 房东; tenant 租客; guest 客人;
    twin 双胞; married 结婚; marry 结婚; anniversary 纪念; divorce 离婚; pregnant 怀孕; born 出生;
    room 房间; bedroom 卧室; bathroom 浴室 卫生; balcony 阳台; cellar 地下; basement 地下;
    garage 车库; roof 屋顶; floor 地板 楼层; wall 墙壁; door 门口; window 窗户; key 钥匙;
    lock 门锁; furniture 家具; sofa 沙发; table 桌子; desk 书桌; chair 椅子; bed 床;
    mattress 床垫; lamp 台灯; light 灯光; curtain 窗帘; carpet 地毯; shelf 架子 书架; fridge 冰箱;
    refrigerator 冰箱; freezer 冰箱 冷冻; oven 烤箱; microwave 微波; washing 洗衣;
    dishwasher 洗碗; vacuum 吸尘; heating 暖气; boiler 锅炉 热水; plumber 水管; pipe 水管;
    leak 漏水 泄漏; electricity 电费 用电; electrician 电工; water 浇水 用水; gas 煤气 燃气;
    rubbish 垃圾; trash 垃圾; garbage 垃圾; recycling 回收; clean 打扫 清洁; repair 维修 修理;
    fix 修复 修好; broken 坏了; paint 油漆 粉刷; plant 植物; flower 鲜花 花; tree 树;
    tomato 番茄 西红; lawn 草坪; address 地址; parcel 包裹 快递; package 包裹 快递;
    delivery 快递 送货; mail 邮件; letter 信件; post 邮局; umbrella 雨伞; tool 工具; ladder 梯子;
    drill 电钻; bulb 灯泡; battery 电池; charger 充电; camera 相机; television 电视; tv 电视;
    headphone 耳机; watch 手表; glasses 眼镜; bag 包包 书包; wallet 钱包; suitcase 行李 箱子;
    luggage 行李; passport 护照; visa 签证; licence 驾照 许可; license 驾照 许可; card 卡片;
    gift 礼物; present 礼物; toy 玩具; clothes 衣服; shirt 衬衫; dress 裙子; coat 外套 大衣;
    jacket 外套; shoe 鞋子 鞋; boot 靴子; hat 帽子; size 尺码 大小; ring 戒指; necklace 项链;
    red 红色; blue 蓝色; green 绿色; yellow 黄色; black 黑色; white 白色; grey 灰色; gray 灰色;
    brown 棕色; pink 粉色; purple 紫色; orange 橙色 橙子; rice 米饭 大米; noodle 面条; bread 面包;
    cake 蛋糕; soup 汤; meat 吃肉; beef 牛肉; pork 猪肉; chicken 鸡肉; fish 吃鱼 鱼; egg 鸡蛋;
    milk 牛奶; cheese 奶酪 芝士; vegetable 蔬菜; fruit 水果; apple 苹果; banana 香蕉;
    strawberry 草莓; peanut 花生; nut 坚果; seafood 海鲜; shrimp 虾; spicy 辣; coriander 香菜;
    cilantro 香菜; garlic 大蒜; sugar 糖; salt 盐; oil 油; beer 啤酒; wine 红酒 葡萄; juice 果汁;
    dumpling 饺子; tofu 豆腐; chocolate 巧克; dessert 甜点; snack 零食; recipe 菜谱 食谱;
    cook 做饭 做菜; bake 烘焙 烤; drink 饮料 喝; eat 吃; supermarket 超市; shop 商店; store 商店;
    market 市场 菜市; shopping 购物; bill 账单; diet 饮食 减肥; sweet 甜; health 健康 身体;
    sick 生病; ill 生病; illness 疾病; cold 感冒; fever 发烧; cough 咳嗽; headache 头疼 头痛;
    pain 疼痛; back 后背; knee 膝盖; ankle 脚踝; wrist 手腕; shoulder 肩膀; tooth 牙齿;
    dentist 牙医 牙科; eye 眼睛; ear 耳朵; heart 心脏; stomach 胃; skin 皮肤;
    blood 血液 血型 血压; pressure 血压 压力; surgery 手术; operation 手术; injury 受伤;
    vaccine 疫苗; vaccination 疫苗; clinic 诊所; nurse 护士; therapist 治疗 咨询;
    physiotherapy 理疗 康复; prescription 处方; appointment 预约; insurance 保险; sleep 睡觉 睡眠;
    weight 体重; gym 健身; exercise 锻炼 运动; yoga 瑜伽; marathon 马拉; tennis 网球;
    badminton 羽毛; ski 滑雪; climb 攀岩 爬山; dance 跳舞 舞蹈; guitar 吉他; piano 钢琴;
    violin 小提; instrument 乐器; sing 唱歌; choir 合唱; band 乐队; concert 演唱 音乐;
    museum 博物; exhibition 展览; theatre 剧院; festival 节日; party 聚会 派对; picnic 野餐;
    camp 露营; camping 露营; tent 帐篷; beach 海边 沙滩; sea 大海; mountain 爬山 山; lake 湖;
    river 河; park 公园; zoo 动物; animal 动物; pet 宠物; bird 鸟; rabbit 兔子; hamster 仓鼠;
    turtle 乌龟; vet 兽医; photo 照片; picture 照片 图片; photography 摄影; painting 画画 油画;
    draw 画画; chess 下棋 象棋; hobby 爱好; club 俱乐 社团; team 球队; match 比赛;
    competition 比赛; prize 奖品 获奖; award 奖项 获奖; volunteer 志愿 义工; money 钱; bank 银行;
    account 账户 账号; loan 贷款; mortgage 房贷; debt 债务; tax 税; saving 存款 储蓄;
    save 保存 省钱; invest 投资; stock 股票 库存; fund 基金; deposit 押金 定金; refund 退款;
    discount 折扣 打折; fee 费用; donate 捐款; cheap 便宜; expensive 太贵; income 收入;
    bonus 奖金; percent 百分; yuan 元 块钱; dollar 美元; euro 欧元; subway 地铁; metro 地铁;
    bus 公交 巴士; taxi 出租 打车; drive 开车; driver 司机; road 路上; traffic 交通 堵车;
    parking 停车; park 停车; tyre 轮胎; tire 轮胎; petrol 汽油 加油; gasoline 汽油;
    accident 事故 车祸; map 地图; bridge 桥; ferry 渡轮; ship 轮船; luggage 行李; booking 预订;
    book 预订 订了; reservation 预订; cancel 取消; delay 延误 推迟; postpone 推迟 延期;
    arrive 到达; leave 离开 出发; return 回来 返回; abroad 国外; beijing 北京; shanghai 上海;
    guangzhou 广州; shenzhen 深圳; hangzhou 杭州; chengdu 成都; nanjing 南京; wuhan 武汉;
    suzhou 苏州; xiamen 厦门; taipei 台北; tokyo 东京; kyoto 京都; osaka 大阪; seoul 首尔;
    singapore 新加; bangkok 曼谷; london 伦敦; paris 巴黎; berlin 柏林; rome 罗马; lisbon 里斯;
    madrid 马德; barcelona 巴塞; york 纽约; sydney 悉尼; china 中国; chinese 中文 汉语;
    japan 日本; japanese 日语 日本; korea 韩国; english 英语 英文; french 法语; german 德语;
    spanish 西班; germany 德国; france 法国; italy 意大; britain 英国; england 英国; america 美国;
    thailand 泰国; europe 欧洲; spain 西班; year 今年 年; month 月; week 星期 一周; today 今天;
    yesterday 昨天; afternoon 下午; night 晚上 夜里; noon 中午; hour 小时; minute 分钟;
    spring 春天 春节; summer 夏天 暑假; autumn 秋天; winter 冬天 寒假; christmas 圣诞; rain 下雨;
    snow 下雪; wind 刮风; hot 热; temperature 温度; study 学习; thesis 论文; paper 论文;
    essay 作文; lecture 讲座; professor 教授; tutor 家教 导师; supervisor 导师 上司;
    classmate 同学; grade 成绩; score 分数; degree 学位; major 专业; semester 学期; graduate 毕业;
    graduation 毕业; scholarship 奖学; kindergarten 幼儿; library 图书; chapter 章节; page 页面;
    math 数学; physics 物理; chemistry 化学; history 历史; science 科学; research 研究;
    experiment 实验; lab 实验; sample 样本 样品; report 报告; department 部门; director 主任 总监;
    chairman 主席; secretary 秘书; assistant 助理 助手; intern 实习; internship 实习;
    engineer 工程; developer 开发; designer 设计; design 设计; lawyer 律师; accountant 会计;
    chef 厨师; writer 作家; journalist 记者; salesperson 销售; sale 销售; marketing 市场 营销;
    supplier 供应; warehouse 仓库; factory 工厂; product 产品; launch 上线 发布; hire 招聘 录用;
    candidate 候选; resign 辞职; quit 辞职 戒; retire 退休; promote 晋升; promotion 晋升 促销;
    overtime 加班; remote 远程; leave 请假; policy 政策 规定; rule 规则 规定; agreement 协议;
    sign 签字 签约; approve 批准; decision 决定; decide 决定; agree 同意; choose 选择 选了;
    prefer 喜欢 偏好; preference 偏好; favourite 喜欢 最爱; favorite 喜欢 最爱; goal 目标;
    task 任务; agenda 议程; minute 纪要; note 笔记; document 文档; documentation 文档; slide 幻灯;
    presentation 演讲 汇报; training 培训; feedback 反馈; complaint 投诉; partner 合作;
    conference 会议 大会; call 电话; message 消息 信息; responsible 负责; owner 负责; charge 负责;
    reason 原因; cause 原因; problem 问题; issue 问题; question 问题; answer 回答 答案;
    solution 方案 解决; solve 解决; change 修改 改成; replace 替换 换成; switch 切换 换成;
    add 添加 增加; delete 删除; remove 删除 去掉; create 创建; update 更新; upgrade 升级;
    install 安装; build 构建; compile 编译; debug 调试; start 开始 启动; stop 停止; restart 重启;
    rollback 回滚; migrate 迁移; migration 迁移; refactor 重构; rename 改名; feature 功能;
    function 函数 功能; variable 变量; parameter 参数; table 表; column 列; index 索引;
    query 查询; transaction 事务; thread 线程; process 进程; memory 内存 记忆; disk 磁盘;
    cpu 处理; timeout 超时; limit 限制 上限; retry 重试; latency 延迟; performance 性能;
    speed 速度; slow 慢; fast 快; security 安全; permission 权限; token 令牌; login 登录;
    register 注册; session 会话; page 页面; button 按钮; website 网站; app 应用; client 客户;
    browser 浏览; search 搜索; notification 通知; format 格式; encoding 编码; encryption 加密;
    key 密钥; script 脚本; package 包; dependency 依赖; environment 环境; production 生产 线上;
    staging 预发; cluster 集群; node 节点; container 容器; image 镜像 图片; monitor 监控;
    dashboard 看板; metric 指标; threshold 阈值; ticket 工单; pipeline 流水; repository 仓库;
    unit 单元; coverage 覆盖; translate 翻译; translation 翻译; default 默认; timezone 时区;
    currency 货币; store 存储; storage 存储; download 下载; upload 上传; import 导入; export 导出;
    sync 同步; print 打印; printer 打印; screen 屏幕; keyboard 键盘; mouse 鼠标; internet 网络;
    wifi 无线; router 路由; account 账号; domain 域名; cloud 云; robot 机器; artificial 人工;
    experiment 实验
"""


def _groups(table: str) -> list[list[str]]:
    return [group.split() for group in table.split(";")]


def _merged(table: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for word, *others in _groups(table):
        found.setdefault(word, {}).update(dict.fromkeys(others))
    return {word: tuple(others) for word, others in found.items()}


TRANSLATIONS: Final = _merged(_TRANSLATIONS)
"""The pairs of characters by which Chinese says an English word, for questions both ways."""
