"""The story the demo tells: a night on call, and what was left of it four days later.

Two Volks work on one incident. ENG:ALPHA knows the payment code, OPS:BRAVO runs the platform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrata_memory.models import MemoryClassification, MemoryContext

ALPHA = "ENG:ALPHA"
BRAVO = "OPS:BRAVO"
VOLKS = {ALPHA: ("team_lead",), BRAVO: ("team_lead",)}

PROJECT = "checkout"
INCIDENT = "incident-4711"
FOLLOW_UP = "follow-up-4711"

PRIVATE = MemoryClassification.PRIVATE
SHARED = MemoryClassification.SHARED

SECRET_KEY = "alpha/rotation-note"  # noqa: S105 - a memory's key
TICKETS_KEY = "tickets/porto"
LESSON_KEY = "lesson/idempotency"

BY_MEANING = "were buyers billed double for one basket?"
BY_WORD = "PAY-0417"
LATER_QUESTION = "what did we learn about clients that repeat a payment request?"
NEXT_TASK = "Refunds time out at the bank: plan a safe retry so that no refund is paid out twice."

SUMMARY_TOKENS = 160
INJECTION_TOKENS = 220


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One memory of the story."""

    volk: str
    content: str
    key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    classification: MemoryClassification = SHARED


def caller(volk: str, session: str = INCIDENT, *, focus: str | None = None) -> MemoryContext:
    """A Volk of the story at work."""
    return MemoryContext(
        volk_id=volk,
        session_id=session,
        task_id="double-charge",
        project_id=PROJECT,
        provider="openai",
        focus=focus,
    )


LINES: tuple[Line, ...] = (
    Line(
        volk=BRAVO,
        content="At 02:14 the alert PAY-0417 fired: the rate of card authorisations is 1.8 times "
        "the rate of orders.",
        tags=("alert", "payments"),
        metadata={"importance": 0.9},
    ),
    Line(
        volk=BRAVO,
        content="Support has eleven tickets from shoppers in Porto who see the same amount twice "
        "on their statement.",
        key=TICKETS_KEY,
        tags=("customers",),
    ),
    Line(
        volk=ALPHA,
        content="The last deployment of the checkout service was at 01:50, revision 9f3c2d, and "
        "it only touched the client of the card processor.",
        tags=("deployment",),
    ),
    Line(
        volk=ALPHA,
        content="Revision 9f3c2d lowered read_timeout_ms from 10000 to 2000 in "
        "processor_client.py.",
        tags=("code", "payments"),
    ),
    Line(
        volk=BRAVO,
        content="The card processor answers in 2.4 seconds at the 95th percentile tonight; "
        "usually it is 0.9 seconds.",
        tags=("measurement",),
    ),
    Line(
        volk=ALPHA,
        content="After a timeout the job resubmits the charge with a fresh request id, so the "
        "processor takes it for a new purchase.",
        key="cause/fresh-request-id",
        tags=("cause", "payments"),
        metadata={"importance": 1.0},
    ),
    Line(
        volk=ALPHA,
        content="The processor does honour an Idempotency-Key header for 24 hours; our client "
        "never sends one.",
        tags=("cause", "payments"),
        metadata={"importance": 0.9},
    ),
    Line(
        volk=BRAVO,
        content="Decision at 02:41: roll back to revision 77ab10 and pause the resubmission job.",
        tags=("decision",),
        metadata={"importance": 0.8},
    ),
    Line(
        volk=BRAVO,
        content="The rollback reached all six pods at 02:49; authorisations and orders are level "
        "again since 02:52.",
        tags=("measurement",),
    ),
    Line(
        volk=ALPHA,
        content="The emergency token of the processor's console is kept by the duty officer; "
        "I have to rotate it on Friday.",
        key=SECRET_KEY,
        tags=("todo",),
        classification=PRIVATE,
    ),
    Line(
        volk=ALPHA,
        content="I suspect the timeout was lowered because of a load test nobody reviewed; ask "
        "before saying so in the post-mortem.",
        classification=PRIVATE,
    ),
    Line(
        volk=BRAVO,
        content="214 duplicate authorisations between 01:52 and 02:50, 9,870.35 euros in total, "
        "by the query in ledger_check.sql.",
        key="count/duplicates",
        tags=("measurement", "payments"),
        metadata={"importance": 0.7},
    ),
    Line(
        volk=BRAVO,
        content="All 214 duplicates were voided before settlement at 04:30, so no shopper loses "
        "money.",
        tags=("decision", "customers"),
        metadata={"importance": 0.8},
    ),
    Line(
        volk=ALPHA,
        content="Lesson: every call that moves money carries an Idempotency-Key made from the "
        "order and the attempt's purpose, never from the attempt's time.",
        key=LESSON_KEY,
        tags=("lesson", "payments"),
        metadata={"importance": 1.0},
    ),
    Line(
        volk=ALPHA,
        content="Lesson: a client that gave up waiting does not know whether the server did the "
        "work; asking for the outcome comes before trying again.",
        tags=("lesson",),
        metadata={"importance": 0.9},
    ),
    Line(
        volk=BRAVO,
        content="Lesson: a lower timeout is a change of behaviour and needs a canary, like code.",
        tags=("lesson", "deployment"),
        metadata={"importance": 0.6},
    ),
    Line(
        volk=BRAVO,
        content="The dashboard of the warehouse printers was red all night; that is the toner "
        "and has nothing to do with this.",
        tags=("noise",),
    ),
    Line(
        volk=ALPHA,
        content="Coffee machine on the third floor is out of order until Thursday.",
        tags=("noise",),
    ),
    Line(
        volk=BRAVO,
        content="Post-mortem on Wednesday at 10:00 in room Tejo; Alpha presents the cause, Bravo "
        "the timeline.",
        tags=("meeting",),
    ),
    Line(
        volk=ALPHA,
        content="Tests to add: a processor stub that answers after the client's timeout, and a "
        "count of charges per order that must stay at one.",
        tags=("todo", "code"),
    ),
    Line(
        volk=BRAVO,
        content="New alert: duplicates per order above zero for one minute pages the payment "
        "team, not the platform.",
        tags=("alert", "decision"),
    ),
)
