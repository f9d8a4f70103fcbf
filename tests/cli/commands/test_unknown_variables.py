"""A variable that sets nothing is named, with the place its value went to."""

from cli.commands.unknown_variables import unknown_variables, variables


def test_a_variable_that_sets_nothing_is_named() -> None:
    """A setting that is gone, or one misspelled, is not ignored in silence."""
    environment = ["TICKTHROTTLE_PROT", "TICKTHROTTLE_LEASE_S", "PATH", "REDIS_URI"]
    assert list(unknown_variables(environment)) == [
        "TICKTHROTTLE_LEASE_S is not a setting",
        "TICKTHROTTLE_PROT is not a setting",
    ]


def test_it_is_said_where_a_value_went() -> None:
    """Where another setting has taken it in."""
    assert list(unknown_variables(["TICKTHROTTLE_REQUEST_BURST"])) == [
        "TICKTHROTTLE_REQUEST_BURST is not a setting: it is ten seconds of "
        "TICKTHROTTLE_REQUESTS_PER_SECOND"
    ]


def test_settings_and_keys_of_feeds_are_known() -> None:
    """Processes share an environment; an adapter of one's own has keys of its own."""
    keys = ["TICKTHROTTLE_KIS_APPKEY", "TICKTHROTTLE_ACME_TOKEN_FILE"]
    assert list(unknown_variables([*variables(), *keys])) == []
