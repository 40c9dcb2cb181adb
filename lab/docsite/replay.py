"""Compares pages on a server with their replay from an archive, in Chromium.

Arguments: address of the live site, address of the pywb collection, file with one URL a line, folder for pictures.
It fails if a replayed page lacks a file that the live page gets, or if the pictures of the two differ.
"""
import io
import os
import shutil
import sys

from PIL import Image, ImageChops
from playwright.sync_api import sync_playwright

site, replay, urls, shots = sys.argv[1:5]
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
problems, loaded, most = [], 0, 0.0


def load(browser, address, live):
    """Returns the picture of a page and the requests that failed."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    failed, got = [], 0

    def answered(response):
        nonlocal got
        got += 1
        if response.status >= 400 and not response.url.endswith("/favicon.ico"):  # browsers ask for it unasked
            failed.append("%d %s" % (response.status, response.url))
    page.on("response", answered)
    page.on("requestfailed", lambda r: failed.append("%s %s" % (r.failure, r.url)))
    # Nothing may come from the live site while the archive is replayed.
    page.route("**/*", lambda r: r.continue_() if live or not r.request.url.startswith(site) else (failed.append("live " + r.request.url), r.abort()))
    page.goto(address, wait_until="networkidle")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    return picture, failed, got


with sync_playwright() as p:
    browser = p.chromium.launch(executable_path=chromium)
    for n, url in enumerate(open(urls).read().split()):
        live, missing, _ = load(browser, url, True)
        again, failed, got = load(browser, replay + "/" + url, False)
        loaded += got
        if len(failed) > len(missing):
            problems.append("%s: %s" % (url, ", ".join(failed)))
        box = ImageChops.difference(live, again).getbbox()
        share = 0.0
        if box:
            histogram = ImageChops.difference(live, again).convert("L").histogram()
            share = sum(histogram[8:]) / (live.width * live.height)
        most = max(most, share)
        if share > 0.001:
            problems.append("%s: %.2f %% of the picture differ" % (url, 100 * share))
        live.save(os.path.join(shots, "%02d-live.png" % n))
        again.save(os.path.join(shots, "%02d-replay.png" % n))
    browser.close()
print("%d pages, %d answers from the archive; at most %.3f %% of a picture differ" % (n + 1, loaded, 100 * most))
if problems:
    sys.exit("\n".join(problems))
