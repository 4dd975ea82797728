"""Anthropic's batch service: one POST holds a batch's requests, its results are one file.

https://platform.claude.com/docs/en/build-with-claude/batch-processing and the types of its own
package (MessageBatch, MessageBatchIndividualResponse): at most 100,000 requests or 256 MB (the
batches here are smaller, see `orbench.batch`), over within 24 hours, results for 29 days.
"""

import json
import tempfile
from collections.abc import Collection
from typing import IO, TYPE_CHECKING, Any

from orbench.batch_service import Service, batches_of
from orbench.chat import Fatal
from orbench.exchange import read_result

if TYPE_CHECKING:
    from openai.types import Batch


class MessageBatches(Service):
    """`/messages/batches`. A batch bears no mark of ours that is listed: what finds one again after
    a run was killed is the newest batch before it, the number of its requests, and its results.
    """

    path = "/messages/batches"
    after = "after_id"
    results = "/messages/batches/{}/results"

    def upload(self, name: str, lines: IO[bytes]) -> str:
        """Upload nothing: gives the newest batch that is there before this one is made."""
        return self._call(
            lambda: next((str(batch.get("id")) for batch in batches_of(self)), "none"),
            f"{self.model.endpoint} has no batch service",
        )

    def _create(
        self, file_id: str, url: Any, metadata: dict[str, str], lines: IO[bytes] | None
    ) -> tuple[str, str]:
        if lines is None:
            return "", ""
        lines.seek(0)
        with tempfile.TemporaryFile(dir=self.state.parent) as body:
            for line in lines:
                entry = json.loads(line)
                request = {"custom_id": entry["custom_id"], "params": entry["body"]}
                body.write(b"," if body.tell() else b'{"requests":[')
                body.write(json.dumps(request).encode())
            body.write(b"]}")
            body.seek(0)
            made = self.client.post(self.path, content=body, cast_to=object, options=self.options)
        batch = self._read(made)
        return batch.id, batch.status

    def _made_of(self, file_id: str, keys: Collection[bytes]) -> tuple[str, str] | None:
        under_way: list[Batch] = []
        for data in batches_of(self):
            batch = self._read(data)
            if batch.id == file_id:
                break
            total = batch.request_counts.total if batch.request_counts else 0
            if total != len(keys):
                continue
            if str(batch.status) != "ended":
                under_way.append(batch)
            elif batch.output_file_id and self._holds(batch.id, keys):
                return batch.id, batch.status
        if len(under_way) > 1:
            raise Fatal(
                f"{len(under_way)} batches of {len(keys):,} requests are under way at "
                f"{self.model.endpoint}, one of which may be this run's: run the same command when "
                "they have ended"
            )
        # Another's, if this run's was never made: its results are foreign then, and ours are sent.
        return (under_way[0].id, under_way[0].status) if under_way else None

    def _holds(self, batch_id: str, keys: Collection[bytes]) -> bool:
        """Whether the results of a batch are those of these requests."""
        with self._download(batch_id, len(keys)) as lines:
            result = read_result(lines.readline())
        return result is not None and result.key in keys

    def _as_openai(self, data: dict[str, Any]) -> dict[str, Any]:
        counts = data.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        counts = {name: n for name, n in counts.items() if isinstance(n, int)}
        return {
            "id": data["id"],
            "status": data.get("processing_status"),
            "output_file_id": data["id"] if data.get("results_url") else None,
            "request_counts": {
                "total": sum(counts.values()),
                "completed": counts.get("succeeded", 0),
                "failed": counts.get("errored", 0),
            },
        }
