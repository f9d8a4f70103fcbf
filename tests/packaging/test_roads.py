"""Which test runs each command of a way to a live board, and each program of a page.

A test that runs one takes it from the page. So page and test cannot part; and what
nobody runs fails here.
"""

import re

from tests.doc_pages import blocks, commands, text_of
from tests.newcomer.guides import GUIDES as FOLLOWED
from tests.paths import ROOT

CONTAINERS = "tests/deploy/test_containers.py"
KUBERNETES = "tests/packaging/test_kubernetes.py"
MANIFESTS = "tests/deploy/test_manifests.py"
SYSTEMD = "tests/packaging/test_systemd.py"
INSTALLED = "tests/e2e/test_installed.py"
EXAMPLES = "tests/packaging/test_client_examples.py"
RUN = "tests/e2e/test_run.py"
OWN_PAGE = "tests/newcomer/test_own_page.py"
GUIDES = "tests/newcomer/test_guides.py::test_a_guide_shows_what_its_commands_print"

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
    **{f"docs/guides/{guide}.md": {r"": GUIDES} for guide in FOLLOWED},
    "docs/own-page.md": {
        r"TICKTHROTTLE_ALLOWED_ORIGINS=\S+ make run$": (
            f"{RUN}::test_make_run_starts_what_the_command_starts"
        ),
        r"python3 -m http.server ": f"{OWN_PAGE}::test_six_lines_are_a_page",
        r"npm |cd prices$|curl ": f"{OWN_PAGE}::test_a_page_of_a_framework",
    },
    "docs/feeding.md": {
        r"": (
            "tests/cli/commands/test_ingest.py"
            "::test_an_example_of_the_page_puts_its_trades_into_the_log"
        ),
    },
    "docs/kafka.md": {
        r"export PYTHONPATH=|tickthrottle run --feed none ": (
            "tests/e2e/test_run_topic.py"
            "::test_a_topic_of_others_is_on_the_board_and_nothing_is_appended"
        ),
    },
    "docs/clients.md": {r"curl ": f"{EXAMPLES}::test_an_example_prints_the_price"},
}

EXAMPLE = f"{EXAMPLES}::test_an_example_prints_the_price"
FRAMEWORK = f"{OWN_PAGE}::test_a_page_of_a_framework"
ARCHIVE = "tests/archive/test_docs.py::test_the_query_for_pandas"
PRODUCER = "tests/clients/test_producer.py::test_the_example_of_a_page_runs"
DECODE = (
    "tests/cli/commands/test_decode.py::test_the_decoders_of_the_page_read_what_it_says"
)
TO_THE_END = (
    "tests/archive/topics/test_to_the_end.py"
    "::test_what_is_published_is_counted_to_its_end"
)
PROGRAMS = {
    "README.md": {"js": [EXAMPLE]},
    "clients/js/README.md": {"js": [EXAMPLE]},
    "clients/python/README.md": {"python": [EXAMPLE, PRODUCER]},
    "docs/adapters.md": {
        "python": [
            "tests/ingest/adapters/test_docs.py"
            "::test_the_example_of_an_own_adapter_works_as_it_stands"
        ]
    },
    "docs/archive.md": {"python": [ARCHIVE, ARCHIVE]},
    "docs/clients.md": {
        "python": [EXAMPLE, EXAMPLE],
        "py": [
            "tests/clients/test_rest_client.py"
            "::test_the_example_of_the_page_prints_tables"
        ],
        "js": [EXAMPLE],
        "ts": [
            "tests/clients/js/test_npm_package.py"
            "::test_the_types_are_what_the_compiler_takes"
        ],
        "go": [EXAMPLE],
    },
    "docs/conditions.md": {
        "python": [
            "tests/cli/commands/test_ingest.py::test_the_example_of_a_decoder_is_right"
        ]
    },
    "docs/guides/login.md": {"python": [GUIDES]},
    "docs/kafka.md": {
        "python": [
            DECODE,
            DECODE,
            "tests/throttle/test_frames.py::test_the_decoder_is_that_of_the_page",
            "tests/archive/topics/test_avro.py::test_trades_in_avro_are_decoded",
        ]
    },
    "docs/own-page.md": {
        "html": [f"{OWN_PAGE}::test_six_lines_are_a_page"],
        "js": [
            FRAMEWORK,
            FRAMEWORK,
            f"{OWN_PAGE}::test_events_go_on_with_a_new_ticket",
        ],
        "jsx": [FRAMEWORK],
        "vue": [FRAMEWORK],
        "python": [
            f"{OWN_PAGE}::test_the_login_of_the_page_signs_tickets_that_open_streams"
        ],
    },
    "docs/producing.md": {"python": [PRODUCER]},
    "docs/protocol.md": {
        "python": [
            "tests/gateway/test_groups.py"
            "::test_a_newcomer_sees_a_market_and_the_figures_of_a_sector",
            "tests/clients/test_tick_client.py::test_the_example_of_the_document_runs",
        ],
        "js": ["tests/e2e/test_tick_js.py::test_the_example_of_the_document_runs"],
    },
    "docs/status.md": {
        "python": [
            "tests/gateway/test_statuses.py::test_the_example_of_the_document_runs"
        ]
    },
    "docs/testing.md": {
        "python": ["tests/test_docs.py::test_the_examples_of_the_test_drivers_hold"] * 2
    },
    "docs/topics.md": {"python": [TO_THE_END], "java": [TO_THE_END]},
    "docs/trades.md": {"python": [EXAMPLE], "js": [EXAMPLE]},
}
"""The test that runs each program of a page, in their order, by language."""

LANGUAGES = ("go", "html", "java", "js", "jsx", "py", "python", "ts", "vue")


def test_every_program_of_a_page_is_run_by_a_test() -> None:
    """Neither a page nor a test is without the other."""
    forms = ("*.md", "docs/*.md", "docs/guides/*.md", "bench/*.md", "clients/*/*.md")
    for path in [path for form in forms for path in ROOT.glob(form)]:
        page = str(path.relative_to(ROOT))
        tests = PROGRAMS.get(page, {})
        for language in LANGUAGES:
            assert len(blocks(page, language)) == len(tests.get(language, [])), page
        for test in {test for each in tests.values() for test in each}:
            assert is_there(test), test


def is_there(test: str) -> bool:
    """Tell whether a file has a test."""
    file, _, name = test.partition("::")
    return f"def {name}(" in text_of(file)


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
            assert is_there(test), test


def test_the_front_page_starts_as_the_quick_start_does() -> None:
    """What runs for the one runs for the other."""
    front = (ROOT / "README.md").read_text("utf-8")
    for command in commands("docs/quickstart.md", "make|printf"):
        assert f"\n{command}\n" in front
