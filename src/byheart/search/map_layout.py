"""Lay vectors out in two dimensions, and name the regions of the layout.

The steps need numpy only, use no random numbers, and take time in proportion to the number of
vectors: main axes; at most 200 landmarks by k-means; a t-SNE of the landmarks; each vector between
its nearest landmarks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from byheart.contracts import Numbers
from byheart.language.terms import STOP_WORDS
from byheart.startup.late_numpy import NDArray, np
from byheart.startup.late_patterns import late_pattern

Points = NDArray["np.float64"]

_MOST_AXES, _MOST_LANDMARKS, _MOST_REGIONS = 32, 200, 24
_ROUNDS = 12
_STEPS, _EXAGGERATED_STEPS, _EXAGGERATION = 300, 80, 4.0
# The neighbours that a landmark keeps close, and the landmarks between which a vector lies.
_NEIGHBOURS, _BETWEEN = 10, 4
_MARGIN = 0.02
_MOST_TERMS, _LONGEST_TERM = 4, 24
_WORD = late_pattern(r"[^\W\d_][\w'’-]+")


def lay_out(vectors: NDArray[np.float32]) -> Points:
    """Give each vector a place between 0 and 1 in both dimensions."""
    count = len(vectors)
    if count < 3:
        return np.stack([np.linspace(0.5, 0.5 + 0.3 * (count - 1), count), np.full(count, 0.5)], 1)
    axes = _main_axes(vectors.astype(np.float64))
    landmarks, _ = _gather(axes, min(_MOST_LANDMARKS, count))
    places = _embed(landmarks)
    return _fit(_place_between(axes, landmarks, places))


def divide(places: Points) -> Numbers:
    """Divide places into regions; give the number of each place's region."""
    wanted = min(_MOST_REGIONS, max(1, round(math.sqrt(len(places)) / 4)), len(places))
    _, nearest = _gather(places, wanted)
    regions: Numbers = np.unique(nearest, return_inverse=True)[1].astype(np.int64)
    return regions


def find_terms(texts: Iterable[str], regions: Sequence[int]) -> list[list[str]]:
    """Name the words of each region that are frequent in it and rare elsewhere, best first."""
    sizes = Counter(regions)
    inside: list[Counter[str]] = [Counter() for _ in sizes]
    everywhere: Counter[str] = Counter()
    for text, region in zip(texts, regions, strict=True):
        words = _words(text)
        inside[region].update(words)
        everywhere.update(words)
    total = len(regions)
    named = []
    for region, counts in enumerate(inside):
        size = sizes[region]
        scores = {
            word: number / size * math.log(number / size * total / everywhere[word])
            for word, number in counts.items()
            if number > 1 or size < 5
        }
        telling = [word for word, score in scores.items() if score > 0 or len(sizes) == 1]
        telling.sort(key=lambda word: (-scores[word], -counts[word], word))
        named.append(telling[:_MOST_TERMS])
    return named


def _words(text: str) -> set[str]:
    words = {match[0].casefold().rstrip("'’-") for match in _WORD.finditer(text)}
    return {word for word in words if 2 < len(word) <= _LONGEST_TERM and word not in STOP_WORDS}


def _main_axes(vectors: Points) -> Points:
    """Project vectors onto the axes along which they differ most."""
    centered = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    axes = axes[:, ::-1][:, :_MOST_AXES]
    # The direction of an axis is arbitrary: let its largest part be positive.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    projected: Points = centered @ (axes * np.where(largest < 0, -1.0, 1.0))
    return projected


def _gather(points: Points, count: int) -> tuple[Points, Numbers]:
    """Gather points around centers by k-means; give the centers, and each point's nearest one."""
    order = np.lexsort(points.T[::-1])
    centers = points[order[np.arange(count) * len(points) // count]]
    for _ in range(_ROUNDS):
        nearest = _distances(points, centers).argmin(axis=1)
        sums = np.zeros_like(centers)
        np.add.at(sums, nearest, points)
        sizes = np.bincount(nearest, minlength=count)[:, np.newaxis]
        centers = np.where(sizes > 0, sums / np.maximum(sizes, 1), centers)
    return centers, _distances(points, centers).argmin(axis=1)


def _distances(some: Points, others: Points) -> Points:
    """Give the squared distance of each point to each other one."""
    squares = (some**2).sum(axis=1)[:, np.newaxis] + (others**2).sum(axis=1)
    distances: Points = np.maximum(squares - 2 * some @ others.T, 0.0)
    return distances


def _embed(points: Points) -> Points:
    """Lay out a few points by t-SNE, starting from their main axes."""
    count = len(points)
    distances = _distances(points, points)
    near = np.sort(distances, axis=1)[:, min(_NEIGHBOURS, count - 1)]
    affinity = np.exp(-distances / np.maximum(near, 1e-12)[:, np.newaxis])
    np.fill_diagonal(affinity, 0.0)
    affinity /= np.maximum(affinity.sum(axis=1, keepdims=True), 1e-12)
    affinity = (affinity + affinity.T) / (2 * count)
    start = points[:, :2] if points.shape[1] > 1 else np.repeat(points, 2, axis=1)
    places: Points = start / max(float(np.abs(start).max()), 1e-12) * 1e-2
    speed = np.zeros_like(places)
    for step in range(_STEPS):
        early = step < _EXAGGERATED_STEPS
        closeness = 1 / (1 + _distances(places, places))
        np.fill_diagonal(closeness, 0.0)
        wanted = affinity * (_EXAGGERATION if early else 1.0)
        force = (wanted - closeness / closeness.sum()) * closeness
        gradient = 4 * (force.sum(axis=1)[:, np.newaxis] * places - force @ places)
        speed = (0.5 if early else 0.8) * speed - max(count / 12, 5.0) * gradient
        places = places + speed
    middle: Points = places.mean(axis=0)
    return places - middle


def _place_between(points: Points, landmarks: Points, places: Points) -> Points:
    """Place each point between its nearest landmarks, a little towards where it differs."""
    distances = _distances(points, landmarks)
    between = min(_BETWEEN, len(landmarks))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :between]
    far = np.take_along_axis(distances, nearest, axis=1)
    width = np.maximum(far[:, -1:], 1e-12) / 4
    weights = np.exp(-(far - far[:, :1]) / width)
    weights /= weights.sum(axis=1, keepdims=True)
    laid: Points = (weights[:, :, np.newaxis] * places[nearest]).sum(axis=1)
    if len(landmarks) == len(points) or points.shape[1] < 2:
        return laid
    apart: Any = (points - landmarks[nearest[:, 0]])[:, :2]
    spacing = np.sqrt(np.sort(_distances(places, places), axis=1)[:, 1]).mean()
    laid += apart / max(float(np.abs(apart).max()), 1e-12) * spacing
    return laid


def _fit(places: Points) -> Points:
    """Fit places into the unit square with a margin."""
    low, high = places.min(axis=0), places.max(axis=0)
    fitted = (places - low) / np.maximum(high - low, 1e-12)
    shown: Points = _MARGIN + (1 - 2 * _MARGIN) * fitted
    return shown
