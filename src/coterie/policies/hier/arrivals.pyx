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
    """The number of each user inside, from 1 on; 0 for users without a reward.

    `users` are those of each number, of which `count` are taken. A user who starts again gets another number, and its last one is
    past: nobody has it any more. So there is room for as many numbers as there are users and `past` ones.
    """

    FIELDS = {"numbers": Field(("users",), "int64"), "users": Field(("inside",), "int64")}
    NUMBERS = ("count", "past")
    IN_PLACE = True

    @classmethod
    def extents(cls, n_users, dim, *, past=0):
        return {"users": n_users, "inside": n_users + past}

    def _extents(self):
        return self.extents(self.n_users, self.dim, past=self.past)

    @classmethod
    def shapes(cls, n_users, dim, numbers=None):
        return super().shapes(n_users, dim, numbers, past=0 if numbers is None else numbers["past"])

    cdef int bind(self) except -1:
        self.numbers, self.users = <int64_t *> self.pointer("numbers"), <int64_t *> self.pointer("users")
        return NamedArrays.bind(self)

    def prepare(self, numbers):
        self.past = numbers["past"]
        NamedArrays.prepare(self, numbers)

    def refresh(self):
        arrived, owners = np.flatnonzero(self.array("numbers")), self.array("users")[: self.count]
        taken = self.array("numbers")[arrived] - 1
        if not 0 <= self.count <= self.n_users + self.past or self.count - len(taken) != self.past:
            raise ValueError("has more or fewer numbers of users inside than users")
        if taken.size and not 0 <= taken.min() <= taken.max() < self.count:
            raise ValueError("has numbers of users inside that are none")
        if not np.array_equal(owners[taken], arrived) or (owners.size and not 0 <= owners.min() <= owners.max() < self.n_users):
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

    cdef bint is_past(self, Py_ssize_t number) noexcept nogil:
        """Has nobody this number any more?"""
        return self.numbers[self.users[number]] - 1 != number

    # What Python calls.

    def of_all(self):
        """The number of each user inside, from 0 on; the next one for all without a reward, if there are any."""
        numbers = self.array("numbers")
        return np.where(numbers > 0, numbers - 1, self.count)

    def restart(self, Py_ssize_t number):
        """The user of this number starts again, as one without a reward; returns it."""
        cdef Py_ssize_t user = self.users[number]
        self.numbers[user] = 0
        self.past += 1
        self._allocate()
        return user

    def sums(self, values):
        """What the numbers of each user, past ones included, have together."""
        return np.bincount(self.array("users")[: self.count], values[: self.count], minlength=self.n_users)
