"""Users are numbered inside in the order of their first rewards.

So a user who was known from the start and one who was added when it came are the same to a model, to the last digit. All users
without a reward share the next number, whose data is empty; whoever gives the first reward keeps it.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef class Arrivals(NamedArrays):
    """The number of each user inside, from 1 on; 0 for users without a reward. The user of each number; `count` are taken."""

    FIELDS = {"numbers": Field(("users",), "int64"), "users": Field(("users",), "int64")}
    NUMBERS = ("count",)
    IN_PLACE = True

    cdef int bind(self) except -1:
        self.numbers, self.users = <int64_t *> self.pointer("numbers"), <int64_t *> self.pointer("users")
        return NamedArrays.bind(self)

    def refresh(self):
        arrived = np.flatnonzero(self.array("numbers"))
        taken = self.array("numbers")[arrived]
        if not np.array_equal(np.sort(taken), np.arange(1, self.count + 1)):
            raise ValueError("has numbers of users inside that are none")
        if not np.array_equal(self.array("users")[taken - 1], arrived):
            raise ValueError("has numbers of other users inside")

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil:
        """The number of a user inside, from 0 on; the next one for a user without a reward."""
        return self.numbers[user] - 1 if self.numbers[user] else self.count

    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil:
        """The number of a user who gives a reward."""
        if self.numbers[user] == 0:
            self.users[self.count] = user
            self.count += 1
            self.numbers[user] = self.count
        return self.numbers[user] - 1

    # What Python calls.

    def of_all(self):
        """The number of each user inside, from 0 on; the next one for all without a reward, if there are any."""
        numbers = self.array("numbers")
        return np.where(numbers > 0, numbers - 1, self.count)
