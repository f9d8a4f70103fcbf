"""Each way to a live board: every command of its page is run by a test, or told here.

A test that runs a command takes it from the page. So page and test cannot part; and a
command that nobody runs fails here.
"""

import re

from tests.doc_pages import commands, text_of
from tests.paths import ROOT

CONTAINERS = "tests/deploy/test_containers.py"
KUBERNETES = "tests/packaging/test_kubernetes.py"
MANIFESTS = "tests/deploy/test_manifests.py"
SYSTEMD = "tests/packaging/test_systemd.py"
INSTALLED = "tests/e2e/test_installed.py"
EXAMPLES = "tests/packaging/test_client_examples.py"
RUN = "tests/e2e/test_run.py"
OWN_PAGE = "tests/newcomer/test_own_page.py"

ROADS = {
    "docs/quickstart.md": {
        r"make run$": f"{RUN}::test_make_run_starts_what_the_command_starts",
        r"printf |curl ": (
            f"{RUN}::test_a_tape_is_live_on_the_page_and_commands_find_it"
        ),
    },
    "docs/running.md": {
        r"make dist|.*~/tickthrottle": (
            f"{INSTALLED}::test_with_all_wheels_the_pipeline_runs_and_ctrl_c_ends_it"
        ),
        r"tickthrottle gateway --workers 2$": (
            "tests/deploy/test_services.py"
            "::test_a_process_says_that_it_is_ready_and_ends_when_told"
        ),
    },
    "docs/containers.md": {
        r"podman run --rm": f"{CONTAINERS}::test_one_image_is_a_live_board",
        r"podman run --detach": (
            f"{CONTAINERS}::test_a_container_ends_at_once_when_told"
        ),
        r"podman (build|image)": (
            f"{CONTAINERS}::test_the_images_pass_the_trial_of_a_release"
        ),
        r"docker compose": f"{CONTAINERS}::test_a_price_arrives_over_tls",
        r"export REDIS_URL=": (
            f"{CONTAINERS}::test_trades_of_ones_own_go_in_at_the_published_port"
        ),
    },
    "docs/kubernetes.md": {
        r"kubectl -n tickthrottle exec": (
            f"{KUBERNETES}::test_the_pages_commands_work_in_the_pods"
        ),
        r"kubectl -n \w+ create secret": (
            f"{MANIFESTS}::test_the_pages_commands_make_the_secrets_that_manifests_name"
        ),
        # These ask a cluster. What they name is held to what there is; podman runs the
        # pods of the folder that is applied.
        r"kubectl (create namespace|apply|label)|kubectl .* (rollout|port-forward)": (
            f"{MANIFESTS}::test_the_pages_other_commands_are_about_what_there_is"
        ),
    },
    "docs/services.md": {
        r"apt-get |python3 |/opt/|cp |mkdir |echo |chmod |systemctl ": (
            f"{SYSTEMD}::test_the_pages_commands_give_a_live_board"
        ),
    },
    "docs/own-page.md": {
        r"TICKTHROTTLE_ALLOWED_ORIGINS=\S+ make run$": (
            f"{RUN}::test_make_run_starts_what_the_command_starts"
        ),
        r"python3 -m http.server ": f"{OWN_PAGE}::test_six_lines_are_a_page",
        r"npm |cd prices$|curl ": f"{OWN_PAGE}::test_a_page_of_a_framework",
    },
    "docs/clients.md": {r"curl ": f"{EXAMPLES}::test_an_example_prints_the_price"},
}


def test_every_command_of_a_page_is_run_by_a_test() -> None:
    """By one that there is; and no test is named for a command that is gone."""
    for page, tests in ROADS.items():
        unused = dict(tests)
        for command in commands(page):
            [pattern] = [p for p in tests if re.match(p, command)] or [None]
            assert pattern is not None, f"{page}: nobody runs {command!r}"
            unused.pop(pattern, None)
        assert not unused, page
        for test in tests.values():
            file, _, name = test.partition("::")
            assert f"def {name}(" in text_of(file), test


def test_the_front_page_starts_as_the_quick_start_does() -> None:
    """What runs for the one runs for the other."""
    front = (ROOT / "README.md").read_text("utf-8")
    for command in commands("docs/quickstart.md", "make|printf"):
        assert f"\n{command}\n" in front
