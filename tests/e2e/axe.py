"""Looks for what keeps people from using a page, with axe-core."""

from typing import Any

from playwright.sync_api import Page

from tests.paths import ROOT

SCRIPT = ROOT / "tests" / "vendor" / "axe.min.js"
GRAVE = {"serious", "critical"}
LOOK = """(rules) => {
  // Halfway between two colours, a contrast is nobody's choice. What has no end stays.
  for (const animation of document.getAnimations()) {
    if (Number.isFinite(animation.effect?.getComputedTiming().endTime)) {
      animation.finish();
    }
  }
  return axe.run(rules.length ? { runOnly: rules } : {});
}"""


def grave_findings(page: Page, *rules: str) -> list[str]:
    """Return what axe finds serious or critical, a line for each.

    It looks at everything, or by these rules only, which takes less time. Changes of
    colour that are under way are over then.
    """
    # Through the debugger's protocol: the page's policy lets no script in.
    page.evaluate(SCRIPT.read_text("utf-8") + "; undefined")
    result: dict[str, Any] = page.evaluate(LOOK, list(rules))
    return [
        f"{found['id']}: {node['target']} {node['failureSummary']}"
        for found in result["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
