"""The pipeline's description of itself: nothing is missing, nothing secret is in it."""

import ast
import re

import pytest

from archive.describe import archive_parts
from archive.settings import ArchiveSettings
from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogInfo
from tests.paths import ROOT
from throttle.describe.render import to_mermaid, to_text
from throttle.describe.sub_topology import analytics_parts
from throttle.describe.topology import STAGES, Topology, describe
from throttle.settings import AnalyticsSettings, ThrottleSettings

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


@pytest.fixture
def topology() -> Topology:
    """The description of a job over a log that is there."""
    return describe(SETTINGS, INFO)


def key_names() -> set[str]:
    """Return the names of all that ``Keys`` defines, from its source."""
    path = ROOT / "ingest" / "redis_keys.py"
    [keys] = [
        node
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Keys"
    ]
    return {node.name for node in keys.body if isinstance(node, ast.FunctionDef)}


def test_every_key_and_channel_is_described(topology: Topology) -> None:
    """A key that is added appears by itself, with the words of its docstring."""
    assert {key.name for key in topology.keys} == key_names()
    assert {"meta", "updates", "lease", "ledger", "batches"} <= key_names()
    shown = {key.key: key for key in topology.keys}
    assert shown[Keys("ns").windows].kind == "stream"
    assert shown[Keys("ns").updates].kind == "channel"
    assert shown[Keys("ns").ledger("night")].kind == "hash"
    assert all(len(key.holds.split()) > 3 for key in topology.keys)


def test_every_setting_is_described_with_its_value(topology: Topology) -> None:
    """Name, variable, value in force, and the words of its docstring."""
    fields = ThrottleSettings.model_fields
    assert [one.name for one in topology.settings] == list(fields)
    by_variable = {one.variable: one for one in topology.settings}
    assert by_variable["TICKTHROTTLE_WINDOW_MS"].value == "500"
    assert by_variable["REDIS_URL"].name == "redis_url"
    assert all(len(one.means.split()) > 3 for one in topology.settings)


def test_a_password_is_not_in_it(topology: Topology) -> None:
    """A description can be pasted anywhere."""
    assert topology.address == "redis://somewhere:7000/2"
    for shown in (to_text(topology), to_mermaid(topology), str(topology)):
        assert ":secret@" not in shown
        assert "hidden" not in shown
        assert "redis://somewhere:7000/2" in shown
    shown = to_text(topology)
    assert "spark.ssl.keyStorePassword=***" in shown
    assert "spark.cores.max=4" in shown


def test_a_log_that_is_there_says_its_partitions_itself(topology: Topology) -> None:
    """Its own number counts, not the configured one."""
    assert topology.partitions == 3
    assert topology.streams == ("ns:log:0", "ns:log:1", "ns:log:2")
    assert "partitions: 3, the log's own (a1b2)" in to_text(topology)
    assert "as configured" not in to_mermaid(topology)


def test_without_a_log_the_configured_partitions_are_told_as_such() -> None:
    """Nobody shall take a default for a fact."""
    topology = describe(ThrottleSettings(partitions=1), None)
    assert topology.streams == ("tt:log:0",)
    assert "partitions: 1, as configured" in to_text(topology)
    assert "1 partitions (as configured)" in to_mermaid(topology)


def test_the_rules_are_in_it(topology: Topology) -> None:
    """How windows are cut, what is grouped by, and which trade is the latest."""
    assert topology.order == ("time", "seq", "position")
    text = " ".join(to_text(topology).split())
    for rule in (topology.cut, topology.grouping, "crc32 of the ISIN"):
        assert rule in text
    assert "per window, key, partition" in topology.grouping
    assert "order: time, seq, position" in text


def test_every_key_setting_and_stage_is_in_the_text(topology: Topology) -> None:
    """What is described is also shown."""
    text = " ".join(to_text(topology).split())
    for key in topology.keys:
        assert f"{key.key}: {key.holds}" in text
    for setting in topology.settings:
        assert f"{setting.variable} = {setting.value or 'not set'}: " in text
    for stage in topology.stages:
        assert f"{stage.name}: {stage.does}" in text
    assert len(topology.stages) == len(STAGES)


def drawn(topology: Topology) -> str:
    """Draw all of the pipeline."""
    analytics = AnalyticsSettings(analytics="bars,movers,bursts,moves")
    [archive, *_] = archive_parts(ArchiveSettings())
    parts = analytics_parts(analytics)
    queries = [part for part in parts if part.name in analytics.products()]
    return to_mermaid(topology, queries, archive)


def test_the_flowchart_is_made_of_nodes_and_edges_mermaid_knows(
    topology: Topology,
) -> None:
    """Labels are quoted and hold nothing that would end them."""
    first, *lines = drawn(topology).splitlines()
    assert first == "flowchart LR"
    for line in lines:
        if line.strip() in ("end", "direction LR"):
            continue
        known = NODE.fullmatch(line.replace("subgraph ", "")) or EDGE.fullmatch(line)
        assert known, line
        label = re.sub(r"<br/>|#\w+;", "", "".join(re.findall(r'"[^"]*"', line)))
        assert not set(label) & set("<>#`"), line


def test_every_key_and_stage_is_a_node_of_the_flowchart(topology: Topology) -> None:
    """And every edge leads from a node to a node."""
    lines = drawn(topology).splitlines()
    nodes = {
        found[1]
        for line in lines
        if (found := re.match(r" +(?:subgraph )?(\w+)[(\[]", line))
    }
    names = {key.name for key in topology.keys}
    assert nodes >= {f"key_{name}" for name in names} | {"feeds", "log", "gateways"}
    assert nodes >= {stage.name for stage in topology.stages}
    assert nodes >= {"bars", "movers", "bursts", "moves", "archive"}
    for line in lines:
        if "-->" in line:
            ends = re.sub(r"\|\w+\|", "", line).split("-->")
            assert {end.strip() for end in ends} <= nodes, line


def test_what_means_something_to_mermaid_is_written_as_an_entity() -> None:
    """A namespace or a docstring cannot break the drawing."""
    topology = describe(ThrottleSettings(redis_url='redis://a"b<c>#d`:1'), None)
    assert "redis://a#quot;b#lt;c#gt;" in to_mermaid(topology)
