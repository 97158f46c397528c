"""What is wrong with a call is said when it is traced, in hinge's words."""

import numpy as np
import pytest

import hinge

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")

ARM = hinge.zoo.arm(3)


@pytest.fixture(autouse=True)
def in_double():
    with jax.enable_x64(True):
        yield


def test_shapes_are_checked_at_trace_time():
    f = hinge.jax.robot(ARM).forward_dynamics
    ok, short = jnp.zeros(3), jnp.zeros(2)
    with pytest.raises(hinge.ArgumentError, match=r"tau has shape \(2,\); expected \(…, 3\)"):
        jax.jit(f)(ok, ok, short)
    with pytest.raises(hinge.ArgumentError, match=r"do not broadcast: q \(4,\), qd \(5,\)"):
        jax.jit(f)(jnp.zeros((4, 3)), jnp.zeros((5, 3)), ok)


def test_dtypes_are_checked_at_trace_time():
    f = hinge.jax.robot(ARM).gravity_forces
    for q in ([0, 0, 0], np.zeros(3, int), jnp.zeros(3), np.zeros(3)):
        np.testing.assert_allclose(f(q), ARM.gravity_forces(np.zeros(3)))
    with pytest.raises(hinge.ArgumentError, match="q is float32; it computes in float64"):
        jax.jit(f)(jnp.zeros(3, jnp.float32))
    with pytest.raises(hinge.ArgumentError, match="q is complex128"):
        f(np.zeros(3) * 1j)
    with jax.enable_x64(False), pytest.raises(hinge.ArgumentError, match="jax_enable_x64"):
        jax.jit(f)(jnp.zeros(3))


def test_names_are_checked():
    dyn = hinge.jax.robot(ARM)
    q = np.zeros(3)
    with pytest.raises(AttributeError, match="did you mean.*forward_dynamics"):
        dyn.forward_dynamic  # noqa: B018
    with pytest.raises(hinge.ArgumentError, match="never written to"):
        dyn.gravity_forces(q, out=np.zeros(3))
    with pytest.raises(hinge.ArgumentError, match="frame is missing"):
        dyn.frame_pose(q)
    with pytest.raises(hinge.ArgumentError, match="needs a Robot, got Mechanism"):
        hinge.jax.robot(ARM.mechanism)
    assert "aba" in dir(dyn) and "M q̈" in dyn.rnea.__doc__ and "arm3" in repr(dyn)


def test_functions_are_checked():
    with pytest.raises(hinge.ArgumentError, match="got function"):
        hinge.jax.function(lambda x: x)
    f = hinge.jax.function(hinge.compile(lambda x, y: x + y, x=(3,), y=(3,)))
    with pytest.raises(hinge.ArgumentError, match="got 1 arguments; it takes x, y"):
        f(np.zeros(3))
    fall = hinge.rollout(lambda z, u: z + u, ("z",), ("u",), z=(), u=())
    g = hinge.jax.function(fall)
    with pytest.raises(hinge.ArgumentError, match=r"u has shape \(\); expected \(steps, …\)"):
        g(0.0, 1.0)
    with pytest.raises(hinge.ArgumentError, match="one number of steps"):
        g(0.0, np.ones(4), steps=5)


def test_not_finite_is_not_a_number():
    """Nothing raises in compiled programs: a sample that has no answer is NaN, alone."""
    f = hinge.jax.robot(ARM).gravity_forces
    q = np.zeros((3, 3))
    q[1, 0] = np.inf
    result = np.asarray(f(q))
    assert np.isnan(result[1]).all() and np.isfinite(result[[0, 2]]).all()
    assert np.isnan(f(q[1])).all()


def test_another_version_of_the_interface_is_refused(monkeypatch, tmp_path):
    from hinge.jax import handler

    header = tmp_path / "xla/ffi/api/c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 1\n#define XLA_FFI_API_MINOR 0\n")
    handler._version.cache_clear()
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(hinge.HingeError, match=r"version 1\.0 of XLA's"):
        handler._version()
    handler._version.cache_clear()


@pytest.mark.parametrize("arguments", [((3,), (3,)), ((2, 3), (3, 3)), ((3,), (2, 3))])
def test_a_handler_looks_at_its_buffers(arguments):
    """What does not fit is refused by the handler, whatever called it."""
    kernel = hinge.compile(lambda x, y: x * y, x=(3,), y=(3,))
    f = hinge.jax.function(kernel)
    f(np.ones(3), np.ones(3))
    (name,) = [n for n in _names() if kernel._source.key(kernel.backend) in n]
    x, y = (np.ones(shape) for shape in arguments)
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    raw = jax.ffi.ffi_call(name, out)
    if x.shape == y.shape:
        np.testing.assert_array_equal(raw(x, y), x * y)
        with pytest.raises(Exception, match="another dtype or shape"):
            raw(np.float32(x), y).block_until_ready()
        with pytest.raises(Exception, match="another dtype or shape"):
            raw(x).block_until_ready()
    else:
        with pytest.raises(Exception, match="another dtype or shape"):
            raw(x, y).block_until_ready()


def _names():
    from hinge.jax import handler

    return list(handler._KNOWN)


@pytest.mark.parametrize("transform", [jax.grad, jax.jit, jax.jacfwd, jax.vmap])
def test_methods_of_the_robot_itself_say_where_jaxs_are(transform):
    """They have no derivatives, and look at memory that what JAX traces does not have."""
    q = jnp.ones((2, 3)) if transform is jax.vmap else jnp.ones(3)
    with pytest.raises(hinge.ArgumentError, match="traced by JAX; hinge.jax has functions"):
        transform(lambda q: ARM.gravity_forces(q).sum())(q)
