"""Answer exported requests with Ray Data: an actor a node, each asking the model server beside it.

    python docs/ray_answers.py requests.jsonl results

Reads the request lines of --export_requests. Each actor appends its result lines to a file of its
own in the folder `results`, which all nodes share; --import_answers takes them all. Stopped and run
again, it asks what has no answer yet. The server (vllm serve, ...) listens at the same address on
each node. Needs `pip install "ray[data]" urllib3` on the nodes and nothing of this suite.
"""

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3

BLOCK = 512  # most requests that an actor is handed at once
RETRIES = urllib3.Retry(
    total=8,
    backoff_factor=0.5,
    status_forcelist=(408, 429, 500, 502, 503, 504),
    allowed_methods=None,  # a POST too
    raise_on_status=False,
)


class Ask:
    """An actor: sends requests to the server of its node, some at once."""

    def __init__(self, server: str, in_flight: int, results: Path) -> None:
        import ray

        self.server = server
        self.pool = urllib3.PoolManager(maxsize=in_flight, block=True, retries=RETRIES, timeout=600)
        self.threads = ThreadPoolExecutor(in_flight)
        self.results = results / f"{ray.get_runtime_context().get_actor_id()}.jsonl"

    def __call__(self, block: dict[str, Any]) -> dict[str, list[int]]:
        """Append the result lines of a block's request lines. Gives how many there are."""
        with self.results.open("a") as file:
            for result in self.threads.map(self.answer, block["item"]):
                print(json.dumps(result), file=file, flush=True)
        return {"asked": [len(block["item"])]}

    def answer(self, line: str) -> dict[str, Any]:
        """The result of a request line, as the batch format has it."""
        request = json.loads(line)
        result = {"custom_id": request["custom_id"], "response": None, "error": None}
        try:
            reply = self.pool.request("POST", self.server + request["url"], json=request["body"])
        except urllib3.exceptions.HTTPError as error:
            return {**result, "error": {"message": str(error)}}
        try:
            body = json.loads(reply.data)
        except ValueError:
            body = reply.data.decode(errors="replace")  # a gateway's page
        return {**result, "response": {"status_code": reply.status, "body": body}}


def answered(results: Path) -> Iterator[str]:
    """The custom_ids of the requests that earlier runs had answers to."""
    for path in results.glob("*.jsonl"):
        for line in path.open():
            try:
                result = json.loads(line)
                if result["response"]["status_code"] == 200:
                    yield result["custom_id"]
            except (ValueError, TypeError):  # torn, or an error: asked again
                continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("requests", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--server", default="http://localhost:8000", help="as each node reaches it")
    parser.add_argument("--in_flight", type=int, default=64, help="requests at once, per node")
    parser.add_argument("--actors", type=int, help="default: as many as the cluster has nodes")
    args = parser.parse_args()
    args.results.mkdir(exist_ok=True)
    done = set(answered(args.results))
    with args.requests.open() as file:
        lines = [line for line in file if json.loads(line)["custom_id"] not in done]
    if not lines:
        return
    import ray

    ray.init()
    actors = args.actors or len(ray.nodes())
    blocks = max(min(actors, len(lines)), -(-len(lines) // BLOCK))
    ray.data.from_items(lines, override_num_blocks=blocks).map_batches(
        Ask,
        fn_constructor_args=(args.server, args.in_flight, args.results.resolve()),
        batch_size=None,  # a block
        compute=ray.data.ActorPoolStrategy(size=actors),
        scheduling_strategy="SPREAD",
    ).materialize()


if __name__ == "__main__":
    main()
