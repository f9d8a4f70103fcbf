"""Reports: clause by clause."""

from conformance.trial_report import Report, Trial, markdown_table

TRIALS = (
    Trial("fine", ("C-1", "C-2")),
    Trial("bad", ("C-2", "C-3"), (("C-3", "it is odd"),)),
    Trial("away", ("C-4",), left_out="it says nothing"),
)
REPORT = Report("one", ("C-1", "C-2", "C-3", "C-4", "C-5"), TRIALS)


def test_a_clause_has_failed_if_any_trial_found_it_broken() -> None:
    """One that no trial was about, or none that took place, is not tried."""
    assert REPORT.states() == {
        **{"C-1": "passed", "C-2": "passed", "C-3": "failed"},
        **{"C-4": "not tried", "C-5": "not tried"},
    }
    assert not REPORT.is_clean
    assert Report("two", ("C-1",), TRIALS[:1]).is_clean


def test_the_text_says_what_failed_and_what_is_left() -> None:
    """A line for each breach, the sums at the end."""
    text = REPORT.to_text()
    assert "FAILED C-3: bad: it is odd" in text
    assert "clauses not tried: C-4, C-5" in text
    assert text.endswith("5 clauses: 2 passed, 1 failed, 2 not tried")


def test_the_table_has_a_line_for_each_clause_that_any_report_tried() -> None:
    """A clause that none of them tried is named below."""
    other = Report("two", ("S-1",), (Trial("t", ("S-1",)),))
    assert markdown_table([REPORT.to_json(), other.to_json()]).splitlines() == [
        "| clause | one | two |",
        "| --- | --- | --- |",
        "| C-1 | yes | - |",
        "| C-2 | yes | - |",
        "| C-3 | **no** | - |",
        "| S-1 | - | yes |",
        "| passed, failed, not tried | 2, 1, 2 | 1, 0, 0 |",
        "",
        "No trial for: C-4, C-5.",
    ]
