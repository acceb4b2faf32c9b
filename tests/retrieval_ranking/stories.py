"""A small retrieval set of our own: entries of a team's memory, and questions with their answers.

Sessions are told in order. `ASKED` gives, for each question, the keys that answer it and the
rank by which one of them must have come up.
"""

# ruff: noqa: E501 - a line is an entry

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    key: str
    text: str
    on: str = "2025-11-03"
    by: str = "ENG:ALPHA"
    owner: str = "ENG:ALPHA"
    private: bool = False


SESSIONS: dict[str, list[Told]] = {
    "incident": [
        Told("incident-report", "Checkout is failing for some customers since this morning.", "2025-11-03"),
        Told("incident-code", "The gateway log is full of ERR_CONN_RESET from payment-service.", "2025-11-03"),
        Told("incident-other-code", "There is also an ERR_CONN_TIMEOUT now and then, but only from the mailer.", "2025-11-03"),
        Told("incident-cause", "Root cause: the connection pool was exhausted after the retry storm.", "2025-11-03"),
        Told("incident-fix", "Raised max_pool_size from 20 to 80 in config/payment.yaml and redeployed.", "2025-11-03"),
        Told("incident-lesson", "Next time we look at the pool metrics before restarting anything.", "2025-11-03"),
    ],
    "release": [
        Told("release-plan", "We cut v2.4.1 on Thursday and v2.5.0 two weeks later.", "2025-12-04"),
        Told("release-old", "v2.4.0 had the broken migration, nobody should install it.", "2025-12-04"),
        Told("release-owner", "Who signs the release notes?", "2025-12-04", "Dana"),
        Told("release-answer", "Marek does, he has the key.", "2025-12-04", "Luis"),
        Told("release-parser", "parseHttpHeader() drops the second Set-Cookie line; fixed in src/http/header_parser.py.", "2025-12-05"),
        Told("release-ticket", "Ticket PAY-1287 tracks the rounding of Swiss francs.", "2025-12-05"),
        Told("release-ticket-near", "Ticket PAY-1278 tracks the rounding of Japanese yen.", "2025-12-05"),
    ],
    "lunch-june": [
        Told("trip-dana", "I went hiking in the Tatra mountains with my sister.", "2025-06-10", "Dana"),
        Told("trip-luis", "I stayed at home and painted the kitchen.", "2025-06-10", "Luis"),
        Told("trip-ask", "Did you see any animals up there?", "2025-06-10", "Luis"),
        Told("trip-animals", "A whole family of marmots, and one bear far away!", "2025-06-10", "Dana"),
        Told("dinner-june", "The team dinner was at the Greek place.", "2025-06-11", "Luis"),
    ],
    "lunch-october": [
        Told("dinner-october", "The team dinner was at the Korean place.", "2025-10-14", "Luis"),
        Told("pets-ask", "Dana, how are your pets?", "2025-10-14", "Luis"),
        Told("pets-dana", "The parrot learned to whistle and the cat hates it.", "2025-10-14", "Dana"),
        Told("pets-luis", "We adopted a puppy from the shelter last week.", "2025-10-15", "Luis"),
        Told("allergy", "I cannot eat peanuts, they send me to hospital.", "2025-10-15", "Luis"),
    ],
    "decisions": [
        Told("db-choice", "Decided to keep PostgreSQL instead of moving to a document store.", "2025-09-01"),
        Told("db-reason", "The main argument was transactional consistency across invoices.", "2025-09-01"),
        Told("cache-choice", "Sessions are cached in memory for fifteen minutes.", "2025-09-02"),
        Told("cache-changed", "Sessions are cached in memory for sixty minutes since the load test.", "2025-09-20"),
        Told("hiring", "We will look for a second data engineer in spring.", "2025-09-03"),
        Told("budget", "The cloud bill must stay under 40,000 euros a month.", "2025-09-03"),
        Told("backup", "Backups run nightly and are restored as a drill every quarter.", "2025-09-04"),
        Told("password", "Rotate the signing keys every ninety days.", "2025-09-04"),
    ],
    "languages": [
        Told("german", "Der Kunde möchte die Rechnung als PDF per E-Mail bekommen.", "2025-08-05"),
        Told("japanese", "東京オフィスの会議は毎週火曜日の午前十時に始まります。", "2025-08-06"),
        Told("japanese-other", "大阪オフィスの駐車場は来月から有料になります。", "2025-08-06"),
        Told("chinese", "北京团队负责支付系统的测试。", "2025-08-07"),
        Told("french", "Le café près de la gare ferme à dix-huit heures.", "2025-08-08"),
        Told("korean", "서울 지사는 금요일에 재택근무를 합니다.", "2025-08-08"),
    ],
    "others": [
        Told("rival-secret", "Root cause of the checkout failure was a leaked token.", owner="ENG:BRAVO", private=True),
        Told("rival-pool", "connection pool exhausted, connection pool exhausted", owner="ENG:BRAVO", private=True),
        Told("rival-dinner", "The team dinner was at the Ethiopian place.", "2025-10-14", owner="ENG:BRAVO", private=True),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    question: str
    answers: tuple[str, ...]
    by_rank: int = 1
    speakers: tuple[str, ...] = ()


ASKED: list[Asked] = [
    # paraphrases without a shared word
    Asked("people could not pay for their purchases", ("incident-report",), 3),
    Asked("which relational engine did we stay with", ("db-choice",), 2),
    Asked("saving money on infrastructure", ("budget",), 2),
    Asked("recruiting plans", ("hiring",)),
    Asked("disaster recovery exercises", ("backup",)),
    Asked("renewing cryptographic secrets", ("password",)),
    Asked("food that makes someone ill", ("allergy",), 2),
    # identifiers, whole and by parts
    Asked("ERR_CONN_RESET", ("incident-code",)),
    Asked("err_conn_timeout from the mailer", ("incident-other-code",)),
    Asked("where is max_pool_size set", ("incident-fix",)),
    Asked("pool size", ("incident-fix",), 2),
    Asked("config/payment.yaml", ("incident-fix",)),
    Asked("parse http header", ("release-parser",)),
    Asked("header_parser.py", ("release-parser",)),
    Asked("is v2.4.0 safe to install?", ("release-old",)),
    Asked("when do we cut v2.4.1", ("release-plan",)),
    # near-duplicates
    Asked("PAY-1287", ("release-ticket",)),
    Asked("what does ticket PAY-1278 track", ("release-ticket-near",)),
    Asked("rounding of Swiss francs", ("release-ticket",)),
    Asked("sessions cached for sixty minutes", ("cache-changed",)),
    # what stands beside the question's words
    Asked("who signs the release notes", ("release-answer",), 2),
    Asked("why did we keep PostgreSQL", ("db-reason", "db-choice"), 1),
    Asked("which animals were seen while hiking", ("trip-animals",), 3),
    # names
    Asked("What did Luis do in summer while others were hiking?", ("trip-luis",), 1, ("Luis",)),
    Asked("What pets does Dana have?", ("pets-dana",), 2, ("Dana",)),
    Asked("What pets does Luis have?", ("pets-luis",), 2, ("Luis",)),
    Asked("Where did Dana travel?", ("trip-dana",), 1, ("Dana",)),
    # times
    Asked("where was the team dinner in June?", ("dinner-june",)),
    Asked("where was the team dinner in October?", ("dinner-october",)),
    Asked("where was the team dinner on 14 October 2025", ("dinner-october",)),
    Asked("team dinner three months ago", ("dinner-october",)),
    # other languages
    Asked("Rechnung per E-Mail", ("german",)),
    Asked("東京の会議", ("japanese",)),
    Asked("駐車場", ("japanese-other",)),
    Asked("支付系统", ("chinese",)),
    Asked("cafe pres de la gare", ("french",)),
    Asked("서울", ("korean",)),
]
