"""Options made of a class: names, types, words, and what a command is called with."""

from pathlib import Path
from typing import Literal

import pytest
import typer
from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from typer.testing import CliRunner

from cli.commands.feeds import TAPE_LINES
from cli.commands.setting_options import options_of, spell_lines
from ingest.sources.trade_lines import LineOptions


class Meal(BaseSettings):
    """Settings of every kind of type."""

    model_config = SettingsConfigDict(
        env_prefix="MEAL_", populate_by_name=True, use_attribute_docstrings=True
    )

    guests: int = Field(4, ge=1)
    """How many eat; ``1`` at least."""

    wine_price: float = 9.50
    """Of a bottle."""

    course: Literal["soup", "fish"] = "soup"
    """What comes first."""

    hot: bool = False
    """Warm it."""

    recipe: Path | None = Field(None, validation_alias="RECIPE")
    """Where it is
    written.
    """

    herbs: tuple[str, ...] = ()
    """What is strewn on it; may be repeated."""

    secret: str = ""
    """No option."""


class Table(BaseModel):
    """A class that is no settings class: it has no variables."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    legs: int = 4
    """To stand on."""


FIELDS = ("guests", "wine_price", "course", "hot", "recipe", "herbs")


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command with both classes' options; return exit code, output, errors."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    @options_of(Table, "legs")
    @options_of(Meal, *FIELDS, recipe="--book")
    def serve(*, loud: bool = False, meal: Meal, table: Table) -> None:
        typer.echo(repr((loud, *(getattr(meal, name) for name in FIELDS), table.legs)))

    done = CliRunner().invoke(app, list(arguments), env={"MEAL_SECRET": "x"})
    return done.exit_code, done.stdout, done.stderr


def test_what_is_not_said_is_left_to_the_class() -> None:
    expected = (False, 4, 9.5, "soup", False, None, (), 4)
    assert run() == (0, f"{expected!r}\n", "")


def test_every_kind_of_option_reaches_its_field() -> None:
    """Numbers, choices, flags, paths and lists; beside the command's own options."""
    given = "--loud --guests 2 --wine-price 7 --course fish --hot --book a.txt"
    herbs = "--herbs dill --herbs thyme --legs 3"
    _, output, _ = run(*given.split(), *herbs.split())
    path = Path("a.txt")
    herbs_given = ("dill", "thyme")
    assert output == f"{(True, 2, 7.0, 'fish', True, path, herbs_given, 3)!r}\n"


def test_a_variable_is_followed_and_an_option_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEAL_GUESTS", "7")
    assert run()[1].startswith("(False, 7,")
    assert run("--guests", "8")[1].startswith("(False, 8,")


def test_a_value_out_of_bounds_ends_the_command_with_one_sentence() -> None:
    code, _, errors = run("--guests", "0")
    assert code == 2
    assert errors.startswith("tickthrottle: guests 0: Input should be greater than")
    assert errors.count("\n") == 1


def test_help_tells_meaning_variable_and_default() -> None:
    """On one line each; what has no default or no variable shows none."""
    code, output, _ = run("--help")
    assert code == 0
    words = " ".join(output.split())
    assert "How many eat; `1` at least. [env: MEAL_GUESTS; default: 4]" in words
    assert "Of a bottle. [env: MEAL_WINE_PRICE; default: 9.5]" in words
    assert "--course <soup|fish> What comes first." in words
    assert "--hot Warm it. [env: MEAL_HOT]" in words
    assert "--book <path> Where it is written. [env: RECIPE]" in words
    assert "To stand on. [default: 4]" in words
    assert "--secret" not in words


def test_options_are_spelled_as_they_may_be_given() -> None:
    """Only those that are not as by default."""
    lines = LineOptions.model_validate(
        {
            "map": "isin=s,price=p",
            "delimiter": "tab",
            "time_zone": "Asia/Seoul",
            "instruments_file": "list.csv",
            "fold": "later",
            "set": "side=B",
            "scale": "price=1e-9",
            "unsigned": "size,price",
            "leave_out": ["type=cancel", "sale~~TU"],
            "venue": "XMKT",
            "updates": "us_equities:c:z",
        }
    )
    spelled = spell_lines(lines)
    assert " ".join(spelled) == (
        "--map isin=s,price=p --form delimiter=tab --form fold=later "
        "--form set=side=B --form scale=price=1E-9 --form unsigned=price,size "
        "--form leave-out=type=cancel --form leave-out=sale~~TU "
        "--form time-zone=Asia/Seoul --updates us_equities:c:z --venue XMKT=QX "
        "--instruments list.csv"
    )
    asked: list[LineOptions] = []

    @TAPE_LINES
    def read(*, options: LineOptions) -> None:
        asked.append(options)

    app = typer.Typer()
    app.command()(read)
    assert CliRunner().invoke(app, spelled).exit_code == 0
    assert asked == [lines]
    assert spell_lines(LineOptions()) == []
    quoteless = LineOptions(no_quotes=True, delimiter=" ", stamp="now")
    assert " ".join(spell_lines(quoteless)) == (
        "--form delimiter=space --form no-quotes --stamp now"
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("price=px", "form 'price=px': must be NAME=VALUE, NAME one of delimiter, "),
        ("fold", "form 'fold': must be NAME=VALUE"),
        ("fold=never", "fold never: Input should be 'earlier' or 'later'"),
    ],
)
def test_a_form_that_there_is_not_is_refused(text: str, rule: str) -> None:
    """With the names that there are, or with the rule of its field."""
    app = typer.Typer()
    app.command()(TAPE_LINES(take))
    done = CliRunner().invoke(app, ["--form", text])
    assert done.exit_code == 2
    assert rule in done.stderr
    twice = ["--form", "fold=later", "--form", "fold=later"]
    assert "is there twice" in CliRunner().invoke(app, twice).stderr


def take(*, options: LineOptions) -> None:
    """Take what there is."""
