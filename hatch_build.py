"""Compiles the package ``binlane.kernels`` when a wheel is built, or the project installed as editable.

Against Python's limited API: one wheel is for Python 3.11 and newer. Needs a C compiler, Python's headers and ISA-L.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS: Final = Path("plugins", "binlane", "kernels")
_OLDEST: Final = "0x030B0000"
_TAG: Final = "cp311-abi3"
_SHARED: Final = "binlane.kernels._cython_arrays"
"""Cython's own code for arrays, once for all modules; it is generated."""
_LIBRARIES: Final = {"framing": ["isal"]}
_OPTIMIZED: Final = ("-O3", "-g0")
_MISSING: Final = (
    "binlane's kernels could not be compiled (the compiler's own message stands above). Needed: a C compiler, Python's "
    "headers and ISA-L's. On Debian and Ubuntu: apt-get install gcc libc6-dev libpython3-dev libisal-dev. A wheel "
    "needs none of them."
)


class Kernels(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """The hook that hatchling calls for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the platform in the wheel's name. ``version``: "editable" or "standard"."""
        if self.target_name == "wheel":
            compile_kernels(Path(self.root))
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["artifacts"].append(f"/{KERNELS.as_posix()}/*.abi3.so")
            build_data["pure_python"] = False
            build_data["tag"] = f"{_TAG}-{platform}"


def compile_kernels(root: Path, flags: tuple[str, ...] = _OPTIMIZED) -> None:
    """Compile the modules whose text has changed, into the package itself; ``flags``: for compiler and linker.

    Raises RuntimeError with what is missing.
    """
    # none of them is there where hatchling only reads the project's metadata
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import BaseError

    # C and objects of other options would be taken for new ones
    objects = root / ".binlane" / "kernels" / hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    for other in objects.parent.glob("*"):
        if other != objects:
            shutil.rmtree(other)
    package = root / KERNELS
    names = sorted(path.stem for path in package.glob("*.pyx"))
    sources = {f"binlane.kernels.{name}": f"binlane/kernels/{name}.pyx" for name in names}
    sources[_SHARED] = f"{_SHARED.replace('.', '/')}.c"
    extensions = [
        Extension(
            name,
            [source],
            define_macros=[("Py_LIMITED_API", _OLDEST), ("CYTHON_LIMITED_API", "1")],
            py_limited_api=True,
            libraries=_LIBRARIES.get(name.rpartition(".")[2], []),
            extra_compile_args=list(flags),
            extra_link_args=list(flags),
        )
        for name, source in sources.items()
    ]
    before = Path.cwd()
    # so no path of this machine is in the modules
    os.chdir(package.parents[1])
    try:
        generated = cythonize(  # type: ignore[no-untyped-call, unused-ignore]
            extensions,
            build_dir=str(objects),
            shared_utility_qualified_name=_SHARED,
            compiler_directives={
                "language_level": 3,
                # by the callers' contract; `make sanitized` runs the tests of damage where every access is checked
                "boundscheck": False,
                "wraparound": False,
                "initializedcheck": False,
                "cdivision": True,
            },
            quiet=True,
        )
        command = build_ext(Distribution({"ext_modules": generated}))
        command.build_lib, command.build_temp = str(objects / "lib"), str(objects)
        command.inplace, command.parallel = True, os.cpu_count()
        command.ensure_finalized()
        command.run()
    except BaseError as exc:
        raise RuntimeError(_MISSING) from exc
    finally:
        os.chdir(before)
