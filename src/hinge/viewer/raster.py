"""Which triangle each pixel sees: a depth buffer in NumPy."""

from __future__ import annotations

import numpy as np

__all__ = ["Seen", "rasterize"]

_TINY = 1e-12
_ROWS, _PIXELS = 1 << 18, 1 << 20  # of triangles, in one chunk


class Seen:
    """What the pixels of a picture see: where, which face, and how far its corners weigh in.

    at: (P,), indices of the pixels that see something; face: (P,); weights: (P, 3).
    """

    def __init__(
        self, points: np.ndarray, faces: np.ndarray, owner: np.ndarray, width: int
    ) -> None:
        self.at = np.flatnonzero(owner >= 0)
        self.face = owner[self.at]
        corners = points[faces[self.face]]
        pixel = np.stack([self.at % width, self.at // width], axis=-1) + 0.5
        opposite = np.roll(corners[..., :2], -1, axis=1), np.roll(corners[..., :2], -2, axis=1)
        share = _area(pixel[:, None], *opposite)
        # 1 / depth is even across the picture, depth is not
        share = share / corners[..., 2]
        self.weights = share / share.sum(axis=1, keepdims=True)

    def blend(self, values: np.ndarray, faces: np.ndarray) -> np.ndarray:
        """Values of vertices (V, n) at the points that are seen: (P, n)."""
        return np.einsum("pc,pcn->pn", self.weights, values[faces[self.face]])


def rasterize(
    points: np.ndarray, faces: np.ndarray, width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest face of each pixel, −1 for none, and 1 / depth there, both (height · width,).

    points: (V, 3), column, row and depth of vertices; faces that reach behind the eye are left out.
    A triangle is cut into rows of pixels, on each of which 1 / depth is linear; long lists of rows
    and of pixels are worked through in chunks.
    """
    corners = points[faces]
    area = _area(corners[:, 0, :2], corners[:, 1, :2], corners[:, 2, :2])
    low = np.ceil(corners[..., 1].min(axis=1) - 0.5).clip(0)
    high = np.floor(corners[..., 1].max(axis=1) - 0.5).clip(-1, height - 1) + 1
    ahead = (corners[..., 2] > 0).all(axis=1) & (np.abs(area) > _TINY) & (high > low)
    index = np.flatnonzero(ahead)
    low, high = low.astype(int), high.astype(int)
    nearest, owner = np.zeros(width * height), np.full(width * height, -1)
    for some in _chunks(index, (high - low)[index], _ROWS):
        one, row = _spread(low[some], high[some])
        first, last, near, slope = _rows(corners[some], area[some], one, row, width)
        for rows in _chunks(np.arange(len(row)), np.maximum(last - first, 0), _PIXELS):
            span, column = _spread(first[rows], last[rows])
            span = rows[span]
            pixel = row[span] * width + column
            nearness = near[span] + slope[one[span]] * column
            np.maximum.at(nearest, pixel, nearness)
            won = nearness == nearest[pixel]
            owner[pixel[won]] = some[one[span[won]]]
    return owner, nearest


def _chunks(items: np.ndarray, sizes: np.ndarray, most: int) -> list[np.ndarray]:
    """The items in runs, each of about that size or of one item."""
    group = (np.cumsum(sizes) - sizes) // most
    return np.split(items, np.flatnonzero(np.diff(group)) + 1)


def _rows(
    corners: np.ndarray, area: np.ndarray, one: np.ndarray, row: np.ndarray, width: int
) -> tuple[np.ndarray, ...]:
    """First column and the one past the last of each row of triangles; 1 / depth and its slope."""
    x, y, z = np.moveaxis(np.roll(corners, -1, axis=1), -1, 0)
    x_next, y_next = np.moveaxis(np.roll(corners[..., :2], -2, axis=1), -1, 0)
    # the weight of a corner is even across the picture: across · x + at(row)
    across = (y - y_next) / area[:, None]
    down = (x_next - x) / area[:, None]
    at = (x * y_next - x_next * y)[one] / area[one, None] + down[one] * (row + 0.5)[:, None]
    slope = across[one]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = -at / slope
    first = np.where(slope > 0, zero, -np.inf).max(axis=1)
    last = np.where(slope < 0, zero, np.inf).min(axis=1)
    first = np.ceil(first - 0.5).clip(0, width).astype(int)
    last = (np.floor(last - 0.5).clip(-1, width - 1) + 1).astype(int)
    near = 1 / corners[..., 2]
    return (
        first,
        last,
        ((at + slope / 2) * near[one]).sum(axis=1),
        (across * near).sum(axis=1),
    )


def _spread(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers of each range, one range after the other: which range, which number."""
    count = np.maximum(last - first, 0)
    one = np.repeat(np.arange(len(count)), count)
    start = np.cumsum(count) - count
    return one, np.arange(len(one)) - start[one] + first[one]


def _area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Twice the area of the triangle of three points (…, 2), signed."""
    u, v = b - a, c - a
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
