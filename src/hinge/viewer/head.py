"""What hinge adds to the page of viser: colours of the reader's system, a camera for any screen.

viser's camera has one place for all screens, goes below the floor, and its page is light unless its
address says otherwise.  A script in the head of the page looks after that, and a style makes the
ranges of sliders readable.
"""

from __future__ import annotations

import html
import json

import numpy as np

from .actor import Place
from .camera import Camera

__all__ = ["Framing", "page_with"]

_WIDE, _TALL = 0.9, 0.45  # width over height: as for most screens, and of a phone held upright
_NARROW = 576  # px: below, viser's controls cover the lower part of the page
_ABOVE = 0.4  # of the height of such a page: where the robot is

_STYLE = """
.mantine-Slider-markLabel { font-size: 12px !important; }
.hinge-caption {
  position: fixed; top: 0; left: 0; right: 0; z-index: 1; pointer-events: none;
  padding: 0.8em 1em; font: 16px/1.4 system-ui, sans-serif; color: #1f2937;
}
@media (prefers-color-scheme: dark) { .hinge-caption { color: #e5e7eb; } }
"""

# three.js has y up, and viser puts scenes with z up into it like that; home is where a page put the
# camera
_SCRIPT = """
const framing = FRAMING;
window.__VISER_EMBED_CONFIG__ = {darkMode: matchMedia("(prefers-color-scheme: dark)").matches};
(() => {
  const three = ([x, y, z]) => [-y, z, -x];
  const near = (a, b) => Math.hypot(a.x - b[0], a.y - b[1], a.z - b[2]) < 1e-4 * framing.wide;
  const pose = (width, height) => {
    const small = framing.beside && width < framing.narrow, free = small ? framing.above : 1;
    const [right, up, out] = framing.axes, [wide, tall] = framing.squares;
    const slope = (framing.tall - framing.wide) / (1 / tall - 1 / wide);
    const narrow = Math.max(0, free * height / width - 1 / wide);
    const away = (framing.wide + slope * narrow) / free;
    const page = 2 * Math.tan(framing.fov / 2) * away;
    const aside = small ? 0 : framing.beside * page, down = (1 - free) / 2 * page;
    const target = framing.middle.map((x, i) => x + aside * right[i] - down * up[i]);
    return {target: three(target), eye: three(target.map((x, i) => x + away * out[i]))};
  };
  const first = pose(framing.narrow, framing.narrow);
  const watch = () => {
    const controls = window.__viserMutable?.cameraControl;
    if (!controls) return setTimeout(watch, 50);
    const {camera} = controls;
    let home = first.eye;
    const place = () => {
      const {eye, target} = pose(innerWidth, innerHeight), at = camera.position;
      if (!near(at, eye) && (near(at, home) || near(at, first.eye)))
        controls.setLookAt(...eye, ...target, false);
      home = eye;
    };
    const stay_above = () => {
      const at = camera.position, low = framing.ground + 0.01 * framing.wide;
      const height = (low - (at.y - controls.distance * Math.cos(controls.polarAngle)));
      const most = Math.acos(Math.min(1, Math.max(-1, height / controls.distance)));
      if (Math.abs(controls.maxPolarAngle - most) > 1e-4) controls.maxPolarAngle = most;
      if (at.y < low - 1e-6) controls.setPosition(at.x, low, at.z, false);
    };
    controls.addEventListener("update", () => { place(); stay_above(); });
    addEventListener("resize", place);
    place();
    stay_above();
  };
  watch();
})();
"""

_LIVE = """<script>
fetch("ADDRESSSIGN").then(there => there.ok && location.replace("ADDRESS"), () => {});
</script>
"""


class Framing:
    """Where the camera of a page begins, for screens of any shape.

    beside: how far left of the middle the robot is, in heights of a wide page, for controls on the
    right; on a narrow page it is above them.
    """

    def __init__(self, place: Place, beside: float = 0.0) -> None:
        self.camera = Camera.around(place.points, aspect=_WIDE)
        self.ground, self.beside = place.ground, beside
        self._tall = Camera.around(place.points, aspect=_TALL).distance

    @property
    def first(self) -> Camera:
        """Of a wide page."""
        high = 2 * np.tan(self.camera.fov / 2) * self.camera.distance
        right = self.beside * high * self.camera.axes[0]
        return Camera(self.camera.eye + right, self.camera.target + right, self.camera.fov)

    def head(self) -> str:
        """For the head of the page."""
        framing = {
            "middle": self.camera.target.tolist(),
            "axes": self.camera.axes.tolist(),
            "wide": self.camera.distance,
            "tall": self._tall,
            "squares": [_WIDE, _TALL],
            "fov": self.camera.fov,
            "beside": self.beside,
            "narrow": _NARROW,
            "above": _ABOVE,
            "ground": self.ground,
        }
        script = _SCRIPT.replace("FRAMING", json.dumps(framing))
        return f"<style>{_STYLE}</style>\n<script>{script}</script>\n"


def page_with(
    page: str, framing: Framing, title: str, caption: str = "", live: tuple[str, str] = ("", "")
) -> str:
    """A page of viser with what hinge adds, its title and words above the scene.

    live: an address that takes the place of the page as long as one below it answers.
    """
    page = page.replace("<title>Viser</title>", f"<title>{html.escape(title)}</title>", 1)
    end = page.index("</head>")
    asked = _LIVE.replace("ADDRESS", live[0]).replace("SIGN", live[1]) if live[0] else ""
    page = page[:end] + framing.head() + asked + page[end:]
    words = f'<div class="hinge-caption">{html.escape(caption)}</div>' if caption else ""
    end = page.rindex("</body>")
    return page[:end] + words + page[end:]
