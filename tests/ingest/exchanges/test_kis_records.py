"""Records are found in a frame whatever their length, and a broken one by itself."""

from hypothesis import given
from hypothesis import strategies as st

from ingest.exchanges.kis import FIELDS, split_records
from tests.ingest.adapters.frames import Deal, kis_fields

ASKED = {"005930", "000660"}


def record(code: str = "005930", *more: str, volume: int = 10) -> list[str]:
    """Return the fields of a trade, and further ones."""
    return [*kis_fields(Deal(code, 0, "71900", "1"), volume), *more]


def joined(*records: list[str]) -> list[str]:
    return [value for record in records for value in record]


@given(
    st.lists(st.sampled_from(sorted(ASKED)), min_size=1, max_size=9),
    st.integers(0, 5),
)
def test_a_frame_is_shared_out_among_its_records(codes: list[str], more: int) -> None:
    records = [record(code, *["x"] * more) for code in codes]
    assert split_records(joined(*records), f"{len(codes):03}", ASKED) == (records, 0)


def test_a_record_that_lacks_a_field_costs_itself() -> None:
    """Behind its date the record is refused; before it, nothing says that it begins."""
    for place in (0, 1, 2):
        for cut in (45, 5):
            records = [record(volume=n) for n in (1, 2, 3)]
            whole = [records[at] for at in range(3) if at != place]
            del records[place][cut]
            split, lost = split_records(joined(*records), "003", ASKED)
            taken = [part for part in split if len(part) >= FIELDS]
            assert [part[:FIELDS] for part in taken if part[33] == "20250730"] == whole
            assert len(split) + lost == 3


def test_more_records_than_announced_are_found() -> None:
    for announced in ("001", "002", "", "x", "-1", "999999999999"):
        records = [record(volume=n) for n in (1, 2, 3)]
        split, lost = split_records(joined(*records), announced, ASKED)
        assert split == records
        assert lost == (996 if announced.startswith("9") else 0)


def test_half_a_frame_gives_its_whole_records() -> None:
    records = [record(volume=n) for n in (1, 2, 3)]
    split, lost = split_records(joined(*records)[:100], "003", ASKED)
    assert [part[:FIELDS] for part in split] == records[:2]
    assert lost == 1


def test_a_wrong_code_or_time_is_left_to_its_record() -> None:
    records = [record(), record("00593"), record()]
    records[2][1] = "90001"
    assert split_records(joined(*records), "003", ASKED) == (records, 0)
    strangers = [record("999990"), record("999990")]
    assert split_records(joined(*strangers), "002", ASKED) == (strangers, 0)


def test_a_number_that_looks_like_a_code_begins_no_record() -> None:
    one = record("005930", "x", "000660", "123456")
    assert split_records(one, "001", ASKED) == ([one], 0)


def test_a_frame_without_a_record_is_lost_as_announced() -> None:
    for announced, lost in (("003", 3), ("0", 1), ("x", 1)):
        assert split_records(["garbage"] * 50, announced, ASKED) == ([], lost)
