"""How a job that is about to publish is noted."""

from throttle.contract.candidate import (
    candidate_field,
    decode_candidates,
    encode_candidate,
)


def test_a_candidate_is_there_until_its_time() -> None:
    """What is too old, or was written by somebody else, is none."""
    meta = {
        candidate_field("job").encode(): encode_candidate("host:1:a", 2_000).encode(),
        b"candidate:gone": b"1000 host:2:b",
        b"candidate:odd": b"soon host:3:c",
        b"candidate:\xff": b"\xff",
        b"term:job": b"9000 host:4:d",
    }
    assert decode_candidates(meta, 1_000) == {"job": "host:1:a"}
    assert decode_candidates(meta, 2_000) == {}
