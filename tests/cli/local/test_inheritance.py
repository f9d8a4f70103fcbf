"""What a run's parts take from the environment, and what they do not."""

from archive.settings import ArchiveSettings
from cli.local.inheritance import (
    OF_A_DEPLOYMENT,
    OF_A_LOG,
    in_words,
    inherited,
    variable_name,
)
from gateway.settings import GatewaySettings
from ingest.settings import IngestSettings
from throttle.settings import AnalyticsSettings, ThrottleSettings

SHARED = {
    *("metrics_dir", "state_dir", "java_home", "docs_url"),
    *("token_key_file", "operators_token_file", "chain_key_file"),
}
"""Places that a run sets by itself, or that are for any gateway and any job."""
PLACES = ("_url", "_servers", "_topic", "_dir", "_file", "_config", "_checkpoint")


def test_a_market_of_the_runs_own_goes_into_no_log_of_the_users() -> None:
    """And a log of the user's is read with the settings that belong to it."""
    for variable in map(variable_name, OF_A_LOG):
        environment = {variable: "x", "PATH": "/bin"}
        shared, left_out = inherited(environment, follows_log=False)
        assert (shared, left_out) == ({"PATH": "/bin"}, [variable])
        assert inherited(environment, follows_log=True) == (environment, [])


def test_a_run_has_its_own_server_state_and_archive() -> None:
    for variable in map(variable_name, OF_A_DEPLOYMENT):
        for follows_log in (True, False):
            shared, left_out = inherited({variable: "x"}, follows_log=follows_log)
            assert (shared, left_out) == ({}, [variable])


def test_an_empty_variable_is_no_news() -> None:
    assert inherited({"REDIS_URL": ""}, follows_log=False) == ({}, [])


def test_it_is_said_in_one_line() -> None:
    """With the way to follow a log, where one is named."""
    assert in_words(["REDIS_URL"]) == "REDIS_URL: a run has its own"
    assert in_words(["TICKTHROTTLE_TRADE_LOG", "REDIS_URL"]) == (
        "TICKTHROTTLE_TRADE_LOG, REDIS_URL: a run has its own; with --feed none it "
        "follows the log that they name"
    )


def test_it_is_decided_of_every_setting_that_names_a_place() -> None:
    """One that is added must be shared on purpose, or left out."""
    kinds = (
        *(IngestSettings, ThrottleSettings, AnalyticsSettings),
        *(GatewaySettings, ArchiveSettings),
    )
    names = {name for kind in kinds for name in kind.model_fields}
    places = {name for name in names if name.endswith(PLACES)}
    assert places - SHARED <= {*OF_A_LOG, *OF_A_DEPLOYMENT}
