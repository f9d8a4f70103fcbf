"""Who may run beside whom, in `make test-all`."""

from tests.scheduling import NETWORKS, worker_of


def test_browsers_and_containers_run_one_after_the_other() -> None:
    """A container's network would take a page's files away."""
    for file in ("tests/e2e/test_board_page.py", "tests/deploy/test_containers.py"):
        assert worker_of(file) == NETWORKS


def test_any_other_file_is_a_piece_of_its_own() -> None:
    """Also one that is not there."""
    for file in ("tests/throttle/contract/test_cut.py", "tests/test_nothing.py"):
        assert worker_of(file) == file
