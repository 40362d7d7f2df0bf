"""What every page of scores has to hold in a browser, light and dark, on a screen and on a phone."""

from __future__ import annotations

from pathlib import Path

from tests.eval.common import test_run_report_browser as shared

LOUD = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
# The least contrast of any text with what lies behind it (WCAG 2.2, 1.4.3, is 4.5), as [ratio, words].
LEAST_CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = node => { for (let at = node; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor); if (colour[3] === 255) return colour; }
    return [255, 255, 255, 255]; };
  let least = [99, ''];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!own || !node.getClientRects().length || node.closest('title, desc')) continue;
    const style = getComputedStyle(node);
    const ink = light(rgba(node instanceof SVGElement ? style.fill : style.color));
    const ground = light(behind(node));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < least[0]) least = [ratio, node.textContent.trim().slice(0, 60)];
  }
  return least; })()"""
# Text of plots that reaches over the edge of its plot.
CUT_OFF = """[...document.querySelectorAll('.drawn svg')].flatMap(svg => {
  const all = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => { const one = text.getBoundingClientRect();
    return one.width && (one.left < all.left - 1 || one.right > all.right + 1 || one.top < all.top - 1
      || one.bottom > all.bottom + 1); }).map(text => text.textContent); })"""
ROOT = "document.documentElement"


async def check_page(address: str, profile: Path) -> None:
    """Nothing is asked of the network, no complaint, no sideways scrolling, contrast, no text cut off."""
    async with shared.browser(profile) as tab:
        for scheme in ("light", "dark"):
            for width in (390, 1280):
                media = [{"name": "prefers-color-scheme", "value": scheme}]
                await tab.send("Emulation.setEmulatedMedia", features=media)
                await tab.send(
                    "Emulation.setDeviceMetricsOverride",
                    width=width,
                    height=900,
                    deviceScaleFactor=1,
                    mobile=width < 500,
                )
                await tab.send("Page.navigate", url="about:blank")
                await tab.send("Page.navigate", url=address)
                await tab.until(
                    "document.readyState === 'complete' && document.querySelector('footer') !== null"
                )
                case = f"{scheme}, {width} px"
                assert await tab.js(f"{ROOT}.scrollWidth <= {ROOT}.clientWidth"), case
                dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"
                assert await tab.js(dark) == (scheme == "dark"), case
                assert await tab.js("[...document.images].every(image => image.naturalWidth > 0)"), case
                least, words = await tab.js(LEAST_CONTRAST)
                assert least >= 4.5, (case, words, least)
                assert await tab.js(CUT_OFF) == [], case
                seen = "[...document.querySelectorAll('.drawn')].some(plot => plot.getClientRects().length)"
                assert await tab.js(seen), case
        assert [event for event in tab.events if event["method"] in LOUD] == []
        asked = {
            event["params"]["request"]["url"].split(":")[0]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert asked <= {"file", "data", "about"}
