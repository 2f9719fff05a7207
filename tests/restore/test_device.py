"""Restoration with the codes solved for on a device: as good as on the CPU where there is one, a clear line elsewhere."""

import numpy as np
import pytest

import pointillist as pt
from pointillist import deblur, demosaic, denoise, inpaint, super_resolve
from pointillist.data import photographs

PSF = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0]) / 16


@pytest.fixture(scope="module")
def picture():
    return photographs("test")["camera"][100:196, 120:232].astype(np.float32)


TASKS = {
    "inpaint": lambda picture, **how: inpaint(picture, np.random.default_rng(0).random(picture.shape) < 0.5, **how),
    "denoise": lambda picture, **how: denoise(
        picture + 0.1 * np.random.default_rng(0).standard_normal(picture.shape).astype(np.float32), 0.1, **how
    ),
    "deblur": lambda picture, **how: deblur(picture, PSF, sigma=0.01, force=True, **how),
    "super_resolve": lambda picture, **how: super_resolve(picture[::2, ::2], 2, **how),
    "demosaic": lambda picture, **how: demosaic(picture, **how),
}


@pytest.mark.gpu
@pytest.mark.parametrize("task", TASKS)
def test_a_device_mends_as_the_cpu_does(picture, task):
    (there, found), (here, wanted) = (
        TASKS[task](picture, tol=1e-3, return_details=True, device=device) for device in ("cuda", "cpu")
    )
    assert found.gap <= 1e-3
    assert found.penalty == pytest.approx(wanted.penalty, rel=0.05)
    assert pt.psnr(here, there) > 45


@pytest.mark.gpu
def test_tiles_of_several_threads_are_coded_as_by_one(picture):
    large = np.tile(photographs("test")["camera"].astype(np.float32), (2, 3))
    missing = np.random.default_rng(0).random(large.shape) < 0.5
    one, *others = (inpaint(large, missing, device="cuda", n_jobs=n) for n in (1, 8, 8))
    for other in others:
        assert pt.psnr(one, other) > 45


@pytest.mark.parametrize("task", TASKS)
def test_devices_that_are_not_there_are_refused_before_any_work(picture, task, monkeypatch):
    def missing(name):
        raise RuntimeError(f'device="{name}" needs CuPy')

    monkeypatch.setattr("pointillist.restore.engine.check_device", missing)
    monkeypatch.setattr("pointillist.restore.engine.smooth_part", None)
    with pytest.raises(RuntimeError, match='device="cuda:3" needs CuPy'):
        TASKS[task](picture, device="cuda:3")
