"""The built site in a real browser: `pytest tests/test_site_in_browser.py --site FOLDER`.

`.ci/site` builds one and runs these; without a site or a browser each test says why it skips.
"""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from viewer.browser import browser

WIDTHS = (360, 375, 768, 1000, 1280)
DRAWERS = 63 * 16  # px: up to this width the theme hides the menu in a drawer

# faults in the layout of a page: it is too wide, or something in front of its article
FAULTS = """() => {
  const faults = [], root = document.documentElement;
  for (const box of [root, document.querySelector('.content')])
    if (box.scrollWidth > box.clientWidth)
      faults.push(`${box.className || 'page'}: ${box.scrollWidth} px in ${box.clientWidth}`);
  const shown = 'p, li, h1, h2, h3, h4, td, th, dt, pre, img, iframe, math';
  for (const element of document.querySelectorAll(shown.replace(/[^ ,]+/g, 'article $&'))) {
    element.scrollIntoView({block: 'center', inline: 'start', behavior: 'instant'});
    const [first] = element.getClientRects();
    if (!first) continue;
    let {left, right, top, bottom} = first;
    for (let box = element.parentElement; box !== root; box = box.parentElement)
      if (getComputedStyle(box).overflow !== 'visible') {
        const seen = box.getBoundingClientRect();
        [left, right] = [Math.max(left, seen.left), Math.min(right, seen.right)];
        [top, bottom] = [Math.max(top, seen.top), Math.min(bottom, seen.bottom)];
      }
    [left, right] = [Math.max(left, 0), Math.min(right, innerWidth)];
    // not what scrolled under the header, which is there to stay
    const header = document.querySelector('.mobile-header').getBoundingClientRect().bottom;
    [top, bottom] = [Math.max(top, header), Math.min(bottom, innerHeight)];
    if (right - left < 4 || bottom - top < 4) continue;
    for (const x of [left + 2, (left + right) / 2, right - 2]) {
      const hit = document.elementFromPoint(x, (top + bottom) / 2);
      if (!hit || !(element.contains(hit) || hit.contains(element))) {
        const text = element.textContent.trim().slice(0, 30);
        faults.push(`<${element.localName}> "${text}" is under ${hit && hit.className}`);
        break;
      }
    }
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def site(request):
    """The folder of a built site."""
    given = request.config.option.site
    if given is None:
        pytest.skip("no built site: give --site FOLDER, as .ci/site does")
    return Path(given).resolve()


@pytest.fixture(scope="module")
def page(site):
    """A page of a browser; scenes in frames are not opened."""
    with browser() as started:
        page = started.new_page()
        page.route("**/_made/**/*.html", lambda route: route.abort())
        yield page


def opened(page, path, width):
    """The page with a file of the site, and nothing that moves by itself."""
    page.set_viewport_size({"width": width, "height": 812})
    page.goto(path.as_uri())
    page.add_style_tag(content="* { transition: none !important }")
    return page


def files(site):
    """All pages, without what Sphinx and blocks left for them."""
    found = site.rglob("*.html")
    return [path for path in found if not str(path.relative_to(site)).startswith("_")]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_of_a_page_is_covered_or_cut_off(site, page, width):
    """No page scrolls sideways: wide tables, code and formulas do so in themselves."""
    faults = {path.name: opened(page, path, width).evaluate(FAULTS) for path in files(site)}
    assert len(faults) > 40
    assert not {name: found[:5] for name, found in faults.items() if found}


def left_of(page, selector):
    return page.locator(selector).bounding_box()["x"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_menu_opens_and_closes(site, page, width):
    opened(page, site / "index.html", width)
    drawer, button = ".sidebar-drawer", page.locator(".nav-overlay-icon")
    assert button.is_visible() == (width <= DRAWERS)
    if width <= DRAWERS:
        before = page.locator(drawer).bounding_box()
        assert before["x"] + before["width"] <= 0
        button.click()
        assert left_of(page, drawer) == 0
        page.mouse.click(width - 10, 400)
        assert left_of(page, drawer) == before["x"]
        button.click()
    # what is clicked is seen: Playwright refuses what is covered
    page.locator(".sidebar-tree a", has_text="Gallery").click()
    assert page.url.endswith("gallery.html")


def test_the_contents_of_a_page_open_and_close(site, page):
    opened(page, site / "simulation.html", 375)
    assert left_of(page, ".toc-drawer") >= 375
    page.locator(".toc-header-icon").click()
    assert 0 < left_of(page, ".toc-drawer") < 375
    page.mouse.click(10, 400)
    assert left_of(page, ".toc-drawer") >= 375


# what people look for, and the page that they want
WANTED = {
    "reinforcement learning": "torch",
    "four-bar": "contact",
    "four bar": "contact",
    "closed loop": "contact",
    "forward kinematics": "reference/kinematics",
    "fk": "reference/kinematics",
    "jacobian": "reference/kinematics",
    "end effector": "reference/kinematics",
    "center of mass": "reference/kinematics",
    "inverse kinematics": "inverse_kinematics",
    "ik": "inverse_kinematics",
    "inverse dynamics": "reference/dynamics",
    "forward dynamics": "reference/dynamics",
    "mass matrix": "reference/dynamics",
    "install": "start",
    "getting started": "start",
    "urdf": "loading",
    "mjcf": "loading",
    "xacro": "loading",
    "ros": "embedded",
    "microcontroller": "embedded",
    "friction": "ground",
    "walking": "ground",
    "terrain": "ground",
    "lqr": "linearized",
    "kalman filter": "linearized",
    "mpc": "tasks/mpc",
    "trajectory optimization": "tasks/mpc",
    "pd control": "control",
    "gravity compensation": "control",
    "impedance control": "control",
    "runge-kutta": "simulation",
    "integrator": "simulation",
    "system identification": "identification",
    "calibration": "identification",
    "gpu": "gpu",
    "cuda": "gpu",
    "automatic differentiation": "derivatives",
    "domain randomization": "large_batches",
    "pytorch": "torch",
    "pinocchio": "coming_from/pinocchio",
    "mujoco": "coming_from/mujoco",
    "payload": "editing",
    "floating base": "mechanisms",
    "space robot": "underactuated",
    "twist": "theory/spatial_vectors",
    "windows": "platforms",
    "jupyter": "viewing",
}


def found(site, page, words):
    """The first three pages that a search for words gives."""
    opened(page, Path(f"{site}/search.html"), 1280)
    page.goto(f"{(site / 'search.html').as_uri()}?q={quote(words)}")
    ended = re.compile("finished|did not match")
    page.locator("#search-results .search-summary", has_text=ended).wait_for(timeout=20_000)
    links = page.locator("#search-results ul.search > li > a")
    return [links.nth(i).get_attribute("href") for i in range(min(3, links.count()))]


def test_a_search_finds_the_page_that_is_wanted(site, page):
    got = {words: found(site, page, words) for words in WANTED}
    assert not {
        words: links
        for words, links in got.items()
        if not any(f"{WANTED[words]}.html" in link for link in links)
    }
