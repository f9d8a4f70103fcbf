"""How commands print what came from outside."""

import json

from cli.commands.tables import json_line


def test_json_is_one_line_in_which_nothing_acts_on_a_terminal() -> None:
    """It says the same as before; controls of eight bits are escaped, too."""
    value = {"name": "삼성\x7f\x9b\u202e\U000e0041", "n": [1, 2]}
    text = json.dumps(value, ensure_ascii=False, indent=2).encode()
    line = json_line(text).decode()
    assert line.isprintable()
    assert "삼성" in line
    assert json.loads(line) == value
