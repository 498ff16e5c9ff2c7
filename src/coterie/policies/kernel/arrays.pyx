"""Named arrays that grow with the number of users: the state of a compiled policy, for snapshots, copies and new users."""

from typing import NamedTuple

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from coterie.policies.kernel.ridge cimport Ridge

cnp.import_array()


MOST_COUNTED = 2**53
"""Largest number of rounds and pulls: sums of them fit 64 bits."""


class Field(NamedTuple):
    """An array of a learner: the names of its axes, and its type."""

    axes: tuple
    dtype: str = "float64"


def ridge_fields(prefix, rows):
    """The arrays of many ridge regressions, one for each of the rows."""
    return {
        f"{prefix}.inverse": Field((rows, "dim", "dim")),
        f"{prefix}.moment": Field((rows, "dim")),
        f"{prefix}.estimate": Field((rows, "dim")),
        f"{prefix}.pulls": Field((rows,), "int64"),
    }


def numbers_of(str prefix, numbers):
    """The numbers of a part, by its own names for them."""
    return {name.removeprefix(prefix): number for name, number in numbers.items() if name.startswith(prefix)}


def grown(Py_ssize_t length):
    """By how much an array grows in place: it doubles at first, and grows by an eighth when it is large."""
    return max(length // 8, min(length, 1024))


cdef class NamedArrays:
    """All arrays and single numbers of a state by name.

    A subclass lists its arrays in `FIELDS` and its numbers, which are attributes, in `NUMBERS`.
    `LENGTHS` names the number that is the length of an axis, where that changes from round to round. `PARTS` are the classes of
    attributes that have arrays of their own: their names are those of the part, with the attribute and a dot in front. Arrays
    have room for more than is in use; `bind` takes their addresses whenever they were allocated.
    """

    FIELDS = {}
    NUMBERS = ("rounds",)
    LENGTHS = {}
    PARTS = {}  # in the order in which a state is checked: a part may rely on those before it
    IN_PLACE = False  # arrays grow in place if `bind` allocates nothing, so that it cannot fail when they have grown

    def __cinit__(self):
        self._scratch = {}

    def __init__(self, Py_ssize_t n_users, Py_ssize_t dim):
        self.n_users, self.dim, self._arrays = n_users, dim, {}
        self._allocate()

    @classmethod
    def extents(cls, Py_ssize_t n_users, Py_ssize_t dim, **settings):
        """The length of each axis that a field may name, before anything is allocated."""
        return {"users": n_users, "rows": n_users, "dim": dim, "words": (n_users + 63) // 64}

    def _extents(self):
        """The same for this learner as it is now."""
        known = type(self).extents(self.n_users, self.dim)
        known.update({axis: getattr(self, number) for axis, number in self.LENGTHS.items()})
        return known

    @classmethod
    def shapes(cls, Py_ssize_t n_users, Py_ssize_t dim, numbers=None, **settings):
        """The shape and type of every array of a learner with these settings and numbers, or before its first round."""
        known = cls.extents(n_users, dim, **settings)
        if numbers is not None:
            known.update({axis: numbers[number] for axis, number in cls.LENGTHS.items()})
        found = {
            name: (tuple([known[axis] for axis in field.axes]), np.dtype(field.dtype))
            for name, field in cls.FIELDS.items()
        }
        for part in cls.PARTS:
            own = None if numbers is None else numbers_of(f"{part}.", numbers)
            shapes = cls.part_shapes(part, n_users, dim, own, **settings)
            found.update({f"{part}.{name}": shape for name, shape in shapes.items()})
        return found

    @classmethod
    def part_shapes(cls, str name, Py_ssize_t n_users, Py_ssize_t dim, numbers, **settings):
        """The shapes of a part of a learner with these settings."""
        return cls.PARTS[name].shapes(n_users, dim, numbers)

    @classmethod
    def number_names(cls):
        """The names of the single numbers of the state."""
        return (*cls.NUMBERS, *[f"{name}.{number}" for name, part in cls.PARTS.items() for number in part.number_names()])

    def parts(self):
        """The parts, by what the names of their arrays begin with."""
        return {f"{name}.": getattr(self, name) for name in self.PARTS}

    def fields(self):
        """All arrays by name, as they are declared; those of effects are not."""
        found = dict(self.FIELDS)
        for name in self.PARTS:
            found.update({f"{name}.{own}": field for own, field in getattr(self, name).fields().items()})
        return found

    def _allocate(self):
        """Make every array large enough; its content stays."""
        known = self._extents()
        for name, field in self.FIELDS.items():
            shape = [known[axis] for axis in field.axes]
            if name not in self._arrays:
                self._arrays[name] = np.zeros(shape, field.dtype)
            elif any(have < want for have, want in zip(self._arrays[name].shape, shape)):
                self._grow(name, shape)
        self.bind()

    def _grow(self, str name, shape):
        """An array with more room, zeros where nothing was; in place if only its first axis grows."""
        old = self._arrays[name]
        more = grown if self.IN_PLACE else int
        room = [have if have >= want else max(have + more(have), want) for have, want in zip(old.shape, shape)]
        if self.IN_PLACE and room[1:] == list(old.shape[1:]):
            del self._arrays[name]
            try:
                old.resize(room)  # the allocator moves large arrays without copying them
                return
            except ValueError:  # a view of it exists
                pass
            finally:
                self._arrays[name] = old
        self._arrays[name] = np.zeros(room, old.dtype)
        self._arrays[name][tuple([slice(0, have) for have in old.shape])] = old

    def extend(self, str axis, Py_ssize_t length):
        """Room for so many rows of the arrays along an axis, whatever is in use."""
        try:
            for name, field in self.FIELDS.items():
                shape = list(self._arrays[name].shape)
                if field.axes[0] == axis and shape[0] < length:
                    self._grow(name, [length, *shape[1:]])
        finally:
            self.bind()

    def names(self):
        """The names of all arrays."""
        return (*self.FIELDS, *[prefix + name for prefix, part in self.parts().items() for name in part.names()])

    def array(self, str name):
        """A view of the part of an array that is in use."""
        if name not in self.FIELDS:
            for prefix, part in self.parts().items():
                if name.startswith(prefix):
                    return part.array(name.removeprefix(prefix))
        known, field = self._extents(), self.FIELDS[name]
        return self._arrays[name][tuple([slice(0, known[axis]) for axis in field.axes])]

    def arrays(self):
        """Copies of all arrays by name, as far as they are in use."""
        return {name: self.array(name).copy() for name in self.names()}

    def held(self):
        """Bytes of each array by name, including spare capacity."""
        found = {name: array.nbytes for name, array in self._arrays.items()}
        for prefix, part in self.parts().items():
            found.update({prefix + name: size for name, size in part.held().items()})
        return found

    def scratch(self):
        """Bytes of the work space."""
        own = sum([array.nbytes for array in self._scratch.values()])
        return own + sum([part.scratch() for part in self.parts().values()])

    def numbers(self):
        """The single numbers of the state by name."""
        found = {name: getattr(self, name) for name in self.NUMBERS}
        for prefix, part in self.parts().items():
            found.update({prefix + name: number for name, number in part.numbers().items()})
        return found

    def restore(self, fill, numbers):
        """Take over a state: its numbers, then its arrays, each of which `fill(name, out)` writes; ValueError if it contradicts
        itself."""
        self.load(fill, numbers)
        self.refresh_all()

    def load(self, fill, numbers):
        """Take over numbers and arrays, those of the parts included, before anything that rests on them is checked."""
        self.prepare(numbers)
        for name in self.NUMBERS:
            setattr(self, name, numbers[name])
            if getattr(self, name) != numbers[name]:
                raise ValueError(f"has {name} = {numbers[name]!r}, which is no whole number")
        if not 0 <= self.rounds <= MOST_COUNTED:
            raise ValueError(f"has {self.rounds} rounds")
        for name in self.FIELDS:
            fill(name, NamedArrays.array(self, name))
            if name.rpartition(".")[2] in ("pulls", "epochs"):
                counts = NamedArrays.array(self, name)
                if counts.size and (counts.min() < 0 or counts.max() > MOST_COUNTED):
                    raise ValueError(f"has numbers in {name!r} that count nothing")
        for prefix, part in self.parts().items():
            part.load(lambda name, out, prefix=prefix: fill(prefix + name, out), numbers_of(prefix, numbers))

    def refresh_all(self):
        """Check all parts, and then what rests on them."""
        for part in self.parts().values():
            part.refresh_all()
        self.refresh()

    def prepare(self, numbers):
        """Make room for a state with these numbers."""
        for number in self.LENGTHS.values():
            setattr(self, number, numbers[number])
        self._allocate()

    def refresh(self):
        """Check what compiled code relies on, and rebuild what follows from the arrays."""

    cdef int make_room(self, Py_ssize_t n_users) except -1:
        """Arrays for more users; without memory for them nothing changes, but that some may have more room than they need."""
        cdef Py_ssize_t known = self.n_users
        before = None if self.IN_PLACE else dict(self._arrays)
        try:
            for name in self.PARTS:
                (<NamedArrays> getattr(self, name)).make_room(self.part_users(name, n_users))
            self.n_users = n_users
            self._allocate()
        except BaseException:
            self._arrays = before or self._arrays
            self.set_users(known)
            self.bind()
            raise
        return 0

    cdef int set_users(self, Py_ssize_t n_users) except -1:
        """Go back to fewer users; arrays keep their room."""
        self.n_users = n_users
        for name in self.PARTS:
            (<NamedArrays> getattr(self, name)).set_users(self.part_users(name, n_users))
        return 0

    def part_users(self, str name, Py_ssize_t n_users):
        """How many users a part has if there are so many in all."""
        return n_users

    cdef int bind(self) except -1:
        """Take the addresses of the arrays."""
        self.epochs = <int64_t *> self.pointer("epochs") if "epochs" in self.FIELDS else NULL
        self.row_of = <int64_t *> self.pointer("labels") if "labels" in self.FIELDS else NULL
        return 0

    cdef double *workspace(self, str name, Py_ssize_t length) except NULL:
        """Room for so many numbers that are no part of the state; allocated once."""
        if name not in self._scratch:
            self._scratch[name] = np.zeros(length)
        return <double *> cnp.PyArray_DATA(self._scratch[name])

    cdef void *pointer(self, str name) except NULL:
        """The address of an array."""
        return cnp.PyArray_DATA(self._arrays[name])

    cdef Ridge ridge_rows(self, str prefix) except *:
        """The regressions whose arrays begin with a prefix."""
        return Ridge(
            <double *> self.pointer(f"{prefix}.inverse"),
            <double *> self.pointer(f"{prefix}.moment"),
            <double *> self.pointer(f"{prefix}.estimate"),
            <int64_t *> self.pointer(f"{prefix}.pulls"),
        )
