"""The pipeline's description of itself: nothing is missing, nothing secret is in it."""

import ast
import re

from archive.describe import archive_parts
from archive.settings import ArchiveSettings
from ingest.process.docstrings import keys_of, settings_of
from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogInfo
from tests.paths import ROOT
from throttle.describe.sub_topology import analytics_parts
from throttle.describe.topology import to_mermaid, to_text
from throttle.settings import AnalyticsSettings, ThrottleSettings

STAGES = ("source", "conflate", "batch", "publisher")
INFO = LogInfo("a1b2", partitions=3, created_ms=0)
SETTINGS = ThrottleSettings(
    redis_url="redis://me:secret@somewhere:7000/2?password=hidden",
    namespace="ns",
    job="night",
    window_ms=500,
    spark_conf={
        "spark.ssl.keyStorePassword": "hidden",
        "spark.authenticate.secret": "hidden",
        "spark.some.access.key": "hidden",
        "spark.cores.max": "4",
    },
)

NODE = re.compile(
    r"  (?:  )?\w+"
    r'(?:\("[^"]*"\)|\["[^"]*"\]|\[\("[^"]*"\)\]|\(\["[^"]*"\]\))'
)
EDGE = re.compile(r"  (?:  )?\w+(?: -->(?:\|\w+\|)? \w+)+")


def text_of(settings: ThrottleSettings = SETTINGS, info: LogInfo | None = INFO) -> str:
    """Return a description as text, on one line."""
    return " ".join(to_text(settings, info).split())


def key_names() -> set[str]:
    """Return the names of all that ``Keys`` defines, from its source."""
    path = ROOT / "ingest" / "redis_keys.py"
    [keys] = [
        node
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Keys"
    ]
    return {node.name for node in keys.body if isinstance(node, ast.FunctionDef)}


def test_every_key_and_channel_is_described() -> None:
    """A key that is added appears by itself, with the words of its docstring."""
    keys = {key.name: key for key in keys_of(Keys("ns"), "night")}
    assert keys.keys() == key_names()
    kinds = {"windows": "stream", "updates": "channel", "ledger": "hash"}
    assert {name: keys[name].kind for name in kinds} == kinds
    assert keys["ledger"].key == Keys("ns").ledger("night")
    text = text_of()
    for key in keys.values():
        assert len(key.holds.split()) > 3
        assert f"{key.key}: {key.holds}" in text


def test_every_setting_is_described_with_its_value() -> None:
    """Name, variable, value in force, and the words of its docstring."""
    described = list(settings_of(SETTINGS))
    assert [one.name for one in described] == list(ThrottleSettings.model_fields)
    text = text_of()
    for setting in described:
        assert len(setting.means.split()) > 3
        assert f"{setting.variable} = {setting.value or 'not set'}: " in text
    assert "TICKTHROTTLE_WINDOW_MS = 500" in text


def test_a_password_is_not_in_it() -> None:
    """A description can be pasted anywhere."""
    for shown in (to_text(SETTINGS, INFO), to_mermaid(SETTINGS, INFO)):
        assert ":secret@" not in shown
        assert "hidden" not in shown
        assert "redis://somewhere:7000/2" in shown
    assert "spark.ssl.keyStorePassword=***" in text_of()
    assert "spark.cores.max=4" in text_of()


def test_a_log_says_its_partitions_itself_if_it_is_there() -> None:
    """Its own number counts; nobody shall take a configured one for a fact."""
    assert (
        "streams: ns:log:0, ns:log:1, ns:log:2 partitions: 3, the log's own (a1b2)"
        in (text_of())
    )
    assert "as configured" not in to_mermaid(SETTINGS, INFO)
    settings = ThrottleSettings(partitions=1)
    assert "streams: tt:log:0 partitions: 1, as configured" in text_of(settings, None)
    assert "1 partitions (as configured)" in to_mermaid(settings, None)


def test_the_rules_are_in_it() -> None:
    """How windows are cut, what is grouped by, and which trade is the latest."""
    for rule in (
        "crc32 of the ISIN",
        "per window, key, partition",
        "order: time, seq, position",
    ):
        assert rule in text_of()
    for stage in STAGES:
        assert re.search(rf" {stage}: \w+ \w+", text_of())


def drawn() -> list[str]:
    """Draw all of the pipeline."""
    analytics = AnalyticsSettings(analytics="bars,movers,bursts,moves")
    [archive, *_] = archive_parts(ArchiveSettings())
    parts = analytics_parts(analytics)
    queries = [part for part in parts if part.name in analytics.products()]
    return to_mermaid(SETTINGS, INFO, queries, archive).splitlines()


def test_the_flowchart_is_made_of_nodes_and_edges_mermaid_knows() -> None:
    """Labels are quoted and hold nothing that would end them."""
    first, *lines = drawn()
    assert first == "flowchart LR"
    for line in lines:
        if line.strip() in ("end", "direction LR"):
            continue
        match = NODE.fullmatch(line.replace("subgraph ", "")) or EDGE.fullmatch(line)
        assert match, line
        label = re.sub(r"<br/>|#\w+;", "", "".join(re.findall(r'"[^"]*"', line)))
        assert not set(label) & set("<>#`"), line


def test_every_key_and_stage_is_a_node_of_the_flowchart() -> None:
    """And every edge leads from a node to a node."""
    lines = drawn()
    matches = (re.match(r" +(?:subgraph )?(\w+)[(\[]", line) for line in lines)
    nodes = {match[1] for match in matches if match}
    assert nodes >= {f"key_{name}" for name in key_names()} | set(STAGES)
    assert nodes >= {"feeds", "log", "gateways", "archive"}
    assert nodes >= {"bars", "movers", "bursts", "moves"}
    for line in lines:
        if "-->" in line:
            ends = re.sub(r"\|\w+\|", "", line).split("-->")
            assert {end.strip() for end in ends} <= nodes, line


def test_what_means_something_to_mermaid_is_written_as_an_entity() -> None:
    """A namespace or a docstring cannot break the drawing."""
    settings = ThrottleSettings(redis_url='redis://a"b<c>#d`:1')
    assert "redis://a#quot;b#lt;c#gt;" in to_mermaid(settings, None)
