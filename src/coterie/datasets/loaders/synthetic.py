"""The paper's synthetic users and items."""

from __future__ import annotations

import numpy as np

from coterie.datasets.dataset import Dataset, Provenance, sealed
from coterie.datasets.factorise import SCALES
from coterie.datasets.request import Request
from coterie.datasets.sources import About
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Floats

ABOUT = About(
    name="synthetic",
    summary="random vectors: each coordinate U(-1, 1), rows of unit length; no file needed",
    feedback="none: the vectors are drawn, not learnt",
)


def make(request: Request) -> Dataset:
    """Each coordinate from U(-1, 1), then rows of unit length   (Sec. 6.2).

    The first k rows are the same whatever `n_users` and `n_items` are.
    """
    request.refuse_table_options(ABOUT.name)
    if request.path is not None:
        raise ArgumentError(f"path must be left out: 'synthetic' reads no file, got {str(request.path)!r}")
    if request.scale == "sqrt-s":
        raise ArgumentError(
            "scale 'sqrt-s' needs singular values, which 'synthetic' has not; use unit or raw"
        )
    return sealed(
        _draw(request, "users", request.n_users),
        _draw(request, "items", request.n_items),
        user_ids=np.arange(request.n_users),
        item_ids=np.arange(request.n_items),
        provenance=_provenance(request),
    )


def _draw(request: Request, kind: str, count: int) -> Floats:
    generator = stream(request.seed, "datasets", "synthetic", kind)
    vectors = generator.uniform(-1.0, 1.0, size=(count, request.dim))
    return SCALES[request.scale](vectors, np.ones(request.dim))


def _provenance(request: Request) -> Provenance:
    return Provenance(
        name=ABOUT.name,
        feedback=ABOUT.feedback,
        file=None,
        sha256=None,
        rows=0,
        users_found=request.n_users,
        items_found=request.n_items,
        n_users=request.n_users,
        n_items=request.n_items,
        tied_users=0,
        tied_items=0,
        dropped_users=0,
        dropped_items=0,
        density=0.0,
        singular_values=(),
        dim=request.dim,
        scale=request.scale,
        seed=request.seed,
        notes=(),
    )
