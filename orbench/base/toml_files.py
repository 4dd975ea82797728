"""Knowledge in tables: the TOML files beside the modules that read them."""

import tomllib
from pathlib import Path
from typing import Any


def toml_beside(module: str, name: str = "") -> dict[str, Any]:
    """Return what is in the TOML file beside a module: of its own name, or of another one."""
    path = Path(module).with_suffix(".toml")
    if name:
        path = path.with_name(name)
    return tomllib.loads(path.read_text(encoding="utf-8"))
