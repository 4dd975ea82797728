"""One file of a dataset on the Hugging Face Hub, through huggingface_hub and its cache.

That package reads HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orbench.terminal import UserError, clean, say

COMMIT = re.compile(r"[0-9a-f]{40}")
INSTALL = 'pip install -e ".[sets]"'


class OutOfReach(UserError):
    """The Hub did not answer."""


class HubFile:
    """A file of a dataset.

    commit: the revision that is meant, in full. cache: the folder of huggingface_hub's cache.
    """

    def __init__(self, repository: str, file: str, revision: str = "") -> None:
        """revision: a commit, which needs no network here, or a branch; empty: the newest.

        Raises UserError, as the methods do, for a file that cannot be had.
        """
        try:
            from huggingface_hub import constants
        except ImportError:
            raise UserError(
                f"prompt sets need huggingface_hub, which is not installed: {INSTALL}; or "
                "download the file by hand and give its path"
            ) from None
        self.repository, self.file, self.revision = repository, file, revision
        self.cache = Path(constants.HF_HUB_CACHE)
        pinned = COMMIT.fullmatch(revision)
        self.commit = revision if pinned else self._commit_of(revision)

    def fetch(self, licence: str) -> Path:
        """The file, downloaded if the cache lacks it; licence and size are said before.

        licence: empty: as its card says.
        """
        from huggingface_hub import hf_hub_download

        if cached := self._cached(self.commit):
            return cached
        with self._faults(self.commit):
            size = self._about(self.commit).size
            say(
                f"downloading {self.file} of {self.repository} at {self.commit[:7]}, "
                f"{f'{size / 1e6:,.2f} MB' if size else 'of unknown size'}, "
                f"licence {licence or self._licence()}"
            )
            # First as the user wrote it, so that the cache knows which commit a branch was at.
            for revision in dict.fromkeys((self.revision, self.commit)):
                path = hf_hub_download(
                    *(self.repository, self.file),
                    repo_type="dataset",
                    revision=revision or None,
                )
        return Path(path)

    def _commit_of(self, revision: str) -> str:
        """The commit that a branch is at; where the Hub is out of reach, the cache's."""
        try:
            with self._faults(revision):
                return str(self._about(revision).commit_hash)
        except OutOfReach:
            found = re.search(r"/snapshots/([0-9a-f]{40})/", f"{self._cached(revision)}")
            if not found:
                raise
            say(f"the Hugging Face Hub cannot be reached: {self.file} as it is in the cache")
            return found[1]

    def _about(self, revision: str) -> Any:
        """commit_hash and size, by one request."""
        from huggingface_hub import HfApi, hf_hub_url

        url = hf_hub_url(self.repository, self.file, repo_type="dataset", revision=revision or None)
        return HfApi().get_hf_file_metadata(url=url)

    def _cached(self, revision: str) -> Path | None:
        from huggingface_hub import errors, hf_hub_download

        try:
            path = hf_hub_download(
                self.repository,
                self.file,
                repo_type="dataset",
                revision=revision or None,
                local_files_only=True,
            )
        except (errors.LocalEntryNotFoundError, errors.HFValidationError):
            return None
        return Path(path)

    def _licence(self) -> str:
        """The licence on the dataset's card."""
        from huggingface_hub import HfApi

        card = HfApi().dataset_info(self.repository, revision=self.commit).card_data
        return clean(str(card.get("license") or "") if card else "") or "not stated"

    @contextmanager
    def _faults(self, revision: str) -> Iterator[None]:
        """What the Hub or the way to it can get wrong, as a UserError."""
        from huggingface_hub import errors

        dataset = f"{self.repository} at {revision}" if revision else self.repository
        out_of_reach: tuple[type[Exception], ...] = (
            *_connection_faults(),
            OSError,
        )  # OSError: HF_HUB_OFFLINE, too
        try:
            yield
        except errors.GatedRepoError:
            raise UserError(
                f"{self.repository} wants its terms accepted on its page; then set HF_TOKEN"
            ) from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise UserError(
                f"the Hugging Face Hub knows no dataset {dataset}; if it is private, set HF_TOKEN"
            ) from None
        except errors.EntryNotFoundError:
            raise UserError(f"{dataset} has no file {self.file}") from None
        except errors.HFValidationError as error:
            raise UserError(clean(str(error))) from None
        except errors.HfHubHTTPError as error:
            raise UserError(
                f"the Hugging Face Hub did not give {self.file} of {dataset}: "
                f"{clean(str(error))[:200]}; try again later"
            ) from None
        except out_of_reach:
            at = f" --revision {revision}" if revision else ""
            raise OutOfReach(
                f"the Hugging Face Hub cannot be reached, and {self.file} of {self.repository} is "
                "not in its cache; where there is a network: hf download --repo-type dataset "
                f"{self.repository} {self.file}{at}, then bring the file here and give its path"
            ) from None


def _connection_faults() -> tuple[type[Exception], ...]:
    """What huggingface_hub lets through of the HTTP package beneath it, whichever that is."""
    from huggingface_hub import errors

    return tuple(
        base
        for base in errors.HfHubHTTPError.__mro__
        if issubclass(base, Exception) and base.__name__ == "HTTPError"
    )
