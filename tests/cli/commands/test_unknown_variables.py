"""A variable that sets nothing is named."""

from cli.commands.unknown_variables import unknown_variables, variables


def test_a_variable_that_sets_nothing_is_named() -> None:
    """A setting that is gone, or one misspelled, is not ignored in silence."""
    environment = ["TICKTHROTTLE_PROT", "TICKTHROTTLE_LEASE_S", "PATH", "REDIS_URI"]
    assert list(unknown_variables(environment)) == [
        "TICKTHROTTLE_LEASE_S is not a setting",
        "TICKTHROTTLE_PROT is not a setting",
    ]


def test_what_is_an_option_alone_is_said_to_be_one() -> None:
    """Of run; a variable for it would set nothing."""
    names = ["TICKTHROTTLE_FEED_SYMBOLS", "TICKTHROTTLE_TAPE"]
    assert list(unknown_variables(names)) == [
        "TICKTHROTTLE_FEED_SYMBOLS is not a setting: it is the option --symbols of run",
        "TICKTHROTTLE_TAPE is not a setting: it is the option --tape of run",
    ]


def test_settings_and_keys_of_feeds_are_known() -> None:
    """Processes share an environment; an adapter of one's own has keys of its own."""
    keys = ["TICKTHROTTLE_KIS_APPKEY", "TICKTHROTTLE_ACME_TOKEN_FILE"]
    assert list(unknown_variables([*variables(), *keys])) == []
