# optimize: 2
"""SCLUB2019: sets that split against a snapshot of themselves and merge at half the distance   (Li et al. 2019)."""

from libc.math cimport fabs
from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport distance2
from coterie.policies.kernel.ridge cimport arrival_radius, radius
from coterie.policies.sclub.split_merge cimport SplitMerge

from coterie.policies.kernel.arrays import Field
from coterie.policies.sclub.split_merge import SplitMerge as Base


cdef class SnapshotSets(SplitMerge):
    """Sets with θ̂ and T as they were when the phase began: a user is compared with these, not with members.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    arrivals : float
        α_p of the arrival-frequency test; 0 for none.
    """

    FIELDS = {
        **Base.FIELDS,
        "snapshots.estimate": Field(("rows", "dim")),
        "snapshots.pulls": Field(("rows",), "int64"),
    }

    cdef double *kept
    cdef int64_t *kept_pulls

    def __init__(self, n_users, dim, **settings):
        SplitMerge.__init__(self, n_users, dim, **settings)
        self.closeness = 0.5

    cdef int bind(self) except -1:
        self.kept = <double *> self.pointer("snapshots.estimate")
        self.kept_pulls = <int64_t *> self.pointer("snapshots.pulls")
        return SplitMerge.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """The set of newcomers has a snapshot without data."""
        SplitMerge.welcome(self, known)
        self.keep(self.order[self.n_clusters - 1])
        return 0

    cdef void begin_phase(self) noexcept nogil:
        """Mark every user unchecked, and keep a snapshot of every cluster."""
        cdef Py_ssize_t k
        SplitMerge.begin_phase(self)
        for k in range(self.n_clusters):
            self.keep(self.order[k])

    cdef void keep(self, Py_ssize_t slot) noexcept nogil:
        """The snapshot of a cluster: θ̂ and T as they are now."""
        cdef Py_ssize_t i, d = self.dim
        for i in range(d):
            self.kept[slot * d + i] = self.pools.estimate[slot * d + i]
        self.kept_pulls[slot] = self.pools.pulls[slot]

    cdef bint parts(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Does the user differ from the snapshot of its cluster, or come at another rate than a member?"""
        cdef double reach = self.radii[user] + radius(&self.shape, self.kept_pulls[slot])
        if self.sizes[slot] == 1:
            return False
        if distance2(self.users.estimate + user * self.dim, self.kept + slot * self.dim, self.dim) > reach * reach:
            return True
        return self.arrivals > 0.0 and self.comes_otherwise(user, slot)

    cdef bint comes_otherwise(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Is |pᵢ − pᵢ'| > 2α_pF(t) for a member i' of the cluster?"""
        cdef double far = 2.0 * self.arrivals * arrival_radius(self.rounds) * self.rounds
        cdef int64_t other = self.members.head[slot]
        while other >= 0:
            if fabs(<double> (self.users.pulls[user] - self.users.pulls[other])) > far:
                return True
            other = self.members.next[other]
        return False

    cdef Py_ssize_t split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """The user's new cluster has the user's own θ̂ and T as snapshot; the old cluster keeps its own."""
        cdef Py_ssize_t fresh = SplitMerge.split(self, user, slot)
        self.keep(fresh)
        return fresh
