"""Knows what is chosen from one list: who names another tool or colour has chosen another."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LISTS = {
    "transport": "bike bicycle cycle cycling train bus tram metro tube subway ferry car"
    " carpool scooter taxi walk walking 自行车 骑车 单车 地铁 公交 公交车 高铁 火车 大巴 开车"
    " 自驾 打车 步行 走路 电动车 飞机 轮渡",
    "database": "postgres postgresql mysql mariadb sqlite mongodb mongo redis dynamodb"
    " cockroachdb duckdb clickhouse oracle cassandra firestore supabase mssql couchdb leveldb"
    " rocksdb 达梦",
    "queue": "rabbitmq kafka celery redis sqs nats sidekiq resque dramatiq rq zeromq pulsar"
    " rocketmq",
    "cloud": "aws azure gcp hetzner digitalocean heroku netlify vercel cloudflare linode ovh"
    " 阿里云 腾讯云 华为云 七牛",
    "pipeline": "jenkins gitlab github travis circleci drone buildkite teamcity bitbucket"
    " gitea codeberg woodpecker",
    "payment": "stripe mollie adyen paypal klarna braintree 微信支付 支付宝 银联 云闪付",
    "search": "elasticsearch opensearch meilisearch typesense solr algolia lucene",
    "frontend": "react vue svelte angular htmx preact alpine nextjs nuxt jquery",
    "backend": "django flask fastapi rails laravel actix axum phoenix",
    "packages": "npm pnpm yarn pip poetry uv pipenv conda cargo gradle maven bazel cmake meson",
    "test": "pytest unittest jest vitest mocha cypress playwright selenium puppeteer",
    "style": "tabs spaces tab 空格 制表符",
    "casing": "camelcase snake_case kebab-case pascalcase 驼峰 下划线",
    "language": "python rust golang java kotlin typescript javascript ruby php elixir swift"
    " scala haskell zig",
    "colour": "red blue green yellow black white grey gray brown orange purple pink beige"
    " teal turquoise terracotta mustard 红色 蓝色 绿色 黄色 黑色 白色 灰色 棕色 橙色 紫色 粉色"
    " 米色 藏青 奶白 米白 深蓝 浅蓝 浅灰 深灰 墨绿",
    "drink": "coffee tea espresso decaf matcha cocoa beer wine water juice milk 咖啡 茶 红茶"
    " 绿茶 奶茶 白开水 牛奶 豆浆 啤酒 白酒 红酒 果汁",
    "diet": "vegetarian vegan pescatarian omnivore keto meat fish 吃素 素食 吃肉 荤",
    "chat": "slack discord zoom whatsapp telegram matrix irc 微信 钉钉 飞书 企业微信 qq",
    "serial": "json yaml toml xml csv protobuf msgpack avro parquet geojson",
    "login": "password passwords oauth saml sso passkeys 密码 验证码 扫码",
}
_KINDS: dict[str, list[str]] = {}
for _kind, _words in _LISTS.items():
    for _word in _words.split():
        _KINDS.setdefault(_word, []).append(_kind)
_CHOICE = re.compile(
    rf"\b(?:{'|'.join(re.escape(word) for word in _KINDS if word.isascii())})\b|"
    + "|".join(sorted((word for word in _KINDS if not word.isascii()), key=len, reverse=True)),
    re.IGNORECASE,
)


def choices_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields what a text names of the lists, each with its list."""
    for found in _CHOICE.finditer(text):
        word = found.group().casefold()
        for kind in _KINDS[word]:
            yield f"choice of {kind}", word
