"""Mistral's batch service: files as OpenAI's, batches as jobs with names of their own.

https://docs.mistral.ai/studio-api/batch-processing and https://docs.mistral.ai/api/endpoint/batch
(BatchJobOut, BatchError, BatchJobsOut): at most 1,000,000 requests, 24 hours unless one says
otherwise, result lines with `response.body` as OpenAI's.
"""

from collections.abc import Collection
from typing import IO, Any

from orbench.batch_service import Service, batches_of

STATUSES = {
    "SUCCESS": "completed",
    "FAILED": "failed",
    "TIMEOUT_EXCEEDED": "expired",
    "CANCELLED": "cancelled",
}


class MistralBatches(Service):
    """`/batch/jobs`."""

    path = "/batch/jobs"

    def _create(
        self, file_id: str, url: Any, metadata: dict[str, str], lines: IO[bytes] | None
    ) -> tuple[str, str]:
        body = {"input_files": [file_id], "endpoint": url, "model": self.model.id}
        made = self.client.post(self.path, body={**body, "metadata": metadata}, cast_to=object)
        batch = self._read(made)
        return batch.id, batch.status

    def _made_of(self, file_id: str, keys: Collection[bytes]) -> tuple[str, str] | None:
        for job in batches_of(self):
            files = job.get("input_files")
            if isinstance(files, list) and file_id in files:
                return str(job["id"]), _status(job)
        return None

    def _next_page(self, pages: int, last: dict[str, Any]) -> dict[str, object]:
        return {"page": pages}  # from 0

    def _as_openai(self, data: dict[str, Any]) -> dict[str, Any]:
        errors = data.get("errors")
        errors = [error for error in errors if isinstance(error, dict)] if errors else []
        return {
            "id": data["id"],
            "status": _status(data),
            "output_file_id": data.get("output_file"),
            "error_file_id": data.get("error_file"),
            "errors": {"data": [{"code": "failed", **error} for error in errors]},
            "request_counts": {
                "total": data.get("total_requests"),
                "completed": data.get("succeeded_requests"),
                "failed": data.get("failed_requests"),
            },
        }


def _status(job: dict[str, Any]) -> str:
    status = str(job.get("status"))
    return STATUSES.get(status, status.lower())
