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

    cdef double *snapshot
    cdef int64_t *snapshot_pulls

    def __init__(self, n_users, dim, **settings):
        SplitMerge.__init__(self, n_users, dim, **settings)
        self.merge_factor = 0.5

    cdef int bind(self) except -1:
        self.snapshot = <double *> self.pointer("snapshots.estimate")
        self.snapshot_pulls = <int64_t *> self.pointer("snapshots.pulls")
        return SplitMerge.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """The set of the new users has a snapshot without data."""
        SplitMerge.init_users(self, known)
        self.take_snapshot(self.order[self.n_clusters - 1])
        return 0

    cdef void begin_phase(self) noexcept nogil:
        """Mark every user unchecked, and take a snapshot of every cluster."""
        cdef Py_ssize_t k
        SplitMerge.begin_phase(self)
        for k in range(self.n_clusters):
            self.take_snapshot(self.order[k])

    cdef void take_snapshot(self, Py_ssize_t slot) noexcept nogil:
        """Copy the present θ̂ and T of a cluster to its snapshot."""
        cdef Py_ssize_t i, d = self.dim
        for i in range(d):
            self.snapshot[slot * d + i] = self.pools.estimate[slot * d + i]
        self.snapshot_pulls[slot] = self.pools.pulls[slot]

    cdef bint must_split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Is the user dissimilar to the snapshot of its cluster, or does a member arrive at a different rate?"""
        cdef double reach = self.radii[user] + radius(&self.shape, self.snapshot_pulls[slot])
        if self.sizes[slot] == 1:
            return False
        if distance2(self.users.estimate + user * self.dim, self.snapshot + slot * self.dim, self.dim) > reach * reach:
            return True
        return self.arrivals > 0.0 and self.arrives_differently(user, slot)

    cdef bint arrives_differently(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
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
        self.take_snapshot(fresh)
        return fresh
