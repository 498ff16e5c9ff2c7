"""SCLUB's sets; other families subclass them to split or merge by another rule."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner
from coterie.policies.kernel.linked_lists cimport Linked
from coterie.policies.kernel.ridge cimport Radius, Ridge
from coterie.policies.sclub.kd_tree cimport Tree


cdef class Sets(Learner):
    cdef Ridge users
    cdef Ridge pools
    cdef Linked members
    cdef Radius shape
    cdef object _shape
    cdef bint reshaped
    cdef double beta, arrivals
    cdef double *grams
    cdef double *pool_grams
    cdef double *radii
    cdef char *checked
    cdef int64_t *sizes
    cdef int64_t *unchecked
    cdef int64_t *order
    cdef double *slack  # of users: f(T) − ‖θ̂ − c‖, with c the centre of the cluster
    cdef double *least  # of clusters: no member's slack is less
    cdef double *block_least  # of 64 users each: the least slack of them
    cdef double *centres  # of clusters: a point near which its members were
    cdef int64_t *centred  # of clusters: their pulls when that was so
    cdef double *reach  # of clusters: f(T)
    cdef double *length  # of clusters: ‖θ̂‖
    cdef int64_t *inactive  # of clusters: users who never came
    cdef int64_t *births  # of clusters: less than those of younger ones
    cdef char *is_changed  # has a cluster changed in this round?
    cdef int64_t *changed  # the clusters that have
    cdef Py_ssize_t n_changed
    cdef Py_ssize_t first_vacant  # no slot below it is free
    cdef int64_t opened  # clusters that there have ever been
    cdef public int64_t n_clusters
    cdef public bint compare_all

    cdef void update_slack(self, Py_ssize_t user) noexcept nogil
    cdef void measure_cluster(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t open_cluster(self, Py_ssize_t size) noexcept nogil
    cdef bint must_split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil
    cdef bint differs_from_any(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil
    cdef bint is_dissimilar(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil
    cdef bint differs_from_many(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil
    cdef void recentre(self, Py_ssize_t slot) noexcept nogil


cdef class SplitMerge(Sets):
    cdef double merge_factor  # clusters merge at this fraction of the distance at which users are split
    cdef readonly Tree tree  # of the clusters whose users are all checked, by θ̂

    cdef void pool(self, Py_ssize_t slot) noexcept nogil
    cdef void begin_phase(self) noexcept nogil
    cdef void mark_changed(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil
    cdef bint are_close(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef void merge(self, bint every) noexcept nogil
    cdef (int64_t, int64_t) oldest_close(self) noexcept nogil
    cdef void insert_into_tree(self, Py_ssize_t slot) noexcept nogil
    cdef double search_radius(self, Py_ssize_t slot) noexcept nogil
    cdef void merge_pair(self, Py_ssize_t older, Py_ssize_t younger) noexcept nogil
