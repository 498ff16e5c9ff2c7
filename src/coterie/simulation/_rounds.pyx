# optimize: 2
"""The only loop over rounds: runs a learner on a block of rounds that an environment has generated.

Compiled policies are learners; any other policy is wrapped by `AnyPolicy`. Both use the same loop and the same rounds.
"""

from operator import index
from time import perf_counter

import numpy as np

cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from coterie.policies.kernel.learner cimport Learner
from coterie.policies.kernel.learner cimport Offer, WidthCache, largest

from coterie.errors import ArgumentError
from coterie.policies.base import too_long
from coterie.policies.confidence import Schedule
from coterie.policies.protocols import ITEM_PARAMETERS, takes_items
from coterie.validation import shown as printed

cnp.import_array()


cdef class AnyPolicy(Learner):
    """A learner that calls the methods of a policy.

    Parameters
    ----------
    policy : Policy
        Any object with `recommend` and `update`, or with the corresponding methods for lists or pairs. Ids of items are
        passed to methods that have a parameter `items` or, in `update`, `item`.
    """

    cdef readonly object policy
    cdef frozenset named

    def __init__(self, policy, Py_ssize_t n_users, Py_ssize_t dim):
        self.policy = policy
        self.named = frozenset([name for name in ITEM_PARAMETERS if takes_items(policy, name)])
        Learner.__init__(
            self, n_users, dim, ridge=1.0, schedule=Schedule(), generator=np.random.Generator(np.random.PCG64(0))
        )

    cdef int choose(
        self, Py_ssize_t user, Offer *offer, WidthCache *memory, Py_ssize_t k, int64_t *out
    ) except -1 nogil:
        with gil:
            return self.call_recommend(user, offer, k, out)

    cdef int call_recommend(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1:
        """Call `recommend` or `recommend_list` and validate the returned arms."""
        cdef Py_ssize_t j
        arms = copied_rows(offer.items, offer.picks, offer.n, self.dim)
        items = self.named_ids("recommend" if k == 1 else "recommend_list", offer.ids, offer.n)
        self.explored = bool(getattr(self.policy, "exploring", False))
        if k == 1:
            out[0] = arm_of("recommend", self.policy.recommend(user, arms, **items), offer.n)
            return 0
        answer = self.policy.recommend_list(user, arms, k, **items)
        found = [arm_of("recommend_list", arm, offer.n) for arm in answer] if hasattr(answer, "__iter__") else []
        if len(found) != k or len(set(found)) != k:
            raise ArgumentError(f"recommend_list must return {k} different arms, got {printed(answer)}")
        for j in range(k):
            out[j] = found[j]
        return 0

    cdef dict named_ids(self, str method, const int64_t *ids, Py_ssize_t n):
        """Ids as an argument, if there are any and the method takes them; a single one for `update`."""
        cdef Py_ssize_t j
        if ids == NULL or method not in self.named:
            return {}
        if method == "update":
            return {"item": ids[0]}
        return {"items": np.array([ids[j] for j in range(n)], np.int64)}

    cdef int learn(
        self,
        Py_ssize_t user,
        const double *xs,
        const double *rewards,
        const int64_t *ids,
        Py_ssize_t n,
        Py_ssize_t shown,
    ) except -1 nogil:
        with gil:
            return self.call_update(user, xs, rewards, ids, n, shown)

    cdef int call_update(
        self,
        Py_ssize_t user,
        const double *xs,
        const double *rewards,
        const int64_t *ids,
        Py_ssize_t n,
        Py_ssize_t shown,
    ) except -1:
        """Call `update` or `update_list` with the observed feedback."""
        rows = copied_rows(xs, NULL, shown, self.dim)
        self.rounds += n
        if shown == 1:
            self.policy.update(user, rows[0], rewards[0], **self.named_ids("update", ids, 1))
        else:
            clicked = n - 1 if rewards[n - 1] == 1.0 else None
            self.policy.update_list(user, rows, clicked, **self.named_ids("update_list", ids, shown))
        return 0

    cdef int label(self, int64_t *out) except -1 nogil:
        with gil:
            return self.write_labels(out)

    cdef int write_labels(self, int64_t *out) except -1:
        """Write the policy's labels, or -1 for each user if it has no method `labels`."""
        cdef Py_ssize_t user
        labels = np.full(self.n_users, -1)
        if hasattr(self.policy, "labels"):
            labels = np.asarray(self.policy.labels())
            if labels.shape != (self.n_users,) or labels.dtype.kind not in "iu" or labels.min() < 0:
                raise ArgumentError(
                    f"labels() must return an integer of at least 0 for each of {self.n_users} users, "
                    f"got {labels.dtype} of shape {labels.shape}"
                )
        for user in range(self.n_users):
            out[user] = labels[user]
        return 0

    def grow(self, Py_ssize_t n_users):
        """Set the number of users."""
        self.n_users = n_users


cdef object copied_rows(const double *items, const int64_t *picks, Py_ssize_t n, Py_ssize_t dim):
    """Copy rows into a new matrix, so that a policy may keep or change it."""
    rows = np.empty((n, dim))
    cdef double *out = <double *> cnp.PyArray_DATA(rows)
    cdef Py_ssize_t k
    for k in range(n):
        memcpy(out + k * dim, items + (k if picks == NULL else picks[k]) * dim, dim * sizeof(double))
    return rows


cdef int64_t arm_of(str method, object arm, Py_ssize_t n) except -1:
    """Validate that a policy returned the number of an arm."""
    try:
        chosen = index(arm)
    except TypeError:
        chosen = -1
    if not 0 <= chosen < n:
        raise ArgumentError(f"{method} must return row numbers from 0 to {n - 1}, got {printed(arm)}")
    return chosen


cdef class Ledger:
    """Running totals, and their values recorded at each mark.

    Labels are not stored, except those of the last mark: `judge(labels)` returns the number of clusters and the Rand index.
    `judging` is the time spent in `judge`, which is not part of the policy's time.

    Parameters
    ----------
    marks : array of int
        The rounds after which to record, ascending.
    n_users : int
        Number of users at the horizon.
    judge : callable
        Called with the label of each user, -1 for users that have not appeared yet, whenever labels have changed.
    """

    cdef readonly object marks, regrets, rewards, uniforms, uniform_rounds, clusters, ari
    cdef readonly double regret, reward, uniform, judging
    cdef readonly int64_t rounds, explored
    cdef object _labels, _before, _judge
    cdef Py_ssize_t passed
    cdef int64_t next_mark

    def __init__(self, marks, n_users, judge):
        n = len(marks)
        self.marks, self.next_mark, self._judge = marks, marks[0], judge
        self.regrets, self.rewards, self.uniforms = np.zeros(n), np.zeros(n), np.zeros(n)
        self.uniform_rounds, self.clusters, self.ari = np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.nan)
        self._labels, self._before = np.full(n_users, -1, np.int64), None

    def add(self, Learner learner, double regret, double reward, double uniform, bint explored):
        """Add a round to the totals."""
        self.regret += regret
        self.reward += reward
        self.uniform += uniform
        self.explored += explored
        self.rounds += 1
        if self.rounds == self.next_mark:
            self.note(learner)

    cdef int note(self, Learner learner) except -1:
        """Record the totals, the clusters and the Rand index at a mark."""
        self.regrets[self.passed], self.rewards[self.passed] = self.regret, self.reward
        self.uniforms[self.passed] = self.uniform
        self.uniform_rounds[self.passed] = self.explored
        learner.label(<int64_t *> cnp.PyArray_DATA(self._labels))
        began = perf_counter()
        if self._before is None or not np.array_equal(self._labels, self._before):
            self.clusters[self.passed :], self.ari[self.passed :] = self._judge(self._labels)
            self._before = self._labels.copy()
        self.judging += perf_counter() - began
        self.passed += 1
        self.next_mark = self.marks[self.passed] if self.passed < len(self.marks) else -1
        return 0


cdef class Pending:
    """Ring buffer of delayed feedback: the slot of a round is its number modulo the number of slots."""

    cdef Py_ssize_t slots, length, dim
    cdef int64_t[::1] due, users, observed
    cdef double[:, :, ::1] xs
    cdef double[:, ::1] rewards
    cdef int64_t[:, ::1] ids
    cdef bint named  # whether the arms have ids

    def __init__(self, longest, length, dim):
        self.slots = longest + 1 if longest else 0
        self.length, self.dim = length, dim
        room = max(self.slots, 1)
        self.due, self.users = np.full(room, -1, np.int64), np.zeros(room, np.int64)
        self.observed = np.zeros(room, np.int64)
        self.xs, self.rewards = np.zeros((room, length, dim)), np.zeros((room, length))
        self.ids = np.zeros((room, length), np.int64)

    cdef int deliver(self, Learner learner, int64_t t) except -1 nogil:
        """Pass the feedback that is due by round t to the learner, oldest round first."""
        cdef int64_t back, slot
        for back in range(self.slots - 1, -1, -1):
            slot = (t - back) % self.slots
            if t >= back and 0 <= self.due[slot] <= t:
                self.due[slot] = -1
                learner.learn(
                    self.users[slot],
                    &self.xs[slot, 0, 0],
                    &self.rewards[slot, 0],
                    &self.ids[slot, 0] if self.named else NULL,
                    self.observed[slot],
                    self.length,
                )
        return 0


cdef class Remembered:
    """Width cache: bounds on the widths of lasting items for each row of a learner, with the arrays of `WidthCache`."""

    cdef object _arrays
    cdef WidthCache memory
    cdef readonly Py_ssize_t n_rows

    def __init__(self, items, n_rows):
        self.n_rows = n_rows
        bounds, epochs = np.empty((n_rows, len(items))), np.full(n_rows, -1, np.int64)
        squares = np.einsum("ki,ki->k", items, items)
        self._arrays = (bounds, epochs, squares)
        self.memory.bounds = <double *> cnp.PyArray_DATA(bounds)
        self.memory.epochs = <int64_t *> cnp.PyArray_DATA(epochs)
        self.memory.squares = <const double *> cnp.PyArray_DATA(squares)
        self.memory.n_items = len(items)


cdef class Shown:
    """The items that each user has been shown in a run, a bit for each user and item.

    Parameters
    ----------
    n_users, n_items : int
        Users in the end, and items of the catalogue.
    """

    cdef uint8_t[:, ::1] bits
    cdef readonly Py_ssize_t n_items

    def __init__(self, Py_ssize_t n_users, Py_ssize_t n_items):
        self.bits, self.n_items = np.zeros((n_users, n_items // 8 + 1), np.uint8), n_items

    cdef Py_ssize_t unseen(
        self, Py_ssize_t user, const int64_t *candidates, const double *means, Py_ssize_t n, Py_ssize_t most,
        int64_t *picks, double *values
    ) noexcept nogil:
        """Write the first `most` candidates that the user has not been shown, and their means; return their number."""
        cdef Py_ssize_t j, found = 0
        for j in range(n):
            if candidates[j] >= 0 and not self.bits[user, candidates[j] >> 3] >> (candidates[j] & 7) & 1:
                picks[found], values[found] = candidates[j], means[j]
                found += 1
                if found == most:
                    break
        return found

    cdef void add(self, Py_ssize_t user, int64_t item) noexcept nogil:
        """The user has been shown this item."""
        self.bits[user, item >> 3] |= 1 << (item & 7)


cdef double click_probability(const double *means, const int64_t *arms, Py_ssize_t k) noexcept nogil:
    """Probability of a click on a list, 1 − Π(1 − w) over its arms."""
    cdef double missed = 1.0
    cdef Py_ssize_t j
    for j in range(k):
        missed *= 1.0 - means[arms[j]]
    return 1.0 - missed


cdef double uniform_reward(const double *means, Py_ssize_t n, Py_ssize_t k, double *missed) noexcept nogil:
    """Expected reward of k distinct arms drawn uniformly: their mean, or for a list the probability of a click.

    missed[j] is the mean of Π(1 − w) over all subsets of j of the arms processed so far.
    """
    cdef double total = 0.0
    cdef Py_ssize_t i, j
    if k == 1:
        for i in range(n):
            total += means[i]
        return total / n
    missed[0] = 1.0
    for j in range(1, k + 1):
        missed[j] = 0.0
    for i in range(n):
        for j in range(min(i + 1, k), 0, -1):
            missed[j] = (j * (1.0 - means[i]) * missed[j - 1] + (i + 1 - j) * missed[j]) / (i + 1)
    return 1.0 - missed[k]


def play(Learner learner, block, Ledger ledger, Pending pending, Remembered remembered, Shown shown):
    """Run the rounds of a block, without the GIL unless the policy needs it.

    With `shown`, the arms of a round are the first `block.unseen` candidates that its user has not been shown; a
    round without any is skipped: it counts, and the policy neither decides nor learns.
    """
    cdef const int64_t[::1] users = block.users
    cdef const double[:, ::1] items = block.items
    cdef const int64_t[:, ::1] picks = block.picks
    cdef const double[:, ::1] means = block.means
    cdef Py_ssize_t k = block.length, n = users.shape[0]
    cdef const double[:, ::1] noise = np.reshape(block.noise, (n, k))
    cdef const int64_t[::1] delays = block.delays
    cdef bint binary = block.binary
    cdef WidthCache *memory = NULL if remembered is None or learner.epochs == NULL else &remembered.memory
    cdef Offer offer
    cdef int64_t[::1] chosen = np.empty(2 * k, np.int64)
    cdef double[:, ::1] xs = np.empty((k, learner.dim))
    cdef double[::1] rewards = np.empty(k), missed = np.empty(k + 1)
    cdef Py_ssize_t t, j, slot, observed, dim = learner.dim, width = picks.shape[1], most = block.unseen
    cdef bint once = shown is not None
    cdef int64_t[::1] arms = np.empty(most + 1, np.int64)
    cdef double[::1] arm_means = np.empty(most + 1)
    cdef const double *values
    cdef bint named = block.lasting or block.ids is not None
    cdef const int64_t[::1] ids = np.arange(items.shape[0]) if block.ids is None else block.ids
    cdef int64_t[::1] arm_ids = np.empty(max(width, 1), np.int64), shown_ids = np.empty(k, np.int64)
    pending.named, offer.ids = named, NULL
    if k != pending.length or (pending.slots == 0 and delays.shape[0] and np.max(block.delays) > 0):
        raise ArgumentError("the environment must have lists of constant length and the correct longest_delay")
    cdef double mean, best, reward
    cdef const double[::1] signs = np.empty(0) if block.signs is None else block.signs
    cdef bint corrupted = block.signs is not None
    offer.items, offer.n = &items[0, 0], width
    learner.reserve(most if once else width)
    with nogil:
        for t in range(n):
            offer.picks, values = &picks[t, 0], &means[t, 0]
            if once:
                offer.n = shown.unseen(users[t], offer.picks, values, width, most, &arms[0], &arm_means[0])
                offer.picks, values = &arms[0], &arm_means[0]
                if offer.n == 0:  # the user has been shown everything
                    if pending.slots:
                        pending.deliver(learner, ledger.rounds)
                    ledger.rounds += 1
                    if ledger.rounds == ledger.next_mark:
                        with gil:
                            ledger.note(learner)
                    continue
            if named:
                for j in range(offer.n):
                    arm_ids[j] = ids[offer.picks[j]]
                offer.ids = &arm_ids[0]
            if learner.choose(users[t], &offer, memory, k, &chosen[0]):
                with gil:
                    raise too_long("arms", learner.ridge)
            ledger.explored += learner.explored
            observed = 0
            reward = 0.0
            for j in range(k):
                memcpy(&xs[j, 0], offer.items + offer.picks[chosen[j]] * dim, dim * sizeof(double))
                shown_ids[j] = arm_ids[chosen[j]]
                # The user scans a list until the first click: positions below a click are not observed.
                if observed == j and (j == 0 or rewards[j - 1] != 1.0):
                    mean = values[chosen[j]]
                    if corrupted:
                        mean = signs[t] * mean + (0.5 * (1.0 - signs[t]) if binary else 0.0)
                    rewards[j] = (1.0 if noise[t, j] < mean else 0.0) if binary else mean + noise[t, j]
                    reward = rewards[j]
                    observed += 1
            if k == 1:
                best = values[0]
                for j in range(1, offer.n):
                    best = max(best, values[j])
                ledger.regret += best - values[chosen[0]]
                if once:
                    shown.add(users[t], offer.picks[chosen[0]])
            else:
                largest(values, offer.n, k, &chosen[k])
                ledger.regret += click_probability(values, &chosen[k], k) - click_probability(values, &chosen[0], k)
            ledger.reward += reward
            if once:
                # Of the first candidates, shown or not: uniform play uses up items whatever they are worth, so that
                # this is its expected reward too, and it does not depend on what this policy has used up.
                for j in range(1, min(most, width)):
                    if picks[t, j] < 0:
                        break
                else:
                    j = min(most, width)
                ledger.uniform += uniform_reward(&means[t, 0], j, k, &missed[0])
            else:
                ledger.uniform += uniform_reward(values, offer.n, k, &missed[0])
            if pending.slots == 0:
                learner.learn(users[t], &xs[0, 0], &rewards[0], &shown_ids[0] if named else NULL, observed, k)
            else:
                slot = ledger.rounds % pending.slots
                pending.due[slot], pending.users[slot] = ledger.rounds + delays[t], users[t]
                pending.observed[slot] = observed
                memcpy(&pending.xs[slot, 0, 0], &xs[0, 0], k * dim * sizeof(double))
                memcpy(&pending.rewards[slot, 0], &rewards[0], k * sizeof(double))
                memcpy(&pending.ids[slot, 0], &shown_ids[0], k * sizeof(int64_t))
                pending.deliver(learner, ledger.rounds)
            ledger.rounds += 1
            if ledger.rounds == ledger.next_mark:
                with gil:
                    ledger.note(learner)
