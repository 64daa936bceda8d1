"""Views of a load along the axes of the tip link: its centre of mass and the ellipsoid with its mass and inertia."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import region_radius
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.model.inertia import STATIC, central_moments
from dynid_ros.report.drawing import LIGHT, plot_area, svg

VIEW_SIZE = 320
VIEWS = {"along x": (1, 2), "along y": (0, 2), "along z": (0, 1)}
"""Axes to the right and upward, by direction of view."""
N_DRAWS = 40
"""Ellipsoids drawn from the covariance of the estimate."""
VIEW_MARGIN_FRACTION = 0.2
ARROW_FRACTION = 0.24
"""Length of the arrows over half the width of the picture: they fit into its margin."""
ANGLES = np.linspace(0, 2 * np.pi, 121)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)])


def load_views(result: LoadResult) -> dict[str, str]:
    """Draw each view as SVG, by its direction.

    A view is left out where a coordinate of the centre of mass in its plane is undetermined.
    """
    known = np.isfinite(result.center)
    if not result.is_loaded or known.sum() < 2:
        return {}
    centre = np.where(known, result.center, 0.0)
    spread = _centre_covariance(result, known)
    shape = _ellipsoid(result.parameters)
    others = _draw_ellipsoids(result) if shape is not None else []
    # The ellipse in a plane is the region of two coordinates, with the degrees of freedom of the worse one.
    region = region_radius(2, float(result.estimate.dof[1:STATIC][known].min()))
    reach = np.sqrt(np.diag(spread)).max() * region
    if shape is not None:
        reach = max(reach, *(np.sqrt(np.diag(one)).max() for one in (shape, *others)))
    lowest = np.minimum(centre - reach, 0.0)
    highest = np.maximum(centre + reach, 0.0)
    middle = (lowest + highest) / 2
    half = float((0.5 + VIEW_MARGIN_FRACTION) * (highest - lowest).max())
    views = {}
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
            _draw_frame(axes, ARROW_FRACTION * 1e3 * half, plane)
            square = np.ix_(plane, plane)
            for other in others:
                axes.plot(*_outline(centre[plane], other[square]), color=LIGHT["identified"], linewidth=0.5, alpha=0.3)
            if shape is not None:
                axes.plot(*_outline(centre[plane], shape[square]), color=LIGHT["identified"], linewidth=1.8)
            axes.fill(*_outline(centre[plane], region**2 * spread[square]), color=LIGHT["uncompensated"], alpha=0.35)
            axes.plot(*(1e3 * centre[plane]), color=LIGHT["uncompensated"], marker="o", markersize=4.5)
            axes.set_xlabel(f"{'xyz'[plane[0]]} (mm)")
            axes.set_ylabel(f"{'xyz'[plane[1]]} (mm)")

        views[name] = svg(f"Load seen {name} of {result.frame}", VIEW_SIZE, VIEW_SIZE, draw)
    return views


def _draw_frame(axes: Axes, length: float, plane: NDArray) -> None:
    """Draw the origin and the two axes (2,) of the frame in the plane of the view."""
    arrow = {"arrowstyle": "->", "color": LIGHT["measured"], "linewidth": 1.4}
    for (x, y), label in zip(((length, 0.0), (0.0, length)), plane, strict=True):
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
        axes.annotate("xyz"[label], (1.12 * x, 1.12 * y), ha="center", va="center", color=LIGHT["muted"])
    axes.plot(0, 0, color=LIGHT["measured"], marker="o", markersize=4)


def _centre_covariance(result: LoadResult, known: NDArray) -> NDArray:
    """Return the first-order covariance (3, 3) of the centre of mass, m²; zero for coordinates that are not `known`."""
    mass = result.mass
    slopes = np.column_stack([-result.center / mass, np.eye(3) / mass])[known]
    used = np.flatnonzero([True, *known])
    covariance = np.zeros((3, 3))
    covariance[np.ix_(known, known)] = slopes[:, used] @ result.body.covariance[np.ix_(used, used)] @ slopes[:, used].T
    return covariance


def _ellipsoid(parameters: NDArray) -> NDArray | None:
    """Return A (3, 3) of the surface xᵀ A⁻¹ x = 1 of a body of uniform density; None where the inertia is not known."""
    if not np.isfinite(parameters).all():
        return None
    # A body of uniform density with half axis a has the second moment m a² / 5.
    values, axes = np.linalg.eigh(5 * central_moments(parameters) / parameters[0])
    return (axes * np.maximum(values, 0.0)) @ axes.T


def _draw_ellipsoids(result: LoadResult) -> list[NDArray]:
    """Return ellipsoids of parameters drawn from the covariance of the estimate; negative half axes become zero."""
    draws = np.random.default_rng(0).multivariate_normal(
        np.zeros(10), result.body.covariance, size=N_DRAWS, method="svd", check_valid="ignore"
    )
    possible = [result.parameters + draw for draw in draws if result.parameters[0] + draw[0] > 0]
    return [shape for parameters in possible if (shape := _ellipsoid(parameters)) is not None]


def _outline(centre: NDArray, matrix: NDArray) -> NDArray:
    """Return the outline (2, N), mm, of the ellipse with a `matrix` (2, 2) as of `_ellipsoid`."""
    values, axes = np.linalg.eigh(matrix)
    return 1e3 * (centre[:, None] + (axes * np.sqrt(np.maximum(values, 0.0))) @ CIRCLE)
