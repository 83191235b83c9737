"""What the built-in writer keeps of a sentence, by hand, in English and Chinese."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.statements import is_confirmation, statements_in

KEPT = (
    ("I moved from Oslo to Bergen last month.", "fact"),
    ("My name is Robin and I work as a nurse.", "fact"),
    ("Please call me Rob.", "fact"),
    ("My sister Lena lives in Lisbon.", "fact"),
    ("I have a dog called Miso.", "fact"),
    ("I used to work at Nokia.", "fact"),
    ("Dana leads the billing team since May 2026.", "fact"),
    ("The budget for the kitchen is 4,000 euros.", "fact"),
    ("The staging server runs on port 8443 in Frankfurt.", "fact"),
    ("Budget: 4000 EUR", "fact"),
    ("I run a bike rental kiosk in Bergen with my sister.", "fact"),
    ("Lena counts the cash on Sunday evenings.", "fact"),
    ("I prefer tabs over spaces.", "preference"),
    ("my favourite colour is green", "preference"),
    ("i'm vegetarian", "preference"),
    ("I'm allergic to peanuts.", "preference"),
    ("Always answer in German.", "preference"),
    ("From now on use pnpm, not npm.", "preference"),
    ("Never push to main without a review.", "preference"),
    ("Don't use emojis in commit messages.", "preference"),
    ("Keep your answers short.", "preference"),
    ("We decided to use Postgres because MySQL lost our JSON columns.", "decision"),
    ("Let's go with Hetzner for the servers.", "decision"),
    ("Change the cache to Redis because Memcached loses data.", "decision"),
    ("Actually the launch is on 12 November, not the 10th.", "decision"),
    ("The deadline is 16 October.", "plan"),
    ("Remind me tomorrow to call the dentist.", "plan"),
    ("I want to learn Spanish before summer.", "plan"),
    ("I have a meeting with Dr. Chen at 3 p.m. on Tuesday.", "plan"),
    ("我叫李雷，在上海做产品经理。", "fact"),
    ("我上个月从北京搬到了杭州。", "fact"),
    ("我老婆叫小美，是小学老师。", "fact"),
    ("王芳负责计费团队。", "fact"),
    ("我们的服务器在法兰克福，端口是8443。", "fact"),
    ("更正一下，发布日期是11月12日，不是10日。", "fact"),
    ("我喜欢喝美式咖啡，不加糖。", "preference"),
    ("以后都用中文回答我。", "preference"),
    ("记住，我女儿对花生过敏。", "preference"),
    ("默认用四个空格缩进。", "preference"),
    ("我们决定用 Postgres，因为 MySQL 丢过数据。", "decision"),
    ("把主题色改成深蓝色。", "decision"),
    ("别再用 npm 了，换成 pnpm。", "decision"),
    ("其实我不住在上海了，我搬到苏州了。", "decision"),
    ("项目截止日期是10月16日。", "plan"),
    ("周五之前要交报告。", "plan"),
    ("明天下午三点和陈医生约了体检。", "plan"),
    ("我打算明年去日本学做寿司。", "plan"),
    ("提醒我下周三给房东打电话。", "plan"),
)

LEFT_OUT = (
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


def test_tells_who_a_statement_is_about() -> None:
    """The first person, a named person and a group are three different things."""
    mine, dana, ours = statements_in(
        "I prefer tea. Dana leads the billing team. We use Python 3.12 in this repo."
    )
    assert (mine.personal, mine.person) == (True, None)
    assert (dana.personal, dana.person) == (False, "Dana")
    assert (ours.personal, ours.person) == (False, None)


def test_keeps_only_the_beginning_of_a_document() -> None:
    """A turn of a thousand statements is a document; forty of them become blocks."""
    assert len(statements_in("I moved to Porto in 1999. " * 1000)) == 40


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Yes, exactly.", True),
        ("Sounds good, do it.", True),
        ("好，就这样。", True),
        ("没错，按这个来。", True),
        ("No, use MySQL.", False),
        ("Yes?", False),
        ("不行。", False),
        ("", False),
    ],
)
def test_knows_a_confirmation(words: str, expected: bool) -> None:
    """A turn that begins with yes confirms the one before it."""
    assert is_confirmation(words) is expected
