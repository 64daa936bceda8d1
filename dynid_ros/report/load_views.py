"""The load seen along the axes of the tip link: its centre and the ellipsoid that has its mass and inertia."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import region_radius
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.model.inertia import STATIC, central_moments
from dynid_ros.report.drawing import LIGHT, plot_area, svg

WIDTH, HEIGHT = 320, 320
VIEWS = {"along x": (1, 2), "along y": (0, 2), "along z": (0, 1)}
DRAWS = 40
"""Ellipsoids that the data would allow as well."""
MARGIN = 0.2
ARROW = 0.24
"""Of half the width of the picture: the arrows of the frame fit into its margin."""
TURN = np.linspace(0, 2 * np.pi, 121)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)])


def load_views(result: LoadResult) -> dict[str, str]:
    """SVG of each view, by its direction; none without a load, nor along which part of its centre is undetermined."""
    known = np.isfinite(result.center)
    if not result.is_loaded or known.sum() < 2:
        return {}
    centre, spread = np.where(known, result.center, 0.0), _center_covariance(result, known)
    shape = _ellipsoid(result.parameters)
    others = _others(result) if shape is not None else []
    # Of the plane's ellipse: of both coordinates together, which have the degrees of freedom of the worse known.
    region = region_radius(2, float(result.estimate.dof[1:STATIC][known].min()))
    reach = np.sqrt(np.diag(spread)).max() * region
    if shape is not None:
        reach = max(reach, *(np.sqrt(np.diag(one)).max() for one in (shape, *others)))
    lowest, highest = np.minimum(centre - reach, 0.0), np.maximum(centre + reach, 0.0)
    middle, half = (lowest + highest) / 2, float((0.5 + MARGIN) * (highest - lowest).max())
    found = {}
    for name, pair in VIEWS.items():
        plane = np.array(pair)
        if not known[plane].all():
            continue

        def draw(figure: Figure, plane: NDArray = plane) -> None:
            axes = plot_area(figure, left=52, bottom=42)
            axes.set_aspect("equal", adjustable="box")
            for k, towards in enumerate(plane):
                ends = 1e3 * (middle[towards] + half * np.array([-1, 1]))
                (axes.set_xlim, axes.set_ylim)[k](*ends)
            _draw_frame(axes, ARROW * 1e3 * half, plane)
            square = np.ix_(plane, plane)
            for other in others:
                axes.plot(*_outline(centre[plane], other[square]), color=LIGHT["identified"], linewidth=0.5, alpha=0.3)
            if shape is not None:
                axes.plot(*_outline(centre[plane], shape[square]), color=LIGHT["identified"], linewidth=1.8)
            axes.fill(*_outline(centre[plane], region**2 * spread[square]), color=LIGHT["uncompensated"], alpha=0.35)
            axes.plot(*(1e3 * centre[plane]), color=LIGHT["uncompensated"], marker="o", markersize=4.5)
            axes.set_xlabel(f"{'xyz'[plane[0]]} (mm)")
            axes.set_ylabel(f"{'xyz'[plane[1]]} (mm)")

        found[name] = svg(f"Load seen {name} of {result.frame}", WIDTH, HEIGHT, draw)
    return found


def _draw_frame(axes: Axes, length: float, plane: NDArray) -> None:
    arrow = {"arrowstyle": "->", "color": LIGHT["measured"], "linewidth": 1.4}
    for (x, y), label in zip(((length, 0.0), (0.0, length)), plane, strict=True):
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
        axes.annotate("xyz"[label], (1.12 * x, 1.12 * y), ha="center", va="center", color=LIGHT["muted"])
    axes.plot(0, 0, color=LIGHT["measured"], marker="o", markersize=4)


def _center_covariance(result: LoadResult, known: NDArray) -> NDArray:
    """(3, 3) of the centre, m², first order; zero of coordinates that are not known (3,)."""
    mass = result.mass
    slopes = np.column_stack([-result.center / mass, np.eye(3) / mass])[known]
    own = np.flatnonzero([True, *known])
    found = np.zeros((3, 3))
    found[np.ix_(known, known)] = slopes[:, own] @ result.body.covariance[np.ix_(own, own)] @ slopes[:, own].T
    return found


def _ellipsoid(parameters: NDArray) -> NDArray | None:
    """(3, 3) matrix A of the surface xᵀ A⁻¹ x = 1 about the centre, of uniform density; None if inertia is unknown."""
    if not np.isfinite(parameters).all():
        return None
    # Of uniform density, a principal second moment is m a² / 5.
    values, axes = np.linalg.eigh(5 * central_moments(parameters) / parameters[0])
    return (axes * np.maximum(values, 0.0)) @ axes.T


def _others(result: LoadResult) -> list[NDArray]:
    """As the data would allow: inertias about the centre drawn by their errors, what cannot exist cut off."""
    draws = np.random.default_rng(0).multivariate_normal(
        np.zeros(10), result.body.covariance, size=DRAWS, method="svd", check_valid="ignore"
    )
    found = []
    for draw in draws:
        shape = _ellipsoid(result.parameters + draw) if result.parameters[0] + draw[0] > 0 else None
        if shape is not None:
            found.append(shape)
    return found


def _outline(centre: NDArray, matrix: NDArray) -> NDArray:
    """(2, N) mm: the ellipse whose matrix is that of the shadow of an ellipsoid."""
    values, axes = np.linalg.eigh(matrix)
    return 1e3 * (centre[:, None] + (axes * np.sqrt(np.maximum(values, 0.0))) @ CIRCLE)
