"""Uses every page of a UI server in Chromium, at two widths and in two colour schemes.

Arguments: address of the server (started with --control), address of the crawled hostile site, folder for screenshots
("" for none). It fails if a page is wider than the window, if the console reports an error, if a request leaves the
server, if something of the site runs, or if a control does not work.
"""
import os
import shutil
import sys
from playwright.sync_api import sync_playwright

base, site, shots = sys.argv[1:4]
problems = []
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not chromium:
    sys.exit("there is no chromium: install it, as in 'apt-get install chromium'")


def check(ok, what):
    if not ok:
        problems.append(what)


def quote(url):
    from urllib.parse import quote as q
    return q(url, safe="")


PAGES = ["/", "/hosts", "/partitions", "/topics", "/crawls", "/report", "/search/", "/search/?q=evil", "/explain",
         "/explain?url=" + quote(site + "/evil"), "/explain?url=" + quote(site + "/gone"),
         "/explain?url=" + quote(site.removeprefix("http://")), "/nothing"]


def watch(page):
    def console(m):
        # The stored page is blocked in several ways, each with a message. A missing page reports its status.
        expected = "sandboxed" in m.text or "status of 404" in m.text or "has been blocked" in m.text and "%2Fevil" in page.url
        check(m.type != "error" or expected, "console of %s: %s" % (page.url, m.text))
    page.on("console", console)
    page.on("pageerror", lambda e: problems.append("script error at %s: %s" % (page.url, e)))
    page.on("dialog", lambda d: (problems.append("dialog: " + d.message), d.dismiss()))
    page.on("response", lambda r: check(r.url.startswith(base) or r.url.startswith("file:"), "answer of " + r.url))


def look(browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme, accept_downloads=True)
    page = context.new_page()
    watch(page)
    for n, path in enumerate(PAGES):
        page.goto(base + path)
        check("ran" != page.title(), "a script of the site ran at " + path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, "%s is %d wide at %d" % (path, wide, width))
        # Every field has a label, and every page one main part.
        check(page.evaluate("[...document.querySelectorAll('input:not([type=hidden])')].every(i => i.labels.length || i.ariaLabel)"), "a field without a label at " + path)
        check(page.locator("main").count() == 1, "no main part at " + path)
        if shots:
            page.screenshot(path=os.path.join(shots, "%02d-%d-%s.png" % (n, width, scheme)))
    context.close()


def use(browser):
    context = browser.new_context(viewport={"width": 1100, "height": 850}, accept_downloads=True)
    page = context.new_page()
    watch(page)
    # Each link of the navigation, by keyboard: the first Tab shows the link that skips it.
    page.goto(base + "/")
    page.keyboard.press("Tab")
    check(page.evaluate("document.activeElement.className") == "skip", "the first Tab does not reach the skip link")
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    for name in ["Hosts", "Partitions", "Topics", "Links", "Search", "Explain", "Overview"]:
        page.get_by_role("link", name=name, exact=True).first.click()
        check(page.title() != "", "no title after " + name)
    # Sorting by a link, and the filter.
    page.goto(base + "/hosts")
    page.get_by_role("link", name="requests").click()
    check(page.locator("th[aria-sort=descending]").inner_text() == "requests", "the hosts are not sorted by requests")
    page.get_by_role("searchbox", name="Part of the host's name").fill("nowhere")
    page.get_by_role("button", name="Filter").click()
    check("None." in page.locator("main").inner_text(), "the filter shows other hosts")
    # The stored page, without its scripts, and its link away from the frame.
    page.get_by_role("searchbox", name="URL or host to explain").fill(site + "/evil")
    page.keyboard.press("Enter")
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe")
    check("evil words" in frame.locator("body").inner_text(), "the stored page is not shown")
    page.wait_for_timeout(500)
    check(page.url.startswith(base) and page.title() != "ran", "the stored page ran")
    frame.get_by_role("button", name="click").click()
    page.wait_for_timeout(300)
    page.goto(base + "/")
    check("Stop" not in page.locator(".verdict").first.inner_text(), "the stored page stopped the crawl")
    # Live parts are replaced while the page stays.
    page.evaluate("document.body.dataset.mark = '1'; document.getElementById('live').dataset.old = '1'")
    page.wait_for_selector("#live:not([data-old])", timeout=15000)
    check(page.evaluate("document.body.dataset.mark") == "1", "the page was loaded again")
    # Changes.
    page.goto(base + "/explain?url=" + quote(site + "/same-a"))
    page.get_by_role("button", name="Fetch it again").click()
    check("The URL was requested" in page.locator("main").inner_text(), "no answer to a request")
    # The report as a file, sorted in the browser.
    page.goto(base + "/report")
    with page.expect_download() as d:
        page.get_by_role("link", name="Save as a file").click()
    path = d.value.path().with_suffix(".html")
    shutil.copy(d.value.path(), path)
    page.goto("file://" + str(path))
    page.locator("#large th button", has_text="bytes").click()
    page.locator("#large th button", has_text="bytes").click()
    keys = page.eval_on_selector_all("#large td:first-child", "all => all.map(td => +td.dataset.key)")
    check(len(keys) > 1 and keys == sorted(keys), "the file is not sorted: %s" % keys)
    context.close()


with sync_playwright() as p:
    browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        look(browser, width, scheme)
    use(browser)
    browser.close()
for problem in dict.fromkeys(problems):
    print(problem)
print("%d pages at 4 sizes, %d problems" % (len(PAGES), len(problems)))
sys.exit(1 if problems else 0)
