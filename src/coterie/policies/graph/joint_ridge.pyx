# optimize: 2
"""GOB.Lin and GraphUCB: all users in one ridge regression, tied together by a graph's Laplacian."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner, View
from coterie.policies.kernel.linalg cimport add_outer, add_scaled, combine_rows, dot, invert, natural_log
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row

from coterie.policies.kernel.arrays import Field, ridge_fields
from coterie.policies.kernel.linalg import inverted

cnp.import_array()


cdef class JointRidge(Learner):
    """V⁻¹ as blocks (user, i, user, j), Σ rφ and θ̂ of all users; V = penalty ⊗ I + Σ weight φφᵀ   (GOB.Lin).

    Of V⁻¹, which is symmetric, a round keeps the blocks on and below the diagonal; `arrays` fills in the others.

    Parameters
    ----------
    penalty : array, shape (n, n)
        Weights that pull the estimates of users together; a new user has none.
    weights : array, shape (n,)
        Weight of each user's data.
    alpha : float
        The factor of the width.
    growing : bool
        Whether the bonus grows with time, as in the source.
    """

    FITS = True
    FIELDS = {
        "joint.inverse": Field(("users", "dim", "users", "dim")),
        "joint.moment": Field(("users", "dim")),
        "joint.estimate": Field(("users", "dim")),
        "joint.weights": Field(("users",)),
        "joint.pulls": Field(("users",), "int64"),
        "epochs": Field(("users",), "int64"),
    }

    cdef double *inverse
    cdef double *moment
    cdef double *estimate
    cdef double *weights
    cdef int64_t *pulls
    cdef double *gain
    cdef double *block
    cdef double alpha
    cdef bint growing
    cdef Py_ssize_t side
    cdef object _penalty
    cdef object _weights

    def __init__(self, n_users, dim, *, penalty, weights, double alpha, growing, ridge, schedule, generator):
        self._penalty, self._weights, self.alpha, self.growing = penalty, weights, alpha, growing
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, penalty, weights, **others):
        before = {"penalty": self._penalty, "weights": self._weights, **others}
        self._penalty, self._weights = penalty, weights
        return before

    cdef int bind(self) except -1:
        self.inverse, self.moment = <double *> self.pointer("joint.inverse"), <double *> self.pointer("joint.moment")
        self.estimate = <double *> self.pointer("joint.estimate")
        self.weights, self.pulls = <double *> self.pointer("joint.weights"), <int64_t *> self.pointer("joint.pulls")
        self.side = len(self._arrays["joint.weights"]) * self.dim
        gain, block = np.empty(self.side), np.empty(self.dim * self.dim + self.dim)
        self._scratch.update(gain=gain, block=block)
        self.gain, self.block = <double *> cnp.PyArray_DATA(gain), <double *> cnp.PyArray_DATA(block)
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """V = penalty ⊗ I at the start; new users have no edges, so the blocks of others stay the same."""
        start = np.kron(inverted(np.array(self._penalty[known:, known:], order="C"), 1e-200), np.eye(self.dim))
        n = self.n_users - known
        self.array("joint.inverse")[known:, :, known:, :] = start.reshape(n, self.dim, n, self.dim)
        self.array("joint.weights")[known:] = self._weights[known:]
        return 0

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user's block; with the bonus of the source β² = α² ln(t + 1)   (Cesa-Bianchi et al. 2013, Fig. 2)."""
        cdef Py_ssize_t k, i, d = self.dim
        for k in range(d):
            for i in range(d):
                self.block[k * d + i] = self.inverse[(user * d + k) * self.side + user * d + i]
        seen.estimate, seen.inverse, seen.row = self.estimate + user * d, self.block, user
        seen.beta = self.alpha * sqrt(natural_log(self.rounds + 2.0)) if self.growing else self.alpha
        seen.ridge, seen.usual = self.ridge, INFINITY
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """One rank-one update of the (ud) × (ud) inverse, in place."""
        cdef Py_ssize_t k, d = self.dim, n = self.n_users * d
        cdef double weight = self.weights[user], shrink, step
        self.set_gain(user, x)
        shrink = weight / (1.0 + weight * dot(x, self.gain + user * d, d))
        step = (reward - dot(x, self.estimate + user * d, d)) * shrink
        add_scaled(self.estimate, step, self.gain, n)
        add_scaled(self.moment + user * d, reward, x, d)
        self.pulls[user] += 1
        shrink = sqrt(shrink)
        for k in range(n):
            self.gain[k] *= shrink
        for k in range(n):
            add_scaled(self.inverse + k * self.side, -self.gain[k], self.gain, (k // d + 1) * d)
        return 0

    cdef void set_gain(self, Py_ssize_t user, const double *x) noexcept nogil:
        """V⁻¹φ into `gain`: the user's rows up to its own block, then its columns in the rows below."""
        cdef Py_ssize_t k, d = self.dim
        combine_rows(self.inverse + user * d * self.side, self.side, x, d, (user + 1) * d, self.gain)
        for k in range((user + 1) * d, self.n_users * d):
            self.gain[k] = dot(self.inverse + k * self.side + user * d, x, d)

    def arrays(self):
        """Copies of all arrays by name, V⁻¹ whole."""
        found = Learner.arrays(self)
        side = self.n_users * self.dim
        whole = found["joint.inverse"].reshape(side, side)
        for k in range(0, side, self.dim):
            whole[k : k + self.dim, k + self.dim :] = whole[k + self.dim :, k : k + self.dim].T
        return found

    cdef int label(self, int64_t *out) except -1 nogil:
        """There are no clusters: each user has its own label."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = user
        return 0

    def cluster_of(self, Py_ssize_t user):
        """The user alone."""
        return np.array([user], np.int64)

    def estimates(self):
        """Each user's part of the joint estimate."""
        return self.array("joint.estimate").copy()

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("joint.pulls").copy()


cdef class WalkRidge(JointRidge):
    """A joint regression, with each user's own (λI + Sᵢ)⁻¹ and S for the width   (GraphUCB).

    Parameters
    ----------
    walk : array, shape (n, n)
        The random-walk Laplacian ℒ.
    delta : float
        The growing bonus holds with probability 1 − δ.
    """

    FIELDS = {
        **JointRidge.FIELDS,
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        "logdets": Field(("users",)),
        "walk": Field(("users", "users")),
    }

    cdef Ridge users
    cdef double *grams
    cdef double *logdets
    cdef double *walk
    cdef Py_ssize_t walk_side
    cdef double delta
    cdef object _walk

    def __init__(self, n_users, dim, *, walk, double delta, **others):
        self._walk, self.delta = walk, delta
        JointRidge.__init__(self, n_users, dim, **others)

    def adjust(self, *, walk, **others):
        before = JointRidge.adjust(self, walk=self._walk, **others)
        self._walk = walk
        return before

    cdef int bind(self) except -1:
        self.users = self.ridge_rows("users")
        self.grams, self.logdets = <double *> self.pointer("grams"), <double *> self.pointer("logdets")
        self.walk, self.walk_side = <double *> self.pointer("walk"), self._arrays["walk"].shape[1]
        return JointRidge.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t user
        JointRidge.init_users(self, known)
        for user in range(known, self.n_users):
            clear_row(&self.users, user, self.ridge, self.dim)
        self.array("walk")[...] = self._walk
        return 0

    cdef void precision(self, Py_ssize_t user) noexcept nogil:
        """Λᵢ⁻¹, Λᵢ = Aᵢ + 2λℒᵢᵢI + λ²Σⱼ ℒᵢⱼ²Aⱼ⁻¹, Aⱼ = Sⱼ + λI, into `block`   (Yang et al. 2020)."""
        cdef Py_ssize_t i, other, d = self.dim
        cdef const double *ties = self.walk + user * self.walk_side
        cdef double tie
        for i in range(d * d):
            self.block[i] = self.grams[user * d * d + i]
        for i in range(d):
            self.block[i * d + i] += self.ridge + 2.0 * self.ridge * ties[user]
        for other in range(self.n_users):
            tie = (self.ridge * ties[other]) ** 2
            if other != user and tie > 0.0:
                add_scaled(self.block, tie, self.users.inverse + other * d * d, d * d)
        invert(self.block, self.work, d, 0.5 * self.ridge)

    cdef double multiplier(self, Py_ssize_t user) noexcept nogil:
        """α√(2 ln(|Aᵢ|^½ |λI|^-½ / δ)) + √λ‖Σⱼ ℒᵢⱼθ̂ⱼ‖   (Yang et al. 2020)."""
        cdef Py_ssize_t i, other, d = self.dim
        cdef double *drift = self.block + d * d
        cdef double noise = sqrt(2.0 * (0.5 * self.logdets[user] - natural_log(self.delta)))
        for i in range(d):
            drift[i] = 0.0
        for other in range(self.n_users):
            add_scaled(drift, self.walk[user * self.walk_side + other], self.users.estimate + other * d, d)
        return self.alpha * noise + sqrt(self.ridge) * sqrt(dot(drift, drift, d))

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user's part of the joint estimate, with the width ‖x‖ in Λᵢ⁻¹, which need not shrink."""
        seen.beta = self.multiplier(user) if self.growing else self.alpha
        self.precision(user)
        seen.estimate, seen.inverse, seen.row = self.estimate + user * self.dim, self.block, -1
        seen.ridge, seen.usual = self.ridge, INFINITY
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Absorb for all users at once, and for the user alone."""
        JointRidge.absorb(self, user, x, reward)
        self.logdets[user] += natural_log(1.0 + absorb_row(&self.users, user, x, reward, self.work, self.dim))
        add_outer(self.grams + user * self.dim * self.dim, x, self.dim)
        return 0
