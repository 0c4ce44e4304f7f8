"""What tests share: the program beside the package, and experiments that take a second.

The program is looked for in ``LOWTIDE_PROGRAM``, then below the build folder. Where it is missing, the tests that hold the
package against it are skipped, and say so; with ``LOWTIDE_REQUIRE_REAL=1`` they fail instead.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _program() -> Path | None:
    if named := os.environ.get("LOWTIDE_PROGRAM"):
        return Path(named)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [path for path in (target / "debug/lowtide", target / "release/lowtide") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def program() -> Path:
    """Give the program ``lowtide`` of this source tree."""
    found = _program()
    if found is None:
        if os.environ.get("LOWTIDE_REQUIRE_REAL") == "1":
            pytest.fail("there is no program lowtide: cargo build")
        pytest.skip("there is no program lowtide to hold the package against: cargo build, or LOWTIDE_PROGRAM")
    return found


@pytest.fixture
def quick() -> dict[str, object]:
    """Give an experiment of three cells that takes a second at scale 1/64."""
    return {
        "name": "quick",
        "title": "A quick one",
        "target": {"device": "intel-320-160gb"},
        "before-each-cell": {"purge": "secure-erase", "fill": "sequential"},
        "workload": {"pattern": "random-write", "block": "16KiB", "duration": "20min", "interval": "10s"},
        "sweep": {"file_size": ["20GiB", "80GiB", "120GiB"]},
    }


@pytest.fixture
def study(quick: dict[str, object]) -> dict[str, object]:
    """Give an experiment of eleven cells in nine groups: the last three share a history."""
    steps = [
        {"name": "sizes", "sweep": {"file_size": [f"{size}GiB" for size in range(20, 110, 10)]}},
        {"name": "after", "purge": "none", "sweep": {"threads": [1, 4]}},
    ]
    return {**quick, "name": "study", "sweep": {}, "step": steps}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, object]:
    """Give an experiment of three cells on files, in wall time."""
    folder = tmp_path / "files"
    folder.mkdir()
    return {
        "name": "files",
        "title": "Files",
        "target": {"directory": str(folder)},
        "workload": {"pattern": "random-write", "block": "4KiB", "duration": "1s", "interval": "100ms"},
        "sweep": {"file_size": ["1MiB", "2MiB", "4MiB"]},
    }
