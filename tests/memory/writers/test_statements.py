"""What the built-in writer keeps of a sentence, by hand, in English and Chinese."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.statements import statements_in

KEPT = (
    ("My favourite colour is green", "preference"),
    ("I'm vegetarian", "preference"),
    ("I moved from Oslo to Bergen last month.", "who"),
    ("My name is Robin and I work as a nurse.", "who"),
    ("My sister Lena lives in Lisbon.", "who"),
    ("I have a dog called Miso.", "who"),
    ("I used to work at Nokia.", "fact"),
    ("Dana leads the billing team since May 2026.", "who"),
    ("The budget for the kitchen is 4,000 euros.", "fact"),
    ("The staging server runs on port 8443 in Frankfurt.", "fact"),
    ("I run a bike rental kiosk in Bergen with my sister.", "who"),
    ("Lena counts the cash on Sunday evenings.", "fact"),
    ("I prefer tabs over spaces.", "preference"),
    ("I'm allergic to peanuts.", "preference"),
    ("Always answer in German.", "instruction"),
    ("From now on use pnpm, not npm.", "instruction"),
    ("Never push to main without a review.", "instruction"),
    ("Don't use emojis in commit messages.", "instruction"),
    ("Keep your answers short.", "instruction"),
    ("We decided to use Postgres because MySQL lost our JSON columns.", "decision"),
    ("Let's go with Hetzner for the servers.", "decision"),
    ("Change the cache to Redis because Memcached loses data.", "decision"),
    ("The deadline is 16 October.", "plan"),
    ("Remind me tomorrow to call the dentist.", "plan"),
    ("I want to learn Spanish before summer.", "plan"),
    ("I have a meeting with Dr. Chen at 3 p.m. on Tuesday.", "plan"),
    ("我叫李雷，在上海做产品经理。", "who"),
    ("我上个月从北京搬到了杭州。", "who"),
    ("我老婆叫小美，是小学老师。", "who"),
    ("王芳负责计费团队。", "who"),
    ("我们的服务器在法兰克福，端口是8443。", "fact"),
    ("我喜欢喝美式咖啡，不加糖。", "preference"),
    ("以后都用中文回答我。", "instruction"),
    ("默认用四个空格缩进。", "instruction"),
    ("我们决定用 Postgres，因为 MySQL 丢过数据。", "decision"),
    ("把主题色改成深蓝色，跟官网一致。", "decision"),
    ("别再用 npm 了，换成 pnpm。", "instruction"),
    ("其实我不住在上海了，我搬到苏州了。", "who"),
    ("项目截止日期是10月16日。", "plan"),
    ("周五之前要交报告。", "plan"),
    ("明天下午三点和陈医生约了体检。", "plan"),
    ("我打算明年去日本学做寿司。", "plan"),
    ("提醒我下周三给房东打电话。", "plan"),
)

TRIMMED = (
    ("Imke here, I do the money and the permits.", "I do the money and the permits.", "fact"),
    ("Please call me Rob.", "call me Rob.", "who"),
    (
        "Actually the launch is on 12 November, not the 10th.",
        "The launch is on 12 November, not the 10th.",
        "fact",
    ),
    ("更正一下，发布日期是11月12日，不是10日。", "发布日期是11月12日，不是10日。", "fact"),
    ("记住，我女儿对花生过敏。", "我女儿对花生过敏。", "preference"),
    ("Btw, the retry limit is 5 now.", "The retry limit is 5 now.", "fact"),
    (
        "Thanks Mel! I signed up for a pottery class yesterday.",
        "I signed up for a pottery class yesterday.",
        "plan",
    ),
    (
        "I can't lift heavy stuff by the way, herniated disc since 2024.",
        "I can't lift heavy stuff, herniated disc since 2024.",
        "fact",
    ),
    (
        "Since we're vegetarian now, can you suggest three dinners?",
        "We're vegetarian now",
        "preference",
    ),
    ("先看下这个项目，给养老院排班用的，后端 Django", "给养老院排班用的，后端 Django", "fact"),
    ("我女儿果果今年九月上小学，想问问书包怎么挑", "我女儿果果今年九月上小学", "who"),
)

LEFT_OUT = (
    "That's gorgeous, Caroline!",
    "It was so awesome!",
    "Your kind words mean a lot.",
    "error[E0502]: cannot borrow `self.cache` as mutable",
    "panic: runtime error: index out of range [4] with length 4",
    "What's the msrv we declare at the moment?",
    "千岛湖远不远",
    "CKError 12 是啥意思",
    "ok thanks",
    "Thanks, that helped a lot!",
    "run the tests",
    "Please list the files in src.",
    "Can you show me the diff?",
    "What is the capital of France?",
    "Why does this fail?",
    "hello there",
    "Great, continue.",
    "Fix the bug in parser.py.",
    "I see.",
    "I don't know.",
    "I'm not sure what you mean.",
    "That works.",
    "Write a function that adds two numbers.",
    "Let me check.",
    "I have a question.",
    "I'm getting an error.",
    "I ran the tests again.",
    "Never mind.",
    "could you explain this again please",
    "Now add a test for it.",
    "I want you to refactor this.",
    "Sounds good, thank you so much!",
    "Yes.",
    "好的谢谢",
    "好的，继续",
    "运行一下测试",
    "帮我看看这个错误",
    "这是什么意思？",
    "怎么安装这个包",
    "你好",
    "没问题，谢谢你！",
    "列出所有文件",
    "请帮我翻译这段话",
    "哈哈哈",
    "我不知道",
    "我明白了",
    "能不能解释一下",
    "帮我写一个排序函数",
    "我想问一下怎么退出 vim",
)


@pytest.mark.parametrize(("words", "kind"), KEPT)
def test_keeps_what_is_worth_keeping(words: str, kind: str) -> None:
    """A fact, preference, decision or plan is kept whole, under its kind."""
    (statement,) = statements_in(words)
    assert (statement.text, statement.kind) == (words, kind)


@pytest.mark.parametrize(("words", "text", "kind"), TRIMMED)
def test_drops_what_a_sentence_only_begins_with(words: str, text: str, kind: str) -> None:
    """Openers, asides, orders and questions around a statement are no part of it."""
    statement = statements_in(words)[-1]
    assert (statement.text, statement.kind) == (text, kind)


@pytest.mark.parametrize("words", LEFT_OUT)
def test_leaves_out_what_is_not(words: str) -> None:
    """Questions, small talk and one-off commands state nothing."""
    assert statements_in(words) == []


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("I moved to Porto in March, where should I register?", "I moved to Porto in March"),
        ("我搬到上海了，怎么办居住证？", "我搬到上海了"),
    ],
)
def test_keeps_the_statement_that_leads_up_to_a_question(words: str, statement: str) -> None:
    """Only the clause before the question is kept."""
    assert [one.text for one in statements_in(words)] == [statement]


def test_tells_what_is_personal_from_what_is_shared() -> None:
    """The first person is the speaker; how to speak to them stays theirs in a project."""
    mine, ours, manner, rule = statements_in(
        "I prefer tea. We use Python 3.12 in this repo. Always answer in German."
        " Never push to main without a review."
    )
    assert (mine.personal, mine.private) == (True, True)
    assert (ours.personal, ours.private) == (False, False)
    assert (manner.personal, manner.private) == (True, True)
    assert (rule.personal, rule.private) == (False, False)


@pytest.mark.parametrize(
    ("words", "changes", "restates"),
    [
        ("I moved from Oslo to Bergen.", True, False),
        ("We no longer use Jenkins for builds.", True, False),
        ("Actually the launch is on Thursday, not Friday.", True, False),
        ("I live in Bergen with 2 cats.", False, False),
        ("Like I said, vendored/ stays untouched.", False, True),
        ("发布推迟到 6 月 1 号了。", True, False),
        ("我们不再用阿里云了。", True, False),
        ("再说一遍，日志统一写到 logs 目录。", False, True),
    ],
)
def test_notices_what_changed_and_what_is_said_again(
    words: str, changes: bool, restates: bool
) -> None:
    """Words of change and of repetition are told apart."""
    statement = statements_in(words)[-1]
    assert (statement.changes, statement.restates) == (changes, restates)


def test_keeps_only_the_beginning_of_a_document() -> None:
    """A turn of a thousand statements is a document; forty of them become blocks."""
    assert len(statements_in("I moved to Porto in 1999. " * 1000)) == 40


@pytest.mark.parametrize(
    "words",
    [
        "If I had a million euros I'd buy the building next door.",
        "I might be late tomorrow, we'll see",
        "I haven't slept properly since Monday",
        "如果我中了彩票第一件事就是辞职",
        "唉今天地铁又挤爆了",
        "我最近睡得不好",
    ],
)
def test_drops_what_passes(words: str) -> None:
    """Moods, maybes and what would be are worth nothing in a week."""
    assert statements_in(words) == []


@pytest.mark.parametrize(
    ("plain", "reserved"),
    [
        ("We moved the stand-up to 9:30.", "Maybe we should have moved the stand-up to 9:30."),
        ("The summer party is in Ghent on 3 July.", "I wish the summer party was in Ghent."),
        ("我们把例会改到九点半。", "要是例会在九点半就好了。"),
        ("今年年会在苏州办，两天。", "感觉今年年会可能在苏州办吧。"),
    ],
)
def test_drops_what_is_said_with_a_reserve(plain: str, reserved: str) -> None:
    """What is only supposed, wished or guessed is no fact yet; the same said plainly is."""
    assert len(statements_in(plain)) == 1
    assert statements_in(reserved) == []


@pytest.mark.parametrize(
    ("much", "little"),
    [
        ("The van is parked behind the mill in Dunkeld, key 14", "It's parked round the back"),
        ("车停在桂花路 12 号后院，钥匙编号 7", "车停后面了"),
    ],
)
def test_keeps_what_holds_a_name_or_a_number(much: str, little: str) -> None:
    """In a group, what somebody will look up holds more than what all of them see."""
    assert len(statements_in(much, in_group=True)) == 1
    assert statements_in(little, in_group=True) == []


@pytest.mark.parametrize(
    "report",
    [
        "Uncaught TypeError: Cannot read properties of undefined (reading 'id')",
        "控制台报 Uncaught TypeError: Cannot read properties of null (reading 'id')",
    ],
)
def test_drops_a_report_of_an_error(report: str) -> None:
    """What a program printed is evidence of the day, whatever names it holds."""
    assert statements_in(report) == []


def test_keeps_a_fact_before_a_question_without_its_mark() -> None:
    """A last clause that asks is cut off, with a question mark or without."""
    (one,) = statements_in("We have two hives at the allotment in Hexham, do you want honey")
    assert one.text == "We have two hives at the allotment in Hexham"


@pytest.mark.parametrize(
    "order",
    [
        "Add a --csv flag to the report command that prints the totals, with two tests.",
        "Please split loader.py so that the cache lives in its own module, then run the tests.",
        "Look at the last 4 commits and summarise what changed in the search module.",
        "Write me a 200 word note to the parents of class 4b at St. Mary's.",
        "I want a script that takes a folder and prints its 10 largest files.",
        "Rewrite the retry loop in Go. It should give up after 5 attempts and log why.",
        "写一个脚本，把 logs/ 下面的文件按日期合并，再压缩。",
        "把 parse_row 的 9 处调用都改一下，旧函数删掉。",
        "给报表命令加一个 --csv 参数，再补两个测试。",
        "帮我找四家车站附近周一营业的素菜馆。",
        "用 Go 重写重试循环。最多要试 5 次，失败写日志。",
    ],
)
def test_drops_what_is_asked_for_once(order: str) -> None:
    """An order is done and over, however much it says; a rule or a decision goes on holding."""
    assert statements_in(order) == []


@pytest.mark.parametrize(
    "rule",
    [
        "Write the tests before the code, always.",
        "Rename Candidate to Claim everywhere, that's what the operators call it.",
        "以后写脚本都先加 --dry-run 参数。",
        "把 Candidate 都改成 Claim，运营那边这么叫。",
    ],
)
def test_keeps_an_order_that_goes_on_holding(rule: str) -> None:
    """Rules and renamings are still true when they have been carried out."""
    assert len(statements_in(rule)) == 1


@pytest.mark.parametrize(
    "praise",
    [
        "What you did for those kids was truly inspiring, the world needs more people like you!",
        "I'm so grateful that we can always talk about everything, it means a lot.",
        "Being together is the most beautiful thing in life for everybody!",
        "你们做的这些事情真的太有意义了，特别感动！",
        "能跟大家一起努力，我真的觉得特别幸福。",
    ],
)
def test_drops_praise_and_what_holds_for_anybody(praise: str) -> None:
    """Warm words are long and say nothing about anybody."""
    assert statements_in(praise, in_group=True) == []


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("The importer crashes on the second file from Tromsø", False),
        ("导出第二个文件时页面又白屏了", False),
        ("The importer crashes because the files from Tromsø hold no header row", True),
        ("导出白屏的原因是第二个文件没有表头", True),
    ],
)
def test_drops_a_symptom_without_its_cause(words: str, *, kept: bool) -> None:
    """In a project what fails is soon mended; why it did is worth knowing."""
    assert bool(statements_in(words, in_project=True)) is kept


@pytest.mark.parametrize(
    "words",
    [
        "I keep two bees in the garden.",
        "I work for the railway.",
        "I was born in Évora.",
        "I play the cello.",
        "I swim every morning.",
        "Robin drinks tea.",
        "Dana has a boat.",
        "The office is in Porto.",
        "The shop listens on port 8080.",
        "We decided to stay.",
        "I'm learning Japanese.",
        "I do the money and the permits.",
        "The wifi password is kraken77.",
        "我用Python写后端服务",
        "我们团队用 Jira 管任务",
        "我在学日语",
        "我开的是特斯拉",
        "我一般在家办公",
        "我养了一只猫。",
        "我会弹钢琴。",
        "家里的猫叫小花。",
        "周明住在里斯本。",
        "税务系统每周三部署。",
        "押金一共 200 元。",
        "我决定不养猫。",
    ],
)
def test_keeps_how_things_are_in_few_words(words: str) -> None:
    """A habit, a trade, a possession, a place or a price lasts; it needs no more words."""
    assert len(statements_in(words)) == 1
    assert len(statements_in(words, in_group=True)) == 1


@pytest.mark.parametrize(
    "words",
    [
        *(
            "I do think so.",
            "I do it now.",
            "I disagree.",
            "I love it.",
            "I see them.",
            "We go there.",
            "Tom says hi.",
        ),
        *("I have an idea.", "我有空。", "我在路上。", "我在看。", "我有点困。"),
        *("我想用 Python 写。", "我用一下你的电脑", "我用不了", "我在学校。", "我在练习室"),
    ],
)
def test_drops_what_is_short_and_of_the_moment(words: str) -> None:
    """What somebody thinks, does or sees just now is no habit."""
    assert statements_in(words) == []
