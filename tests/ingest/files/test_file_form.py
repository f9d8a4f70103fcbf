"""Options of a file's form: what is taken, what is refused."""

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from ingest.files.file_form import FileForm


def test_characters_have_words() -> None:
    """What is hard to type in a shell has a name."""
    assert FileForm(delimiter="tab").delimiter == "\t"
    assert FileForm(delimiter="\\t").delimiter == "\t"
    assert FileForm(delimiter=";").delimiter == ";"
    assert FileForm(thousands="space").thousands == " "


@pytest.mark.parametrize("encoding", ["cp949", "EUC-KR", "utf-16", "latin-1", "UTF8"])
def test_any_encoding_of_text_is_taken(encoding: str) -> None:
    """By each of its names."""
    assert "71900".encode(FileForm(encoding=encoding).encoding)


def test_a_column_without_a_name_is_left_out() -> None:
    """An underscore, or nothing."""
    form = FileForm(columns="seq, price,_,size,")
    assert form.column_names == ["seq", "price", "", "size", ""]
    assert FileForm().column_names == []


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"delimiter": '"'}, "must be one character"),
        ({"delimiter": "ab"}, "must be one character"),
        ({"delimiter": "a"}, "must be one character"),
        ({"encoding": "base64"}, "must be an encoding that Python has"),
        ({"encoding": "nonsense"}, "must be an encoding that Python has"),
        ({"encoding": "a\x00b"}, "must be an encoding that Python has"),
        ({"thousands": "x"}, "must be one of"),
        ({"decimal_mark": ";"}, "should match pattern"),
        ({"thousands": ",", "decimal_mark": ","}, "must differ"),
        ({"columns": "price,price"}, "needs a name of its own"),
        ({"columns": "_,"}, "must name at least one"),
        ({"map": "price"}, "must be like price=px"),
        ({"map": "price=a,price=b"}, "is there twice"),
        ({"map": "price=a,size=a"}, "can be one field only"),
    ],
)
def test_bad_options_are_refused(options: Mapping[str, str], rule: str) -> None:
    """With the rule that they break."""
    with pytest.raises(ValidationError, match=rule):
        FileForm.model_validate(options)
