"""The cache of compiled programs: used during a call, and only then."""

import os

from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from pymc_anneal.base import compilation_cache
from pymc_anneal.base.compilation_cache import compilation_cache as cache


@pytest.fixture(autouse=True)
def _no_cache_of_the_user() -> Iterator[None]:
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYMC_ANNEAL_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_cache, "_LEAST_SECONDS", 0.0)
    return tmp_path


def compile_something(factor: float) -> None:
    jax.jit(lambda x: jnp.sin(factor * x))(1.0)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_programs_are_kept(folder: Path) -> None:
    with cache():
        compile_something(1.25)
    assert files(folder)


def test_other_programs_are_not(folder: Path) -> None:
    with cache():
        pass
    compile_something(1.375)
    assert not files(folder)
    assert jax.config.jax_compilation_cache_dir is None


def test_settings_are_restored_after_an_error(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), cache():
        raise ZeroDivisionError
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.parametrize("off", ["off", "0", "False", "no"])
def test_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, off: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYMC_ANNEAL_CACHE", off)
    with cache():
        assert jax.config.jax_compilation_cache_dir is None
    assert not list(tmp_path.iterdir())  # no folder of this name


def test_a_cache_of_the_user_is_left_alone(folder: Path, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    jax.config.update("jax_compilation_cache_dir", own)
    with cache():
        assert jax.config.jax_compilation_cache_dir == own


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYMC_ANNEAL_CACHE", str(tmp_path / "file"))
    with cache():
        assert jax.config.jax_compilation_cache_dir is None


def test_the_oldest_programs_are_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first call of a process."""
    with cache():
        compile_something(1.5)
    old = files(folder)[0].with_name("old")
    old.write_bytes(b"0" * 1000)
    os.utime(old, (0, 0))
    total = sum(path.stat().st_size for path in files(folder))
    monkeypatch.setattr(compilation_cache, "_MAX_BYTES", total - 1)
    with cache():
        assert old.exists()
    compilation_cache._delete_oldest.cache_clear()
    with cache():
        pass
    assert not old.exists()
    assert files(folder)
