"""The package itself: its examples, its types, its style, its notebook."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import lowtide
from lowtide import _toml

HERE = Path(__file__).resolve().parent
FOUND = pkgutil.walk_packages(lowtide.__path__, "lowtide.")
MODULES = sorted(module.name for module in FOUND if module.name != "lowtide._native")


@pytest.mark.parametrize("name", ["lowtide", *MODULES])
def test_examples_give_what_they_show(name: str) -> None:
    if name == "lowtide.distributed" and os.environ.get("LOWTIDE_REQUIRE_REAL") != "1":
        pytest.importorskip("distributed", reason="Dask is missing: pip install 'lowtide[distributed]'")
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(module, extraglobs={"lowtide": lowtide}, optionflags=flags)
    assert failed == 0


@pytest.mark.parametrize("name", lowtide.__all__)
def test_everything_public_says_what_it_is(name: str) -> None:
    thing = getattr(lowtide, name)
    assert name == "__version__" or thing.__doc__
    for member in vars(thing) if isinstance(thing, type) and not issubclass(thing, tuple) else ():
        if callable(getattr(thing, member)) and not member.startswith("_"):
            assert getattr(thing, member).__doc__, member


def test_types_hold(tmp_path: Path) -> None:
    use = tmp_path / "use.py"
    use.write_text(
        "import lowtide\n"
        "import numpy as np\n"
        "import pandas as pd\n"
        "campaign: lowtide.Campaign = lowtide.run({'name': 'x'}, scale='1/8', set={'threads': 4})\n"
        "frame: pd.DataFrame = campaign.steady()\n"
        "device = lowtide.Device('mtron-32gb')\n"
        "done = device.write(np.arange(4) * 4096, depth=2)\n"
        "ended, begun = device.submit('read', [0], 4096, return_begun=True)\n"
        "wrong: str = campaign.seed\n"
    )
    config = HERE.parent / "pyproject.toml"
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", tmp_path / "cache", use],
        check=False,
        capture_output=True,
        text=True,
    )
    # Nothing but what is wrong on purpose: types are there, and they are looked at.
    assert run.stdout.count("error:") == 1 and 'variable has type "str"' in run.stdout, run.stdout + run.stderr


def test_the_package_is_typed_and_its_stubs_are_those_of_the_native_part(tmp_path: Path) -> None:
    config = HERE.parent / "pyproject.toml"
    mypy = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", tmp_path / "cache", "-p", "lowtide"]
    run = subprocess.run(mypy, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    stubs = [sys.executable, "-m", "mypy.stubtest", "lowtide._native", "--mypy-config-file", config]
    run = subprocess.run(stubs, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_style() -> None:
    for command in (["check"], ["format", "--check"]):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, HERE.parent], check=False, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout


def test_toml_reads_back() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    tables = {
        "name": 'quo"ted \\ \x7f \n é 😀',
        "numbers": [1, -2.5, 1e300, True],
        "target": {"device": "x", "deep": {"a b": [1], "empty": {}}},
        "step": [{"name": "a", "sweep": {"threads": [1, 2]}}, {"name": "b"}],
    }
    assert tomllib.loads(_toml.document(tables)) == tables
    order = list(tomllib.loads(_toml.document({"sweep": {"threads": [1], "block": ["4KiB"]}}))["sweep"])
    assert order == ["threads", "block"]
    for wrong in (float("nan"), float("inf"), b"bytes", object(), {1: 2}):
        with pytest.raises(lowtide.BadInput):
            _toml.value(wrong)


def test_the_notebook_gives_what_it_says() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    import nbformat

    matplotlib.use("agg")
    # mypy: nbformat has no types.
    notebook = nbformat.read(HERE.parents[1] / "docs/guide/notebook.ipynb", as_version=4)
    assert any(cell.get("outputs") for cell in notebook.cells), "it was run, and shows what came of it"
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # What a figure that nobody sees says.
        warnings.simplefilter("ignore", UserWarning)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                exec(cell.source.replace('scale="1/16"', 'scale="1/64"'), names)  # noqa: S102 - our own
    compared = names["compared"]
    # The study's finding: the card with the larger reserve wins when both are full.
    assert compared.loc[1.0, "virident-tachion-400"] > 2 * compared.loc[1.0, "fusionio-duo-320-slc"]  # type: ignore[attr-defined]
