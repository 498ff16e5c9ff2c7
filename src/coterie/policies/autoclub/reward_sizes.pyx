"""How large rewards are, so that a single one cannot spoil what all users have taught.

The greatest reward of all counts for at most twice the second greatest, in size. When a later reward shows that it was no
accident, what it counted for is corrected. The largest size of each user's rewards bounds from below what noise is usual.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs, frexp, ldexp, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies.kernel.arrays cimport NamedArrays

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef double MOST_TIMES_SECOND = 2.0  # the greatest reward counts for at most so many times the size of the second greatest
cdef double LEAST_NOISE2 = 1e-100
cdef enum:
    EXPONENTS = 1024  # sizes of rewards are distinguished by their power of two, between 2^-512 and 2^512


cdef inline Py_ssize_t exponent_of(double size) noexcept nogil:
    """Where a size is counted: by its power of two."""
    cdef int exponent
    frexp(size, &exponent)
    return min(max(exponent - 1 + EXPONENTS // 2, 0), EXPONENTS - 1)


cdef class RewardSizes(NamedArrays):
    """The largest size of each user's rewards, and the two greatest rewards of all.

    `greatest` is the reward of largest size so far, `holder` the user who gave it and `greatest_vector` for what; `second` is
    the second largest size. `users_of_size` counts the users by the power of two of their peak.
    """

    FIELDS = {"peaks": Field(("users",)), "greatest_vector": Field(("dim",))}
    NUMBERS = ("holder", "greatest", "second")
    IN_PLACE = True

    cdef int bind(self) except -1:
        self.peaks, self.greatest_vector = <double *> self.pointer("peaks"), <double *> self.pointer("greatest_vector")
        if "users of size" not in self._scratch:
            self._scratch["users of size"] = np.zeros(EXPONENTS, np.int64)
        self.users_of_size = <int64_t *> cnp.PyArray_DATA(self._scratch["users of size"])
        return NamedArrays.bind(self)

    def refresh(self):
        if not (0 <= self.holder < self.n_users and 0 <= self.second <= abs(self.greatest) < np.inf):
            raise ValueError("has a greatest reward that cannot be")
        self._scratch["users of size"][...] = 0
        peaks = self.array("peaks")
        for size in peaks[peaks > 0].tolist():
            self.users_of_size[exponent_of(size)] += 1

    # The least noise.

    cdef void raise_peak(self, Py_ssize_t user, double size) noexcept nogil:
        """A user has had a reward of this size."""
        if size > self.peaks[user]:
            if self.peaks[user] > 0.0:
                self.users_of_size[exponent_of(self.peaks[user])] -= 1
            self.users_of_size[exponent_of(size)] += 1
            self.peaks[user] = size

    cdef double least_noise(self) noexcept nogil:
        """A variance that never lowers a noise weight: 4^e/2¹⁴, if 2 + √n of the n users have had a reward of size 2^e."""
        cdef Py_ssize_t k, found = 0, wanted = 2 + <Py_ssize_t> sqrt(self.n_users)
        for k in range(EXPONENTS - 1, -1, -1):
            found += self.users_of_size[k]
            if found >= wanted:
                return max(ldexp(1.0, 2 * (<int> k - EXPONENTS // 2) - 14), LEAST_NOISE2)
        return LEAST_NOISE2

    # The limit on the greatest reward.

    cdef bint revise(self, double reward, Correction *correction) noexcept nogil:
        """Take a new reward into account: does the greatest before it count for more now? Then writes `correction`.

        To be called before `limit`, while `greatest_vector` is still that of the reward to be corrected.
        """
        cdef double size = fabs(reward)
        if size <= self.second:
            return False
        correction.user, correction.before = self.holder, self.limited_greatest()
        self.second = min(size, fabs(self.greatest))
        correction.after = self.limited_greatest()
        return correction.after != correction.before

    cdef double limit(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """What a new reward counts for, after `revise`."""
        if fabs(reward) <= fabs(self.greatest):
            return reward
        self.greatest, self.holder = reward, user
        memcpy(self.greatest_vector, x, self.dim * sizeof(double))
        return self.limited_greatest()

    cdef double limited_greatest(self) noexcept nogil:
        """What the greatest reward counts for."""
        cdef double most = MOST_TIMES_SECOND * self.second
        return min(max(self.greatest, -most), most)

    # What Python calls.

    def limited(self, Py_ssize_t user, double[::1] x, double reward):
        """What a reward counts for, and a correction (user, before, after) or None: for whoever uses the limit alone."""
        cdef Correction correction
        revised = (correction.user, correction.before, correction.after) if self.revise(reward, &correction) else None
        return self.limit(user, &x[0], reward), revised
