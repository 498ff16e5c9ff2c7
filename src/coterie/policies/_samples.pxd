"""Thompson sampling: a sample of what a decision rests on."""

from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal

from coterie.policies._linalg cimport cholesky, dot
from coterie.policies._offers cimport View


cdef inline void draw_sample(
    View *seen, bitgen_t *bitgen, double *factor, double *work, double *sample, Py_ssize_t d
) noexcept nogil:
    """θ̃ = θ̂ + βLz with LLᵀ = M⁻¹ and z standard normal; `sample` has room for z behind θ̃."""
    cdef Py_ssize_t i
    cdef double *normals = sample + d
    cholesky(seen.inverse, factor, work, d)
    for i in range(d):
        normals[i] = random_standard_normal(bitgen)
    for i in range(d):
        sample[i] = seen.estimate[i] + seen.beta * dot(factor + i * d, normals, i + 1)
