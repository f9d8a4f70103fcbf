"""The clauses of trading statuses; their tables are tested with all others."""

import json
import re

from ingest.statuses.trading_status import STATUSES
from tests.doc_pages import section_of, text_of
from tests.gateway.asyncapi import check_message, document

SPEC = section_of("docs/spec/tick-v1-parts.md", "Trading statuses")


def test_a_clause_has_an_identifier_of_its_own_and_is_part_of_conformance() -> None:
    clauses = re.findall(r"^- \*\*(ST|CT)-(\d+)\*\* ", SPEC, re.MULTILINE)
    for kind in ("ST", "CT"):
        numbers = [int(number) for k, number in clauses if k == kind]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert f"{kind}-1 to {kind}-{len(numbers)}" in SPEC
        assert {*map(int, re.findall(rf"\b{kind}-(\d+)", SPEC))} <= {*numbers}


def test_the_words_are_those_of_the_code() -> None:
    [row] = re.findall(r"^\| `status` \| text \| \| (.*) \|$", SPEC, re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", row)) == STATUSES
    schema = document()["components"]["schemas"]["trading_status"]
    assert tuple(schema["properties"]["status"]["enum"]) == STATUSES
    page = text_of("docs/market.md")
    assert all(f"`{status}`" in page for status in STATUSES)


def test_examples_can_be_copied() -> None:
    pages = [SPEC, text_of("docs/market.md")]
    examples = re.findall(r'^\{"type".*\}$', "\n".join(pages), re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        check_message(json.loads(example))
