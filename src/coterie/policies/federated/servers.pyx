# optimize: 2
"""FCLUB_DC: users on several servers, clusters of each server joined by a global one, messages only when they tell much
(Liu et al. 2022).

The rows below are those of docs/algorithms/fclubdc.md.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from coterie.policies.kernel.bits cimport drop, has, put
from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport add_outer, add_scaled, distance2, eliminate, natural_log
from coterie.policies.kernel.ridge cimport (
    Radius, Ridge, absorb_row, clear_row, finish_pool, radius, radius_of, start_pool
)

from coterie.policies.kernel.arrays import MOST_COUNTED, Field, ridge_fields

cnp.import_array()


cdef struct Sums:
    # S, b and T of many rows
    double *gram
    double *moment
    int64_t *count


cdef inline void add_sums(Sums *to, Py_ssize_t row, Sums *source, Py_ssize_t other, Py_ssize_t d) noexcept nogil:
    """Add a row to another one."""
    add_scaled(to.gram + row * d * d, 1.0, source.gram + other * d * d, d * d)
    add_scaled(to.moment + row * d, 1.0, source.moment + other * d, d)
    to.count[row] += source.count[other]


cdef inline void clear_sums(Sums *sums, Py_ssize_t row, Py_ssize_t d) noexcept nogil:
    """A row without data."""
    memset(sums.gram + row * d * d, 0, d * d * sizeof(double))
    memset(sums.moment + row * d, 0, d * sizeof(double))
    sums.count[row] = 0


def sum_fields(prefix):
    """The arrays of sums, a row for each local cluster."""
    return {
        f"{prefix}.gram": Field(("rows", "dim", "dim")),
        f"{prefix}.moment": Field(("rows", "dim")),
        f"{prefix}.count": Field(("rows",), "int64"),
    }


cdef class Servers(Learner):
    """Users' own statistics and graph; what each local cluster knows, has to send and has to get; sums of global clusters.

    `known` is what a local cluster has of its global cluster, `waiting_up` what it has not sent yet, `waiting_down` what others
    sent and it has not got yet. `pools` are `known` and `waiting_up` together, by which it decides. Row numbers of local clusters
    are in `homes`, those of global clusters in `groups`.

    Parameters
    ----------
    n_servers : int
        Users are on server number user mod n_servers.
    beta : float
        The factor of the width.
    shape : Radius
        The radius f by which users are compared.
    merging : float
        The factor of the radius by which local clusters are compared.
    upload, download : float
        Logarithms of the ratios of determinants at which a message is sent.
    """

    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        **sum_fields("known"),
        **sum_fields("waiting_up"),
        **sum_fields("waiting_down"),
        **sum_fields("global"),
        "local_edges": Field(("users", "words"), "uint64"),
        "homes": Field(("users",), "int64"),
        "groups": Field(("rows",), "int64"),
        "logdets": Field(("rows",)),
        "known_logdets": Field(("rows",)),
    }
    NUMBERS = ("rounds", "n_local", "n_groups", "messages", "numbers_sent", "next_phase", "phase_length")

    cdef public int64_t n_local
    cdef public int64_t n_groups
    cdef public int64_t messages
    cdef public int64_t numbers_sent
    cdef public int64_t next_phase
    cdef public int64_t phase_length
    cdef Ridge users
    cdef Ridge pools
    cdef Sums known
    cdef Sums up
    cdef Sums down
    cdef Sums whole
    cdef double *grams
    cdef uint64_t *edges
    cdef int64_t *homes
    cdef int64_t *groups
    cdef double *logdets
    cdef double *known_logdets
    cdef Py_ssize_t stride
    cdef Py_ssize_t n_servers
    cdef Radius shape
    cdef object _shape
    cdef double merging
    cdef double beta
    cdef double upload
    cdef double download
    cdef int64_t *stack

    def __init__(
        self, n_users, dim, *, n_servers, double beta, shape, double merging, double upload, double download,
        ridge, schedule, generator,
    ):
        self.n_servers, self.beta, self.upload, self.download = n_servers, beta, upload, download
        self._shape, self.shape, self.merging = shape, radius_of(shape), merging
        self.next_phase = self.phase_length = 2
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, beta, shape, **others):
        """β and the radius, which may depend on the number of users."""
        before = {"beta": self.beta, "shape": self._shape, **others}
        self.beta, self._shape, self.shape = beta, shape, radius_of(shape)
        return before

    cdef Sums sums(self, str prefix) except *:
        """The sums whose arrays begin with a prefix."""
        return Sums(
            <double *> self.pointer(f"{prefix}.gram"),
            <double *> self.pointer(f"{prefix}.moment"),
            <int64_t *> self.pointer(f"{prefix}.count"),
        )

    cdef int bind(self) except -1:
        self.users, self.pools = self.ridge_rows("users"), self.ridge_rows("pools")
        self.known, self.whole = self.sums("known"), self.sums("global")
        self.up, self.down = self.sums("waiting_up"), self.sums("waiting_down")
        self.grams, self.edges = <double *> self.pointer("grams"), <uint64_t *> self.pointer("local_edges")
        self.homes, self.groups = <int64_t *> self.pointer("homes"), <int64_t *> self.pointer("groups")
        self.logdets, self.known_logdets = <double *> self.pointer("logdets"), <double *> self.pointer("known_logdets")
        self.stride = self._arrays["local_edges"].shape[1]
        if len(self._arrays["homes"]) > len(self._scratch.get("stack", ())):
            self._scratch["stack"] = np.zeros(len(self._arrays["homes"]), np.int64)
        self.stack = <int64_t *> cnp.PyArray_DATA(self._scratch["stack"])
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Users of a server are joined   (row 1); those who come later are alone until the next phase."""
        cdef Py_ssize_t user, other
        for user in range(known, self.n_users):
            clear_row(&self.users, user, self.ridge, self.dim)
            for other in range(user):
                if other % self.n_servers == user % self.n_servers:
                    put(self.edges + user * self.stride, other)
                    put(self.edges + other * self.stride, user)
        if known == 0:
            self.start_phase()
            self.messages = self.numbers_sent = 0  # there was nothing to send
        for user in range(known if known else self.n_users, self.n_users):
            self.homes[user], self.groups[self.n_local] = self.n_local, self.n_groups
            clear_sums(&self.whole, self.n_groups, self.dim)
            clear_sums(&self.known, self.n_local, self.dim)
            self.empty_buffers(self.n_local)
            self.settle(self.n_local)
            self.n_local += 1
            self.n_groups += 1
        return 0

    def refresh(self):
        homes, groups = self.array("homes"), self.array("groups")[: max(self.n_local, 0)]
        if not 1 <= self.n_groups <= self.n_local <= self.n_users:
            raise ValueError(f"has {self.n_local} local clusters of {self.n_users} users")
        if homes.min() < 0 or homes.max() >= self.n_local or groups.min() < 0 or groups.max() >= self.n_groups:
            raise ValueError("has numbers in 'homes' or 'groups' that are no clusters")
        if min(self.messages, self.numbers_sent) < 0 or not 2 <= self.phase_length <= MOST_COUNTED or self.next_phase <= self.rounds:
            raise ValueError("has a number of messages or a phase that cannot be")
        for name in ("known.count", "waiting_up.count", "waiting_down.count", "global.count"):
            if self.array(name).min() < 0 or self.array(name).max() > MOST_COUNTED:
                raise ValueError(f"has numbers in {name!r} that count nothing")
        bits = np.unpackbits(self.array("local_edges").astype("<u8").view(np.uint8), axis=1, bitorder="little")
        square = bits[:, : self.n_users]
        if bits[:, self.n_users :].any() or square.diagonal().any() or not np.array_equal(square, square.T):
            raise ValueError("has an edge in 'local_edges' that leads nowhere, or in one direction only")

    # Decisions and rewards within a phase.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """What the local cluster knows, and what it has not sent yet   (row 5)."""
        show_row(seen, &self.pools, self.homes[user], self.beta, self.ridge, self.dim)
        seen.row = -1
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add a reward to the user, to its local cluster and to what that has to send   (row 6)."""
        cdef Py_ssize_t d = self.dim, local = self.homes[user]
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        self.logdets[local] += natural_log(1.0 + absorb_row(&self.pools, local, x, reward, self.work, d))
        add_outer(self.up.gram + local * d * d, x, d)
        add_scaled(self.up.moment + local * d, reward, x, d)
        self.up.count[local] += 1
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Send what is worth it   (rows 7, 8); begin the next phase when it is time   (row 2)."""
        cdef Py_ssize_t local = self.homes[user], other
        cdef double certain
        if self.logdets[local] - self.known_logdets[local] >= self.upload:
            self.send_up(local)
            certain = self.logdet(self.whole.gram + self.groups[local] * self.dim * self.dim) - self.download
            for other in range(self.n_local):
                if self.groups[other] == self.groups[local] and self.down.count[other] and self.known_logdets[other] <= certain:
                    self.send_down(other)
        while self.rounds >= self.next_phase:
            self.phase_length *= 2
            self.next_phase += self.phase_length
            self.start_phase()
        return 0

    cdef void send_up(self, Py_ssize_t local) noexcept nogil:
        """Add what a local cluster has to send to the global one, and to what the others have to get   (row 7)."""
        cdef Py_ssize_t other
        add_sums(&self.whole, self.groups[local], &self.up, local, self.dim)
        add_sums(&self.known, local, &self.up, local, self.dim)
        for other in range(self.n_local):
            if other != local and self.groups[other] == self.groups[local]:
                add_sums(&self.down, other, &self.up, local, self.dim)
        clear_sums(&self.up, local, self.dim)
        self.known_logdets[local] = self.logdets[local]
        self.count_message()

    cdef void send_down(self, Py_ssize_t local) noexcept nogil:
        """Give a local cluster what it has to get   (row 8)."""
        add_sums(&self.known, local, &self.down, local, self.dim)
        clear_sums(&self.down, local, self.dim)
        self.settle(local)
        self.count_message()

    cdef void count_message(self) noexcept nogil:
        """A message has S, which is symmetric, b and T."""
        self.messages += 1
        self.numbers_sent += self.dim * (self.dim + 1) // 2 + self.dim + 1

    cdef double logdet(self, const double *gram) noexcept nogil:
        """ln|λI + S|."""
        cdef Py_ssize_t k, d = self.dim
        cdef double found, explained
        memcpy(self.work, gram, d * d * sizeof(double))
        memset(self.work + d * d, 0, d * sizeof(double))
        for k in range(d):
            self.work[k * d + k] += self.ridge
        eliminate(self.work, self.work + d * d, d, 0.5 * self.ridge, &found, &explained)
        return found

    cdef void settle(self, Py_ssize_t local) noexcept nogil:
        """What a local cluster decides by: what it knows and what it has not sent yet."""
        cdef Py_ssize_t d = self.dim
        self.known_logdets[local] = self.logdet(self.known.gram + local * d * d)
        start_pool(&self.pools, local, d)
        add_scaled(self.pools.inverse + local * d * d, 1.0, self.known.gram + local * d * d, d * d)
        add_scaled(self.pools.inverse + local * d * d, 1.0, self.up.gram + local * d * d, d * d)
        add_scaled(self.pools.moment + local * d, 1.0, self.known.moment + local * d, d)
        add_scaled(self.pools.moment + local * d, 1.0, self.up.moment + local * d, d)
        self.pools.pulls[local] = self.known.count[local] + self.up.count[local]
        self.logdets[local] = self.logdet(self.pools.inverse + local * d * d)
        finish_pool(&self.pools, local, self.ridge, self.work, d)

    cdef void empty_buffers(self, Py_ssize_t local) noexcept nogil:
        clear_sums(&self.up, local, self.dim)
        clear_sums(&self.down, local, self.dim)

    # The start of a phase.

    cdef void start_phase(self) noexcept nogil:
        """Cluster the users of every server, then the clusters of all servers; everybody gets all of its global cluster."""
        cdef Py_ssize_t local
        self.cut_edges()
        self.cluster_users()
        self.cluster_clusters()
        for local in range(self.n_local):
            self.empty_buffers(local)
            clear_sums(&self.known, local, self.dim)
            add_sums(&self.known, local, &self.whole, self.groups[local], self.dim)
            self.settle(local)
            self.count_message()

    cdef void cut_edges(self) noexcept nogil:
        """Drop the edges between users whose estimates differ   (row 3)."""
        cdef Py_ssize_t user, other, d = self.dim
        cdef double reach
        for user in range(self.n_users):
            for other in range(user):
                if has(self.edges + user * self.stride, other):
                    reach = radius(&self.shape, self.users.pulls[user]) + radius(&self.shape, self.users.pulls[other])
                    if sqrt(distance2(self.users.estimate + user * d, self.users.estimate + other * d, d)) > reach:
                        drop(self.edges + user * self.stride, other)
                        drop(self.edges + other * self.stride, user)

    cdef void cluster_users(self) noexcept nogil:
        """Local clusters are the components, by their lowest users; each sends the sum of its users   (row 3)."""
        cdef Py_ssize_t user, other, waiting, d = self.dim
        for user in range(self.n_users):
            self.homes[user] = -1
        self.n_local = 0
        for user in range(self.n_users):
            if self.homes[user] >= 0:
                continue
            self.homes[user], self.stack[0], waiting = self.n_local, user, 1
            while waiting:
                waiting -= 1
                waiting = self.visit(self.stack[waiting], waiting)
            self.n_local += 1
        for other in range(self.n_local):
            clear_sums(&self.known, other, d)
            self.empty_buffers(other)
            self.count_message()
        for user in range(self.n_users):
            add_scaled(self.known.gram + self.homes[user] * d * d, 1.0, self.grams + user * d * d, d * d)
            add_scaled(self.known.moment + self.homes[user] * d, 1.0, self.users.moment + user * d, d)
            self.known.count[self.homes[user]] += self.users.pulls[user]
        for other in range(self.n_local):
            self.settle(other)

    cdef Py_ssize_t visit(self, Py_ssize_t user, Py_ssize_t waiting) noexcept nogil:
        """Put the neighbours of a user into its local cluster; they wait for their own neighbours."""
        cdef Py_ssize_t other
        for other in range(self.n_users):
            if self.homes[other] < 0 and has(self.edges + user * self.stride, other):
                self.homes[other], self.stack[waiting] = self.n_local, other
                waiting += 1
        return waiting

    cdef void cluster_clusters(self) noexcept nogil:
        """Global clusters are the components of local clusters that are close, by their lowest ones   (row 4)."""
        cdef Py_ssize_t local, waiting
        for local in range(self.n_local):
            self.groups[local] = -1
        self.n_groups = 0
        for local in range(self.n_local):
            if self.groups[local] >= 0:
                continue
            clear_sums(&self.whole, self.n_groups, self.dim)
            self.groups[local], self.stack[0], waiting = self.n_groups, local, 1
            while waiting:
                waiting -= 1
                add_sums(&self.whole, self.n_groups, &self.known, self.stack[waiting], self.dim)
                waiting = self.visit_cluster(self.stack[waiting], waiting)
            self.n_groups += 1

    cdef Py_ssize_t visit_cluster(self, Py_ssize_t local, Py_ssize_t waiting) noexcept nogil:
        """Put local clusters that are close to one into its global cluster; they wait for those close to them."""
        cdef Py_ssize_t other, d = self.dim
        cdef double reach
        for other in range(self.n_local):
            if self.groups[other] >= 0:
                continue
            reach = radius(&self.shape, self.pools.pulls[local]) + radius(&self.shape, self.pools.pulls[other])
            if sqrt(distance2(self.pools.estimate + local * d, self.pools.estimate + other * d, d)) < self.merging * reach:
                self.groups[other], self.stack[waiting] = self.n_groups, other
                waiting += 1
        return waiting

    cdef int label(self, int64_t *out) except -1 nogil:
        """The global cluster of each user."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = self.groups[self.homes[user]]
        return 0
