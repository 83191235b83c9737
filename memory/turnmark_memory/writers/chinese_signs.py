"""What speaks for keeping a Chinese sentence, or against it, whatever it is about: closed classes.

`signs.py` says what they are for. They stay general on purpose: their weights are learned.
"""

from __future__ import annotations

import re
from typing import Final

SIGNS: Final = {
    "a_time": re.compile(
        r"[今昨明前后]天|[今明去后前]年|[上下这本]个?(?:周|月|星期|礼拜)"
        r"|(?:周|星期|礼拜)[一二三四五六日天末]|\d\s?[号日月点]|[一二三四五六七八九十]+[号点月]"
        r"|[早晚]上|上午|下午|中午|[今明昨][早晚]|[月年]底|[春夏秋冬]天|[暑寒]假|国庆|春节|端午|中秋"
        r"|清明|五一|元旦"
    ),
    "hedges": re.compile(
        r"可能|也许|大概|好像|似乎|说不定|没准|估计|应该(?:是|会|能)|不一定|感觉|觉得|我想|我看"
        r"|看情况|不知道|不确定|没想好|差不多|再[说看]|总有一天|迟早|吧[。！!～~]*$"
    ),
    "supposes": re.compile(r"如果|要是|假如|假设|万一|的话|就好了|恨不得|巴不得|早知道"),
    "feels": re.compile(
        r"[累困饿烦愁慌惨]|难受|郁闷|崩溃|无语|头疼|头大|睡|开心|高兴|激动|紧张|羡慕|心疼|气死|笑死"
        r"|舒服|[唉哎呜]|天[哪呐啊]|救命|^完了|服了|离谱|绝了|废了|惭愧"
    ),
    "of_the_moment": re.compile(
        r"今[天晚早]|现在|刚[才刚]?|正在|马上|等会|待会|一会|还没|还在|已经|又|在(?:路上|等|看|忙|吃)"
        r"|这会|目前|先"
    ),
    "commits": re.compile(
        r"(?:我|我们|咱们)(?:来|去|会|负责|带|订|买|请|开车|做|拿|借|出|付|垫|接|送|联系|准备|安排|提供|管)"
        r"|[来去]不了|没空|有空|请假"
    ),
    "as_a_rule": re.compile(
        r"一直|每|都|总是|从不|从来|一律|以后|今后|默认|凡是|只|平时|一般|通常|必须|不能|不许|常"
    ),
    "is_something": re.compile(r"是|叫|属于|算"),
    "points_back": re.compile(r"[这那它]"),
    "looks_ahead": re.compile(r"会|将|要|打算|准备|计划|得|去|定在|约"),
    "orders": re.compile(
        r"^(?:你|您|请|麻烦(?:你|您)?|再|先|帮我|给我|那)*(?:把|帮|给.{1,6}(?:加|补|写|改|换)|给我|打开|看|查|改|跑|写|做|讲|列|加|删|试"
        r"|发|等|停|继续|用|按|换|提交|运行|搜|推荐|解释|总结|翻译|生成|检查|修|画|整理|对比|比较|实现|部署"
        r"|重启|重构|合并|订|算|找|起草|润色)(?![了着过得完好])"
    ),
    "goes_on": re.compile(r"^(?:但|可是|不过|而且|所以|因为|然后|还有|另外|那|就)"),
}
